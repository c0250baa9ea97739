import { z } from 'zod';
import { wholeNumber } from './whole-number.ts';

/* The forms that settings have: what is accepted, and the value it becomes. */

const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

export const text = z.string();

export function whole(min: number, max: number) {
  return z.string().transform((value, context) => {
    const number = wholeNumber(value, min, max);
    if (number !== null) return number;
    context.addIssue(`a whole number from ${min} to ${max} is needed`);
    return z.NEVER;
  });
}

/** `60s`, `5m`, `24h`, `500ms` or `7d`, as milliseconds. */
export const duration = z
  .string()
  .regex(/^\d+(\.\d+)?(ms|s|m|h|d)$/, 'a duration such as 60s, 5m or 24h is needed')
  .transform((value) => {
    const [, amount, unit] = /^([\d.]+)(\w+)$/.exec(value) ?? [];
    return Number(amount) * UNITS_MS[unit as keyof typeof UNITS_MS];
  });

/** Requests in a window; null where there is no limit. */
export const rate = z
  .string()
  .regex(/^(off|\d+(\.\d+)?\/(s|min))$/, 'a rate such as 50/min or 10/s, or off, is needed')
  .transform((value) => {
    if (value === 'off') return null;
    const [amount, unit] = value.split('/');
    return { requests: Number(amount), windowMs: unit === 's' ? 1_000 : 60_000 };
  })
  .refine((value) => value === null || value.requests > 0, 'a rate above 0 is needed; off means no limit');

export const list = z.string().transform((value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

export const pointers = list
  .refine((items) => items.every((item) => item.startsWith('/')), 'JSON pointers such as /price,/variants are needed')
  .transform((items) =>
    items.map((item) =>
      item
        .slice(1)
        .split('/')
        .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')),
    ),
  );

/** Products that neighbouring windows share; 0 reads plain pages. */
export const seam = z
  .string()
  .regex(/^(off|[1-9]\d*)$/, 'a whole number from 1 to 400, or off, is needed')
  .transform((value) => (value === 'off' ? 0 : Number(value)))
  .refine((value) => value <= 400, 'a whole number from 1 to 400, or off, is needed');

/** A share of the mirror, or a number of products. */
export const removalLimit = z
  .string()
  .regex(/^\d+(\.\d+)?%?$/, 'a share such as 1%, or a number of products, is needed')
  .transform((value) => (value.endsWith('%') ? { percent: Number.parseFloat(value) } : { products: Number(value) }))
  .refine(
    (value) => (value.percent === undefined ? Number.isInteger(value.products) : value.percent <= 100),
    'a share up to 100%, or a whole number of products, is needed',
  );

/** Where to listen; 0 takes any free port, null none. */
export const port = z
  .string()
  .regex(/^(off|\d+)$/, 'a port from 0 to 65535, or off, is needed')
  .transform((value) => (value === 'off' ? null : Number(value)))
  .refine((value) => value === null || value <= 65_535, 'a port from 0 to 65535, or off, is needed');

/** Permission bits of files; their owner can always read and write them. */
export const fileMode = z
  .string()
  .regex(/^0?6[0246]{2}$/, 'an octal mode such as 0600, 0640 or 0644 is needed')
  .transform((value) => Number.parseInt(value, 8));

/** Behind a path; empty for none. */
export const suffix = z
  .string()
  .regex(/^(off|\.[a-z]{1,8})$/, 'a suffix such as .xml, or off, is needed')
  .transform((value) => (value === 'off' ? '' : value));

export const reference = z.string().regex(/^[^\p{Cc}\p{Cs}]{1,255}$/u, 'a reference of 1 to 255 characters is needed');

export const headerName = z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/, 'a header name is needed');
export const headerValue = z.string().regex(/^[\x21-\x7e]+$/, 'printable characters without spaces are needed');
export const timeZone = z.string().refine((value) => {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}, 'a time zone such as UTC or Europe/Berlin is needed');

/** Path of a point lookup. */
export const lookupPath = z
  .string()
  .refine(
    (value) => /^\/[^?#]*:vbid[^?#]*$/.test(value),
    'a path that holds :vbid is needed, such as /v4/products/:vbid',
  );

/** Path of operations of the service, without a query. */
export const servicePath = z
  .string()
  .regex(/^(\/[\w.~-]+)+$/, 'a path such as /v4/packages is needed')
  .refine((value) => !/\/\.\.?(\/|$)/.test(value), 'a path without . and .. is needed');

/** Whether an `@` or a `#` stands behind the host: then a part of a password is read as a host or a port. */
function isTornApart(value: string): boolean {
  const { pathname, search, hash } = new URL(value);
  return hash !== '' || `${pathname}${search}`.includes('@');
}

/** Address of the service, without credentials and without what stands behind the path. */
export const baseUrl = z
  .string()
  .refine((value) => /^https?:$/.test(URL.canParse(value) ? new URL(value).protocol : ''), {
    error: 'an http or https address is needed',
    abort: true,
  })
  .refine((value) => new URL(value).port === '' || !isTornApart(value), {
    error: 'must not contain a user name or password; set the API key instead',
    abort: true,
  })
  .refine((value) => new URL(value).username === '' && new URL(value).password === '', {
    error: 'must not contain a user name or password; set the API key instead',
  })
  .transform((value) => value.replace(/[/?#]+$/, ''));

/** Address of a Redis; may hold credentials. */
export const redisUrl = z
  .string()
  .refine((value) => /^rediss?:$/.test(URL.canParse(value) ? new URL(value).protocol : ''), {
    error: 'an address such as redis://127.0.0.1:6379 is needed; percent-encode /, #, ? and @ in a password',
    abort: true,
  })
  .refine((value) => !isTornApart(value), {
    error: 'write /, #, ? and @ in a password as %2F, %23, %3F and %40',
  });
