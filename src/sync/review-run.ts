import type { Run } from '../catalog/run.ts';
import { CatchwordError } from '../errors.ts';
import type { Leased } from '../store/lease.ts';
import type { Reader } from '../store/reader.ts';
import type { KeeperWriter } from '../store/writers.ts';
import { requireRun } from './finish-run.ts';

/** @throws CatchwordError NOT_FOUND, RUN_NOT_ACTIVE where nothing of the run waits */
export function requireHeld(store: Reader, runId: number): Run {
  const run = requireRun(store, runId);
  if (run.state === 'held') return run;
  throw new CatchwordError('RUN_NOT_ACTIVE', `run ${runId} is ${run.state}: it holds no removals`, {
    hint: run.error ?? 'Only a held run can be approved or rejected: npx catchword runs.',
  });
}

/** What an unfinished run has read may be what the held one would remove. */
function requireNoneUnfinished(store: Reader): void {
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
  leased: Leased<KeeperWriter>,
  runId: number,
  nowMs: number,
  spared: readonly number[] = [],
): Run {
  return leased.write((writer) => {
    const run = requireHeld(writer, runId);
    requireNoneUnfinished(writer);
    writer.removals.spare(runId, spared);
    const ids = writer.removals.held(runId).map(({ id }) => id);
    const removed = writer.removals.remove(ids, runId, nowMs);
    writer.removals.release(runId);
    const missing = Math.max(0, run.missing - removed);
    writer.runs.decide(runId, { state: 'complete', removed: run.removed + removed, missing });
    return requireRun(writer, runId);
  });
}

/**
 * Leaves everything that a held run would have removed.
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE
 */
export function rejectRun(leased: Leased<KeeperWriter>, runId: number): Run {
  return leased.write((writer) => {
    requireHeld(writer, runId);
    writer.removals.release(runId);
    writer.runs.decide(runId, { state: 'complete' });
    return requireRun(writer, runId);
  });
}

/**
 * Brings back what a run removed and nothing has changed since, as `restored` changes: the log is never rewritten.
 * @returns how many
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE for a run that is not finished
 */
export function undoRun(leased: Leased<KeeperWriter>, runId: number, nowMs: number): number {
  return leased.write((writer) => {
    const run = requireRun(writer, runId);
    requireNoneUnfinished(writer);
    if (run.finishedAt === null) {
      throw new CatchwordError('RUN_NOT_ACTIVE', `run ${runId} is ${run.state}: it has removed nothing yet`, {
        hint: 'Cancel it, or wait for its end: npx catchword runs.',
      });
    }
    const restored = writer.removals.restore(runId, nowMs);
    writer.runs.decide(runId, { state: run.state, restored: run.restored + restored });
    return restored;
  });
}
