import { plural } from '../../report/text.ts';
import { short } from './untrusted-text.tsx';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A length of time in words that do not change every second. @param ms milliseconds */
export function roughly(ms: number): string {
  if (ms < MINUTE_MS) return 'less than a minute';
  if (ms < 2 * HOUR_MS) return plural(Math.round(ms / MINUTE_MS), 'minute');
  if (ms < 48 * HOUR_MS) return plural(Math.round(ms / HOUR_MS), 'hour');
  return plural(Math.round(ms / (24 * HOUR_MS)), 'day');
}

/** Characters of an error or reason on the overview; its own page has all of it. */
const MAX_SHOWN = 200;

export function clipped(text: string): string {
  return short(text, MAX_SHOWN);
}

/** With a large first letter. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Text from elsewhere as a sentence of a page, clipped. */
export function sentence(text: string): string {
  const shown = clipped(text);
  return `${capitalized(shown)}${/[.!?…]$/.test(shown) ? '' : '.'}`;
}
