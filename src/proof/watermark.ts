import type { PageResponse } from '@catchword/catalog/page-types';
import type { Doubt } from '@catchword/catalog/reasons';

/** Assumed difference between the local clock and the source's, if the source sends no `Date`. */
const NO_DATE_MARGIN_MS = 5 * 60_000;

/** The time whose state a response shows, by the local clock: of the request, less the age that a cache reported. */
export function momentOf({ requestedAt, ageMs = 0 }: Pick<PageResponse, 'requestedAt' | 'ageMs'>): number {
  return requestedAt - ageMs;
}

/**
 * The source's clock at the time whose state a response shows, never later: a delta from it finds every later change.
 *
 * The source writes `Date`, rounded down, after it has read the list, so the duration of the request is subtracted. The
 * age that a cache reported is subtracted too, because some caches write their own `Date`; if the cache kept the
 * source's, the result is earlier than necessary, which is harmless.
 */
export function sourceTimeOf(response: Omit<PageResponse, 'body'>): number {
  if (response.sourceTime === null) return momentOf(response) - NO_DATE_MARGIN_MS;
  return response.sourceTime - Math.max(0, response.receivedAt - response.requestedAt) - (response.ageMs ?? 0);
}

/** Whether a response is too old to prove anything: a cache kept it for longer than the overlap. */
export function doubtAge({ ageMs = 0 }: Pick<PageResponse, 'ageMs'>, overlapMs: number): Doubt | null {
  if (ageMs <= overlapMs) return null;
  return { code: 'cached', said: `a cache answered with a page from ${Math.round(ageMs / 1_000)} s ago` };
}

/** Start of the next delta: before the watermark, so that it includes changes that became visible late. */
export function deltaFrom(watermark: number, overlapMs: number): number {
  return Math.max(0, watermark - overlapMs);
}

/** The source's clock and this machine's at one time, milliseconds since 1970. */
export interface Clocks {
  readonly source: number;
  readonly local: number;
}

/**
 * A clock that lags by less than this, and by less than half the overlap, loses nothing. `Date` counts whole seconds,
 * so with an overlap below two seconds a correct clock may appear to lag by more; that costs one extra delta.
 */
const TOLERANCE_MS = 60_000;

/**
 * Start of the delta to read if the source's clock was put back between `reference` and one of `later`: products
 * changed since `reference` may carry any time from there on. Null if the clock was not put back, or is not known.
 */
export function clockPutBack(
  reference: Clocks | null | undefined,
  later: readonly Clocks[],
  overlapMs: number,
): number | null {
  if (reference == null) return null;
  const toleranceMs = Math.min(TOLERANCE_MS, overlapMs / 2);
  let since: number | null = null;
  for (const { source, local } of later) {
    const elapsedMs = Math.max(0, local - reference.local);
    if (source >= reference.source + elapsedMs - toleranceMs) continue;
    since = Math.min(since ?? Number.POSITIVE_INFINITY, deltaFrom(source - elapsedMs, overlapMs));
  }
  return since;
}

/**
 * The source's time at `later` if its clock had not been put forward since one of the references: what changed right before
 * has an earlier time than the clock shows now, and deltas may tell it late. Null if the clock was not put forward.
 */
export function clockPutForward(references: readonly Clocks[], later: Clocks, overlapMs: number): number | null {
  const expected = Math.min(...references.map(({ source, local }) => source + Math.max(0, later.local - local)));
  return later.source > expected + Math.min(TOLERANCE_MS, overlapMs / 2) ? expected : null;
}
