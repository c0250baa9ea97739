import type { PageResponse } from './page.ts';

/** How far local time is trusted where the source tells none: its clock may differ by this much. */
const NO_DATE_MARGIN_MS = 5 * 60_000;

/**
 * The moment that an answer shows, by the clock of the machine that asked: when it was asked, or earlier by the age that a
 * cache told. Milliseconds since 1970.
 */
export function momentOf({ requestedAt, ageMs = 0 }: Pick<PageResponse, 'requestedAt' | 'ageMs'>): number {
  return requestedAt - ageMs;
}

/**
 * The source's clock at the moment that an answer shows, never later than it was: every change after it is found by a
 * delta from it.
 *
 * `Date` is written when the answer is, after the list was read; so the time that the answer took is subtracted. It
 * counts whole seconds, rounded down. Where it is absent, local time less five minutes serves. The age that a cache told
 * is subtracted as well, because some caches write a `Date` of their own; where the source's was kept, that is earlier
 * than necessary, which does no harm.
 */
export function sourceTimeOf(
  response: Pick<PageResponse, 'sourceTime' | 'requestedAt' | 'receivedAt' | 'ageMs'>,
): number {
  if (response.sourceTime === null) return momentOf(response) - NO_DATE_MARGIN_MS;
  return response.sourceTime - Math.max(0, response.receivedAt - response.requestedAt) - (response.ageMs ?? 0);
}

/** How the doubt begins about a page that a cache kept for too long. */
export const FROM_CACHE = 'a cache answered';

/** Why an answer is too old to prove anything: older than deltas may be late. Null where it is not. */
export function doubtAge({ ageMs = 0 }: Pick<PageResponse, 'ageMs'>, overlapMs: number): string | null {
  return ageMs > overlapMs ? `${FROM_CACHE} with a page from ${Math.round(ageMs / 1_000)} s ago` : null;
}

/** Where a delta begins: so far before the watermark that a change which became visible late is still asked for. */
export function deltaFrom(watermark: number, overlapMs: number): number {
  return Math.max(0, watermark - overlapMs);
}

/** Two clocks at one moment, milliseconds since 1970: the source's and this machine's. */
export interface Clocks {
  readonly source: number;
  readonly local: number;
}

/**
 * A clock that lags by less than this, and by less than half the overlap, loses nothing. `Date` counts whole seconds: with
 * an overlap of less than two, a clock that is right may seem to lag by more. That costs one more delta.
 */
const TOLERANCE_MS = 60_000;

/**
 * From when on a delta must ask where the source's clock was put back between `reference` and one of `later`: what
 * changed since `reference` may carry any time from then on. Null where it was not.
 */
export function clockPutBack(reference: Clocks, later: readonly Clocks[], overlapMs: number): number | null {
  const toleranceMs = Math.min(TOLERANCE_MS, overlapMs / 2);
  let since: number | null = null;
  for (const { source, local } of later) {
    const elapsedMs = Math.max(0, local - reference.local);
    if (source >= reference.source + elapsedMs - toleranceMs) continue;
    since = Math.min(since ?? Number.POSITIVE_INFINITY, deltaFrom(source - elapsedMs, overlapMs));
  }
  return since;
}
