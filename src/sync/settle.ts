import type { Run } from '../catalog/run-types.ts';
import { clockPutBack, deltaFrom } from '../proof/watermark.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import { isClosed, passClocks } from './evidence.ts';

/*
 * Settling: what a run must do before it concludes anything from the absence of a product in its deltas, because a delta
 * may show a change late; see docs/page-drift.md. Timers count the wait (execute-run.ts); here the source's clock shows
 * whether the response is recent enough.
 */

/** Maximum waits of one run. After them it is open and concludes nothing. */
export const MAX_SETTLES = 4;

/** Tolerance: `Date` counts whole seconds, and the duration of the response is subtracted from it. */
const CLOCK_STEP_MS = 2_000;
const CLOCK_SHARE = 0.1;

/** The source's clock when the last window of a pass was requested; null if unknown. */
function lastAsked(store: Reader, { runId, pass, sourceTime }: Pass): number | null {
  const start = store.runs.passStart(runId, pass);
  const end = store.runs.passEnd(runId, pass);
  // Includes any jump of this machine's clock. Most jumps make the result too late, and then the run just waits again.
  return sourceTime === null || start === null || end === null ? null : sourceTime + (end - start);
}

/** Whether the pass is a settling delta, and the source's clock advanced by the overlap since the pass before it ended. */
function hasWaited(store: Reader, passes: readonly Pass[], at: number, overlapMs: number): boolean {
  const [before, pass] = [passes[at - 1], passes[at]];
  if (before === undefined || pass?.kind !== 'settle') return false;
  const asked = lastAsked(store, before);
  if (asked === null || pass.sourceTime === null) return false;
  const toleranceMs = CLOCK_STEP_MS + CLOCK_SHARE * overlapMs;
  return pass.sourceTime - asked >= overlapMs - toleranceMs;
}

/** Whether the run's last pass is a delta that was read late enough, and that is complete. */
export function isSettled(store: Reader, passes: readonly Pass[], overlapMs: number): boolean {
  const last = passes.at(-1);
  return last !== undefined && hasWaited(store, passes, passes.length - 1, overlapMs) && isClosed(store, last);
}

/**
 * The time from which the next settling delta reads; milliseconds since 1970: the run's source time, less the overlap,
 * or that of the previous settling delta. Changes that the previous one could not show yet have a later time.
 */
export function settlesFrom(store: Reader, run: Run, passes: readonly Pass[], overlapMs: number): number {
  const before = passes.findLast((_, at) => hasWaited(store, passes, at, overlapMs));
  const told = (before ?? passes[0])?.sourceTime ?? run.startedAt;
  const [first, ...later] = passClocks(store, run.id);
  const putBack = clockPutBack(first, later, overlapMs);
  return Math.min(deltaFrom(told, overlapMs), putBack ?? Number.POSITIVE_INFINITY);
}
