import { LONGEST_PAUSE_MS } from './clock.ts';
import type { CatchwordError } from './errors.ts';

const BASE_MS = 500;
const CEILING_MS = 30_000;
/** The longest pause to wait for. If a source asks for more, the call fails and its caller decides. */
export const PATIENCE_MS = 3_600_000;

/** Exponential with full jitter; milliseconds. @param attempt attempts so far, from 1 */
export function backoffMs(attempt: number, random: () => number, ceilingMs = CEILING_MS): number {
  return random() * Math.min(ceilingMs, BASE_MS * 2 ** (attempt - 1));
}

/** The pause before the next retry, never shorter than `Retry-After`. @returns milliseconds, or null to give up */
export function retryDelayMs(
  error: Pick<CatchwordError, 'retryable' | 'retryAfterMs'>,
  attempt: number,
  maxAttempts: number,
  random: () => number,
): number | null {
  const askedMs = error.retryAfterMs ?? 0;
  if (!error.retryable || attempt >= maxAttempts || askedMs > PATIENCE_MS) return null;
  return Math.max(askedMs, backoffMs(attempt, random));
}

/** Characters of the header that an error quotes. */
const SHOWN = 40;

/**
 * Parses `Retry-After`: whole seconds, or an HTTP date.
 * @param nowMs the time that the date is compared with, milliseconds since 1970
 * @returns the pause from now, at most 24 h, and a note if the source asked for more; undefined if the header is absent
 *   or invalid
 */
export function parseRetryAfter(value: string | undefined, nowMs: number) {
  const text = value?.trim() ?? '';
  const askedMs = /^\d+$/.test(text) ? Number(text) * 1_000 : untilDate(text, nowMs);
  if (askedMs === undefined) return undefined;
  if (askedMs <= LONGEST_PAUSE_MS) return { ms: askedMs, note: '' };
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  const note = `it asked for a pause with Retry-After: ${shown}; catchword waits at most 24 h`;
  return { ms: LONGEST_PAUSE_MS, note };
}

function untilDate(text: string, nowMs: number): number | undefined {
  // Every form of an HTTP date starts with its weekday; Date.parse accepts much more.
  const named = /^[A-Z][a-z]+,? /.test(text);
  // The oldest form has no time zone and means UTC.
  const dateMs = named ? Date.parse(/ (GMT|UTC|[+-]\d{4})$/.test(text) ? text : `${text} GMT`) : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}
