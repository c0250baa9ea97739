import type { Run } from '../catalog/run.ts';
import { CatchwordError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import { requireRun } from './finish-run.ts';

/** @throws CatchwordError NOT_FOUND, RUN_NOT_ACTIVE where nothing of the run waits */
export function requireHeld(store: Store, runId: number): Run {
  const run = requireRun(store, runId);
  if (run.state === 'held') return run;
  throw new CatchwordError('RUN_NOT_ACTIVE', `run ${runId} is ${run.state}: it holds no removals`, {
    hint: run.error ?? 'Only a held run can be approved or rejected: npx catchword runs.',
  });
}

/** What an unfinished run has read may be what the held one would remove. */
function requireNoneUnfinished(store: Store): void {
  const unfinished = store.runs.unfinished();
  if (unfinished === undefined) return;
  throw new CatchwordError(
    'RUN_NOT_ACTIVE',
    `run ${unfinished.id} is unfinished, and may have seen what this one removes`,
    {
      hint: `Finish it with: npx catchword sync. Or: npx catchword cancel ${unfinished.id}.`,
    },
  );
}

/**
 * Removes what a held run would have removed and nothing has shown to be alive since.
 * @param spared products that were found alive when this was decided
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE (also while another run is unfinished)
 */
export function approveRun(
  store: Store,
  epoch: number,
  runId: number,
  nowMs: number,
  spared: readonly number[] = [],
): Run {
  return store.write(() => {
    store.lease.check(epoch);
    const run = requireHeld(store, runId);
    requireNoneUnfinished(store);
    store.removals.spare(runId, spared);
    const ids = store.removals.held(runId).map(({ id }) => id);
    const removed = store.removals.remove(ids, runId, nowMs);
    store.removals.release(runId);
    const missing = Math.max(0, run.missing - removed);
    store.runs.decide(runId, { state: 'complete', removed: run.removed + removed, missing });
    return requireRun(store, runId);
  });
}

/**
 * Leaves everything that a held run would have removed.
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE
 */
export function rejectRun(store: Store, epoch: number, runId: number): Run {
  return store.write(() => {
    store.lease.check(epoch);
    requireHeld(store, runId);
    store.removals.release(runId);
    store.runs.decide(runId, { state: 'complete' });
    return requireRun(store, runId);
  });
}

/**
 * Brings back what a run removed and nothing has changed since, as `restored` changes: the log is never rewritten.
 * @returns how many
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE for a run that is not finished
 */
export function undoRun(store: Store, epoch: number, runId: number, nowMs: number): number {
  return store.write(() => {
    store.lease.check(epoch);
    const run = requireRun(store, runId);
    requireNoneUnfinished(store);
    if (run.finishedAt === null) {
      throw new CatchwordError('RUN_NOT_ACTIVE', `run ${runId} is ${run.state}: it has removed nothing yet`, {
        hint: 'Cancel it, or wait for its end: npx catchword runs.',
      });
    }
    const restored = store.removals.restore(runId, nowMs);
    store.runs.decide(runId, { state: run.state, restored: run.restored + restored });
    return restored;
  });
}
