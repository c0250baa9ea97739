import { z } from 'zod';

const DAY = z.iso.date();
const MOMENT = z.iso.datetime({ offset: true, local: true });

/**
 * An ISO 8601 day or time, `T` or a space between the two, in milliseconds since 1970; without a zone it is UTC, as the service's own times are
 * (interface, section 4.4).
 * @returns null where it is none, such as the 30th of February
 */
export function parseIsoTime(text: string): number | null {
  if (DAY.safeParse(text).success) return Date.parse(text);
  const time = text.replace(' ', 'T');
  if (!MOMENT.safeParse(time).success) return null;
  return Date.parse(/(Z|[+-]\d\d:\d\d)$/.test(time) ? time : `${time}Z`);
}
