import * as z from 'zod';

const ZONE = { offset: true, local: true } as const;

/** Validates an ISO 8601 date, or a time with or without seconds and zone. */
export const isoTime = z.union([z.iso.date(), z.iso.datetime(ZONE), z.iso.datetime({ ...ZONE, precision: -1 })], {
  error: 'must be an ISO 8601 date',
});

/**
 * Parses an ISO 8601 date or time, with `T` or a space before the time, as milliseconds since 1970; null if it is not
 * valid. Without a zone it is UTC, as in the service's own times (interface, section 4.4).
 */
export function parseIsoTime(text: string): number | null {
  const time = text.replace(' ', 'T');
  if (!isoTime.safeParse(time).success) return null;
  const isLocal = time.includes('T') && !/(Z|[+-]\d\d:\d\d)$/.test(time);
  return Date.parse(isLocal ? `${time}Z` : time);
}

/** Parses the date of a header, milliseconds since 1970; null if it is not valid. Without a zone, as in its oldest form, it is UTC. */
export function parseHttpDate(text: string): number | null {
  const date = text.trim();
  const hasZone = /([A-Z]{1,4}|[+-]\d\d:?\d\d)$/i.test(date);
  const time = parseIsoTime(date) ?? Date.parse(hasZone ? date : `${date} GMT`);
  return Number.isNaN(time) ? null : time;
}

/** Formats a time as ISO 8601, UTC, with milliseconds. */
export function iso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
