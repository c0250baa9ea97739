import type { PageResponse } from './page.ts';

/** How far local time is trusted where the source tells none: its clock may differ by this much. */
const NO_DATE_MARGIN_MS = 5 * 60_000;

/**
 * The source's clock when it was asked, never later than it was: every change after it is found by a delta from it.
 *
 * `Date` is written when the answer is, after the list was read; so the time that the answer took is taken off. It
 * counts whole seconds, rounded down. Where it is absent, local time less five minutes serves.
 */
export function sourceTimeOf(response: Pick<PageResponse, 'sourceTime' | 'requestedAt' | 'receivedAt'>): number {
  if (response.sourceTime === null) return response.requestedAt - NO_DATE_MARGIN_MS;
  return response.sourceTime - Math.max(0, response.receivedAt - response.requestedAt);
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

/** A clock that lags by less than this, and by less than half the overlap, loses nothing. */
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
