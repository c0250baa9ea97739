import { parseHttpDate } from '@catchword/base/iso-time';

/** As undici returns them: one value, or several of the same name. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

export function header(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** The answer's `Date` in milliseconds since 1970; null if it is absent or invalid. */
export function dateOf(headers: Headers): number | null {
  return parseHttpDate([headers.date].flat()[0] ?? '');
}
