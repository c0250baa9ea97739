import { z } from 'zod';

/* Forms of the settings that hold an address or a path. */

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
    error: 'no user name or password may stand in the address; use CATCHWORD_API_KEY',
    abort: true,
  })
  .refine((value) => new URL(value).username === '' && new URL(value).password === '', {
    error: 'no user name or password may stand in the address; use CATCHWORD_API_KEY',
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
