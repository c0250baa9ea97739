import type { Run } from '../catalog/run.ts';
import { clockPutBack, deltaFrom } from '../catalog/watermark.ts';
import type { Reader } from '../store/reader.ts';
import type { Pass } from '../store/runs.ts';
import { isClosed, passClocks } from './assess-run.ts';

/**
 * Settling: what a run must do before it concludes anything from what its deltas do not tell.
 *
 * A delta may tell of a change late, by up to the overlap: the deltas of many services come from an index or a replica
 * that lags behind the list. So a delta that was asked right after the list cannot prove that nothing was modified while
 * the list was read. A run that settles waits for the overlap after its last answer, and asks again: a pass of the kind
 * `settle`. What was modified before the wait, and shown anywhere, this delta tells of:
 *
 * ```
 * list ─► deltas ─► repairs, lookups ─► (wait) ─► settle ─► one response, or stood still? ─ yes ─► judge seams, remove
 *                                          ▲                              │ no
 *                                          └──────────────────────────────┘
 * ```
 * The wait is counted by the timers of the processes that wait; see keeper.ts. The source's clock shows besides whether the
 * answer is as new as it has to be.
 *
 * The first settling delta asks from the run's source time, less the overlap. A later one asks from the source time of the
 * one before, less the overlap: whatever that one could not tell of yet carries a later time.
 */

/** Waits of one run, at most: after so many, it is open and concludes nothing. */
export const MAX_SETTLES = 4;

/** `Date` counts whole seconds, and the time that an answer took is subtracted from it. */
const CLOCK_STEP_MS = 2_000;
const CLOCK_SHARE = 0.1;

/** The source's clock when the last window of a pass was asked for; null if nothing tells. */
function lastAsked(store: Reader, { runId, pass, sourceTime }: Pass): number | null {
  const start = store.runs.passStart(runId, pass);
  const end = store.runs.passEnd(runId, pass);
  // A jump of this machine's clock lies between the two, too. Most jumps make this later than it was: the run waits again.
  return sourceTime === null || start === null || end === null ? null : sourceTime + (end - start);
}

/**
 * Whether the source's clock went on by the overlap between the last window of the pass before and this pass, which was read
 * after a wait. It did not where the source's clock was put back, and where a cache answered.
 */
function hasWaited(store: Reader, before: Pass | undefined, pass: Pass, overlapMs: number): boolean {
  const asked = before === undefined ? null : lastAsked(store, before);
  if (asked === null || pass.sourceTime === null) return false;
  const toleranceMs = CLOCK_STEP_MS + CLOCK_SHARE * overlapMs;
  return pass.sourceTime - asked >= overlapMs - toleranceMs;
}

/** Whether the last thing that the run read is a delta that was asked late enough, and that nothing slipped from. */
export function isSettled(store: Reader, passes: readonly Pass[], overlapMs: number): boolean {
  const last = passes.at(-1);
  if (last?.kind !== 'settle') return false;
  return hasWaited(store, passes.at(-2), last, overlapMs) && isClosed(store, last);
}

/**
 * Since when the next settling delta asks; milliseconds since 1970.
 *
 * A few milliseconds earlier with each pass, so that no two deltas of a run have the same address, and no cache can answer
 * one with what it kept of the other.
 */
export function settlesFrom(store: Reader, run: Run, passes: readonly Pass[], overlapMs: number): number {
  const before = passes.findLast(
    (pass, at) => pass.kind === 'settle' && hasWaited(store, passes[at - 1], pass, overlapMs),
  );
  const told = (before ?? passes[0])?.sourceTime ?? run.startedAt;
  const clocks = passClocks(store, run.id);
  const [first] = clocks;
  const putBack = first === undefined ? null : clockPutBack(first, clocks, overlapMs);
  const from = Math.min(deltaFrom(told, overlapMs), putBack ?? Number.POSITIVE_INFINITY);
  return Math.max(0, from - passes.length);
}
