import { LONGEST_PAUSE_MS } from './clock.ts';
import type { CatchwordError } from './errors.ts';

const BASE_MS = 500;
const CEILING_MS = 30_000;
/** A source that asks for a longer pause is left alone; whoever started the run decides. */
export const PATIENCE_MS = 3_600_000;

/**
 * Exponential with full jitter.
 * @param attempt tries so far, from 1
 * @param random at least 0, below 1
 * @returns milliseconds
 */
export function backoffMs(attempt: number, random: () => number, ceilingMs = CEILING_MS): number {
  return random() * Math.min(ceilingMs, BASE_MS * 2 ** (attempt - 1));
}

/**
 * When to try again: exponential with full jitter, never before the source's own `Retry-After`.
 * @param attempt tries so far, from 1
 * @param maxAttempts tries in all
 * @param random at least 0, below 1
 * @returns milliseconds, or null when there is no further try
 */
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

export interface RetryAfter {
  /** At most a day, whatever was asked for. */
  readonly ms: number;
  /** Says so where more was asked for; else empty. */
  readonly note: string;
}

/** Characters of a header that an error repeats. */
const SHOWN = 40;

/**
 * `Retry-After` in either form: whole seconds, or an HTTP date.
 * @param nowMs the clock that the date is measured against, milliseconds since 1970
 * @returns the pause from now, or undefined where it says nothing that can be read
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): RetryAfter | undefined {
  const text = value?.trim() ?? '';
  const askedMs = /^\d+$/.test(text) ? Number(text) * 1_000 : untilDate(text, nowMs);
  if (askedMs === undefined) return undefined;
  if (askedMs <= LONGEST_PAUSE_MS) return { ms: askedMs, note: '' };
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  return {
    ms: LONGEST_PAUSE_MS,
    note: `it asked for a pause with Retry-After: ${shown}; catchword waits at most 24 h`,
  };
}

function untilDate(text: string, nowMs: number): number | undefined {
  // Every form of an HTTP date names its weekday first; Date.parse alone would take much else for a date.
  const named = /^[A-Z][a-z]+,? /.test(text);
  // Its oldest form names no time zone: it is UTC, as the others are.
  const dateMs = named ? Date.parse(/ (GMT|UTC|[+-]\d{4})$/.test(text) ? text : `${text} GMT`) : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}
