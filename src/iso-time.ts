import { z } from 'zod';

const ZONE = { offset: true, local: true } as const;

/** An ISO 8601 day, or a time with or without seconds, and with or without a zone. */
export const isoTime = z.union([z.iso.date(), z.iso.datetime(ZONE), z.iso.datetime({ ...ZONE, precision: -1 })], {
  error: 'an ISO 8601 date is needed',
});

/**
 * As `isoTime`, with `T` or a space between day and time, in milliseconds since 1970; without a zone it is UTC, as the
 * service's own times are (interface, section 4.4).
 * @returns null where it is none, such as the 30th of February
 */
export function parseIsoTime(text: string): number | null {
  const time = text.replace(' ', 'T');
  if (!isoTime.safeParse(time).success) return null;
  const isLocal = time.includes('T') && !/(Z|[+-]\d\d:\d\d)$/.test(time);
  return Date.parse(isLocal ? `${time}Z` : time);
}

/** ISO 8601, UTC, with milliseconds. */
export function iso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
