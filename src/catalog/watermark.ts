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
