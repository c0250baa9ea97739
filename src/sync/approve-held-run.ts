import { CatchwordError } from '@catchword/base/errors';
import { decidedReasons } from '@catchword/catalog/reasons';
import type { Run } from '@catchword/catalog/run-types';
import type { Reader } from '../store/schema/reader.ts';
import type { LeasedKeeper } from '../store/schema/writers.ts';
import { requireRun } from './finish-run.ts';

/** @throws CatchwordError NOT_FOUND, RUN_NOT_ACTIVE if the run is not held */
export function requireHeld(store: Reader, runId: number): Run {
  const run = requireRun(store, runId);
  if (run.state === 'held') return run;
  const hint = run.error ?? 'Only a held run can be approved or rejected: npx catchword runs.';
  throw new CatchwordError('RUN_NOT_ACTIVE', `run ${runId} is ${run.state}: it does not hold removals`, { hint });
}

/** An unfinished run may have seen products that the held run would remove. */
function requireNoneUnfinished(store: Reader): void {
  const id = store.runs.unfinished()?.id;
  if (id === undefined) return;
  const what = `run ${id} is unfinished, and may have seen products that this run removes`;
  const hint = `Finish it with npx catchword sync, or cancel it: npx catchword cancel ${id}.`;
  throw new CatchwordError('RUN_NOT_ACTIVE', what, { hint });
}

/**
 * Removes what a held run would have removed, except what was seen since, or found alive when this was decided (`spared`).
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE (also while another run is unfinished)
 */
export function approveRun(leased: LeasedKeeper, runId: number, nowMs: number, spared: readonly number[] = []): Run {
  return leased.write((writer) => {
    const run = requireHeld(writer, runId);
    requireNoneUnfinished(writer);
    writer.removals.spare(runId, spared);
    const ids = writer.removals.held(runId).map(({ id }) => id);
    const removed = writer.removals.remove(ids, runId, nowMs);
    writer.removals.release(runId);
    const missing = Math.max(0, run.missing - removed);
    const reasons = decidedReasons(run, 'approved');
    writer.runs.amend(runId, { state: 'complete', reasons, removed: run.removed + removed, missing });
    return requireRun(writer, runId);
  });
}

/** Drops the removals that a run holds. @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE */
export function rejectRun(leased: LeasedKeeper, runId: number): Run {
  return leased.write((writer) => {
    const run = requireHeld(writer, runId);
    writer.removals.release(runId);
    writer.runs.amend(runId, { state: 'complete', reasons: decidedReasons(run, 'rejected') });
    return requireRun(writer, runId);
  });
}

/**
 * Restores products that a run removed and that have not changed since, as `restored` changes, with the content that they
 * had before. The next delta tells again what the run's deltas told: of a product that is withdrawn, too. @returns how many
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE if the run has not ended
 */
export function undoRun(leased: LeasedKeeper, runId: number, nowMs: number): number {
  return leased.write((writer) => {
    const run = requireRun(writer, runId);
    requireNoneUnfinished(writer);
    if (run.finishedAt === null) {
      const hint = 'Wait for its end, or cancel it: npx catchword runs.';
      throw new CatchwordError('RUN_NOT_ACTIVE', `run ${runId} is ${run.state}: it has not removed anything yet`, {
        hint,
      });
    }
    const restored = writer.removals.restore(runId, nowMs);
    writer.runs.amend(runId, { state: run.state, restored: run.restored + restored });
    const starts = writer.runs.passes(runId).flatMap(({ from }) => from ?? []);
    if (restored > 0 && starts.length > 0) writer.readAgainFrom(Math.min(...starts));
    return restored;
  });
}
