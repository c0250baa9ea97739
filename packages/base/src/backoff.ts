import { LONGEST_PAUSE_MS } from './clock.ts';
import type { CatchwordError } from './errors.ts';
import { parseHttpDate } from './iso-time.ts';

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

/** Characters of the header that an error quotes, with its name. */
const SHOWN = 53;

/**
 * Parses `Retry-After`: seconds, which some services write with a fraction or a unit, or a time, which is compared with
 * `nowMs`: a date, or seconds or milliseconds since 1970.
 * @returns the pause from now, at most 24 h, and a note if the source asked for more; undefined if it is absent or invalid
 */
export function parseRetryAfter(value: string | undefined, nowMs: number) {
  const text = value?.trim() ?? '';
  // A comma before three digits may stand between thousands.
  const [, digits] = /^"?(\d+(?:\.\d+|,\d\d?)?|\.\d+) ?(?:s|sec|seconds?)?"?$/i.exec(text) ?? [];
  const number = digits === undefined ? null : Number(digits.replace(',', '.'));
  const askedMs = number === null ? untilDate(text, nowMs) : (untilTime(number, nowMs) ?? Math.ceil(number * 1_000));
  return askedMs === undefined ? undefined : pauseOf(askedMs, `Retry-After: ${text}`);
}

function pauseOf(askedMs: number, header: string) {
  if (askedMs <= LONGEST_PAUSE_MS) return { ms: askedMs, note: '' };
  const shown = header.length > SHOWN ? `${header.slice(0, SHOWN)}…` : header;
  return { ms: LONGEST_PAUSE_MS, note: `it asked for a pause with ${shown}; catchword waits at most 24 h` };
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Reads the number in a header. Parameters, or the numbers of other limits, may follow it. */
function numberIn(headers: Headers, name: string): number | undefined {
  const [, digits] = /^\s*(\d{1,15}(?:\.\d+)?)\s*(?:[;,]|$)/.exec([headers[name]].flat()[0] ?? '') ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** Milliseconds until a time in seconds or milliseconds since 1970; undefined for a number that is neither now. */
function untilTime(time: number, nowMs: number): number | undefined {
  if (time >= 1e12 && time < 1e13) return Math.max(0, time - nowMs);
  return time >= 1e9 && time < 1e10 ? Math.max(0, time * 1_000 - nowMs) : undefined;
}

/** Milliseconds until a time that is given in seconds from now, at most a day, or in seconds or milliseconds since 1970. */
function untilReset(reset: number, nowMs: number): number | undefined {
  return untilTime(reset, nowMs) ?? (reset * 1_000 <= LONGEST_PAUSE_MS ? reset * 1_000 : undefined);
}

/** The names that services give to the headers of their limits. */
const LIMITS = ['ratelimit', 'x-ratelimit', 'x-rate-limit'];

/**
 * The pause that an answer asks for: `Retry-After`, or without it the time until its limit of requests starts over.
 * @param status services send the headers of a limit with other answers, too: they count if the limit is used up
 */
export function askedPause(headers: Headers, status: number, nowMs: number): ReturnType<typeof parseRetryAfter> {
  const pause = parseRetryAfter([headers['retry-after']].flat()[0], nowMs);
  if (pause !== undefined) return pause;
  for (const limit of LIMITS) {
    const reset = numberIn(headers, `${limit}-reset`);
    const askedMs = reset === undefined ? undefined : untilReset(reset, nowMs);
    const remaining = numberIn(headers, `${limit}-remaining`) ?? (status === 429 ? 0 : 1);
    if (askedMs !== undefined && remaining < 1) return pauseOf(askedMs, `${limit}-reset: ${reset}`);
  }
  return undefined;
}

function untilDate(text: string, nowMs: number): number | undefined {
  // A weekday, a day or an ISO time begins every date; Date.parse accepts much more.
  const dateMs = /^(?:[A-Z][a-z]+,? |\d{1,2} [A-Z]|\d{4}-\d\d-\d\d[T ])/.test(text) ? parseHttpDate(text) : null;
  return dateMs === null ? undefined : Math.max(0, dateMs - nowMs);
}
