import { hostUrls, isBehindSentinels, SENTINEL_OPTIONS } from '@catchword/base/host-urls';
import { wholeNumber } from '@catchword/base/whole-number';
import * as z from 'zod';

/*
 * The forms that settings have: which text is valid, and the value it becomes. The description of each completes the
 * sentence "must be …".
 */

/** @param parse returns undefined if the text is not valid */
function form<Value>(description: string, parse: (given: string) => Value | undefined) {
  return z
    .string()
    .transform((given, context) => {
      const value = parse(given);
      if (value !== undefined) return value;
      context.addIssue(`must be ${description}`);
      return z.NEVER;
    })
    .describe(description);
}

function matching(pattern: RegExp, description: string) {
  return form(description, (given) => (pattern.test(given) ? given : undefined));
}

export const text = z.string().describe('text');

/** Text that quotes may be a part of. */
export const anything = z.string().describe('text');

/** The path of a file; relative to the working directory. */
export const path = z
  .string()
  .refine((given) => !given.startsWith('~'), 'must be written in full: only a shell replaces ~, so use $HOME there')
  .describe('a path');

export function oneOf<const Word extends string>(...words: readonly Word[]) {
  return form(`one of ${words.join(', ')}`, (given) => words.find((word) => word === given));
}

export function whole(min: number, max: number) {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return form(`a whole number ${range}`, (given) => wholeNumber(given, min, max) ?? undefined);
}

/** Parses a number with one of these units. */
function quantity(given: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, amount, name = ''] = /^(\d+(?:\.\d+)?)(\D+)$/.exec(given) ?? [];
  const unit = Object.hasOwn(units, name) ? units[name] : undefined;
  return unit && Number(amount) * unit;
}

/** Becomes milliseconds. */
export const duration = form('a duration such as 500ms, 60s, 5m, 24h or 7d', (given) =>
  quantity(given, { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }),
);

/** Becomes bytes; null for off. */
export const bytes = form('a size such as 100MB or 2GB, or off', (given) =>
  given === 'off' ? null : quantity(given, { kB: 1e3, MB: 1e6, GB: 1e9 }),
);

/** Becomes a number of requests in a window; null for no limit. */
export const rate = form('a rate above 0 such as 50/min or 10/s, or off for no limit', (given) => {
  if (given === 'off') return null;
  const [, amount, unit] = /^(\d+(?:\.\d+)?)\/(s|min)$/.exec(given) ?? [];
  const requests = Number(amount);
  return requests > 0 ? { requests, windowMs: unit === 's' ? 1_000 : 60_000 } : undefined;
});

function items(given: string): string[] {
  const found = given.split(',').map((item) => item.trim());
  return found.filter((item) => item !== '');
}

export const list = form('a comma-separated list', items);

export const origins = form('a comma-separated list of origins such as https://shop.example', (given) => {
  const all = items(given);
  return all.every((one) => URL.canParse(one) && new URL(one).origin === one) ? all : undefined;
});

/** Why a pointer matches no field, or all, after "must"; null if it may match one. */
function pointerProblem(item: string): string | null {
  if (!item.startsWith('/')) return `have a slash before each name: write /${item.replace(/^#\/?/, '')}, not ${item}`;
  if (item === '/*') return `name a field: ${item} ignores every change`;
  if (/~(?![01])/.test(item)) return `have ~0 for each ~ in a name, and ~1 for each /: ${item} has another ~`;
  return /\/(\/|$)/.test(item) ? `have a name after each slash: ${item} has one without` : null;
}

/** Becomes the parts of each pointer. */
export const pointers = z
  .string()
  .superRefine((given, context) => {
    const [problem] = items(given).flatMap((item) => pointerProblem(item) ?? []);
    if (problem !== undefined) context.addIssue(`must ${problem}`);
  })
  .transform((given) => {
    const unescaped = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~');
    return items(given).map((item) => item.slice(1).split('/').map(unescaped));
  })
  .describe('JSON pointers such as /price,/variants/*/updated');

/** Becomes the number of products that neighbouring windows share; 0 reads plain pages. */
export const seam = form('a whole number from 1 to 400, or off', (given) =>
  given === 'off' ? 0 : (wholeNumber(given, 1, 400) ?? undefined),
);

/** Becomes a share of the mirror, or a number of products. */
function productLimit(given: string) {
  const percent = /^\d+(\.\d+)?%$/.test(given) ? Number.parseFloat(given) : undefined;
  if (percent !== undefined) return percent <= 100 ? { percent } : undefined;
  const products = wholeNumber(given);
  return products === null ? undefined : { products };
}

export const removalLimit = form('a share of up to 100% such as 1%, or a whole number of products', productLimit);
export const lossLimit = form('a share of up to 100% such as 5%, a whole number of products, or off', (given) =>
  given === 'off' ? { products: Number.POSITIVE_INFINITY } : productLimit(given),
);

/** Becomes the port to listen on: 0 for any free port, null for none. */
export const port = form('a port from 0 to 65535, or off', (given) =>
  given === 'off' ? null : (wholeNumber(given, 0, 65_535) ?? undefined),
);

/** Becomes permission bits; the owner of a file can always read and write it. */
export const fileMode = form('an octal mode such as 0600, 0640 or 0644', (given) =>
  /^0?6[0246]{2}$/.test(given) ? Number.parseInt(given, 8) : undefined,
);

/** The end of a path; empty for none. */
export const suffix = form('a suffix such as .xml, or off', (given) => {
  if (given === 'off') return '';
  return /^\.[a-z]{1,8}$/.test(given) ? given : undefined;
});

export const reference = matching(/^[^\p{Cc}\p{Cs}]+$/u, 'a reference without control characters');
export const headerName = matching(/^[\w!#$%&'*+.^`|~-]+$/, 'a header name');
/** Servers accept no longer headers: 8 kB (nginx, Apache) to 16 kB (Node.js). */
export const headerValue = matching(/^[\x21-\x7e]{1,8000}$/, 'up to 8,000 printable characters without spaces');
/** A key, which may have its scheme before it: `Bearer abc` in the header Authorization. */
export const apiKey = matching(
  /^(?:(?:Api-?Key|Basic|Bearer|Token) )?[\x21-\x7e]{1,8000}$/,
  'up to 8,000 printable characters without spaces, but for one behind a scheme such as Bearer',
);
export const processName = matching(/^[A-Za-z0-9_-]+$/, 'letters, digits, _ and -');

export const timeZone = form('a time zone such as UTC or Europe/Berlin', (given) => {
  try {
    // Loading the zones takes up to 40 ms.
    if (given !== 'UTC') new Intl.DateTimeFormat('en', { timeZone: given });
    return given;
  } catch {
    return undefined;
  }
});

export const lookupPath = matching(/^\/[^?#]*:vbid[^?#]*$/, 'a path that contains :vbid, such as /v4/products/:vbid');

/** The path of operations of the service. */
export const servicePath = matching(
  /^(?!.*\/\.\.?(\/|$))(\/[\w.~-]+)+$/,
  'a path without a query, . and .., such as /v4/packages',
);

/** Whether an `@` or a `#` follows the host, so that a part of a password was parsed as a host or a port. */
function isTornApart(url: URL): boolean {
  return url.hash !== '' || hasAt(url);
}

function hasAt({ pathname, search, hash }: URL): boolean {
  return `${pathname}${search}${hash}`.includes('@');
}

/** An address with one of `protocols`. `problemOf` names what else must not be in it, or in one for `all` of its hosts. */
function address(protocols: RegExp, description: string, problemOf: (url: URL, all: readonly URL[]) => string | null) {
  return z
    .string()
    .superRefine((given, context) => {
      const all = hostUrls(given);
      const [url] = all;
      const isKnown = url !== undefined && protocols.test(url.protocol);
      const problem = isKnown ? problemOf(url, all) : `must be ${description}`;
      if (problem !== null) context.addIssue(problem);
    })
    .describe(description);
}

/** The address of the service, without trailing slashes. */
export const baseUrl = address(/^https?:$/, 'an http or https address', (url) =>
  url.username !== '' || url.password !== '' || (url.port !== '' && hasAt(url))
    ? 'must not contain a user name or password'
    : url.search !== '' || url.hash !== ''
      ? 'must not contain a query or a fragment: requests have their own. Remove what follows ? or #'
      : null,
)
  .transform((given) => given.replace(/[/?#]+$/, ''))
  .describe('an http or https address');

const SENTINELS = 'redis+sentinel://HOST:26379,HOST:26379/NAME';
const REDIS = `an address such as redis://127.0.0.1:6379 or ${SENTINELS}, with /, #, ? and @ in a password percent-encoded`;

/** The address of a Redis, or of the sentinels that know where it is; may hold credentials. */
export const redisUrl = address(/^rediss?(\+sentinel)?:$/, REDIS, (url, all) => {
  if (isTornApart(url)) return 'must have /, #, ? and @ in a password written as %2F, %23, %3F and %40';
  if (!isBehindSentinels(url)) {
    return /^(\/\d*)?$/.test(url.pathname)
      ? null
      : 'must have nothing but a database number after the host, such as /0';
  }
  if (all.some(({ hostname }) => hostname === '')) return `must have the host of every sentinel: ${SENTINELS}`;
  if (!/^\/[\w.-]+(\/\d+)?$/.test(url.pathname)) {
    return `must have the name by which the sentinels know the primary, then at most a database number: ${SENTINELS}/0`;
  }
  const isKnown = [...url.searchParams.keys()].every((key) => SENTINEL_OPTIONS.includes(key));
  return isKnown ? null : `must not have options other than ${SENTINEL_OPTIONS.join(' and ')}`;
});

const PROXY = 'an address such as http://proxy.example:3128, with /, #, ? and @ in a password percent-encoded';

/** The address of a proxy; may hold credentials. Like other programs, it takes HOST:PORT for http. */
export const proxyUrl = z
  .string()
  .transform((given) => (/^[a-z][a-z\d+.-]*:\/\//i.test(given) ? given : `http://${given}`))
  .pipe(
    address(/^https?:$/, PROXY, (url) =>
      isTornApart(url) || url.search !== '' || url.pathname !== '/' ? `must be ${PROXY}` : null,
    ),
  )
  .describe(PROXY);

const HEARTBEAT = 'an https address, or http://…#allow=private';

/** An address that is called; may hold a secret in its path. Like a webhook's, its fragment is an option. */
export const heartbeatUrl = address(/^https?:$/, HEARTBEAT, ({ username, password, protocol, hash }) => {
  if (username !== '' || password !== '') return 'must not contain a user name or password';
  if (hash !== '' && hash !== '#allow=private') return 'must not contain a # other than #allow=private';
  return protocol === 'https:' || hash !== '' ? null : `must be ${HEARTBEAT}`;
});
