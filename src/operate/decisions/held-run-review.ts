import type { Clock } from '../../base/clock.ts';
import { plural } from '../../report/text.ts';
import type { LeasedKeeper } from '../../store/schema/writers.ts';
import type { Store } from '../../store/store.ts';
import { approveRun, rejectRun, requireHeld, undoRun } from '../../sync/approve-held-run.ts';
import type { Recorder } from './decision-record.ts';

/** A run to review. The lease of its mirror is held, so that no run writes meanwhile. */
export interface Review {
  readonly store: Store;
  readonly leased: LeasedKeeper;
  readonly clock: Clock;
  readonly runId: number;
  /** Looks up the products that the run would remove. @returns ids of products that still exist */
  readonly existing: () => Promise<readonly number[]>;
  /** Called in the transaction that makes the decision. @param outcome one sentence */
  readonly record: (recorder: Recorder, outcome: string) => void;
}

/**
 * Applies the removals that a run holds, after looking up whether the source has the products again.
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE; what `existing` throws
 */
async function approve({ store, leased, clock, runId, existing, record }: Review): Promise<void> {
  const before = requireHeld(store, runId);
  const held = store.removals.heldCount(runId);
  const spared = await existing();
  return leased.write((writer) => {
    const run = approveRun(leased, runId, clock.now(), spared);
    const removed = run.removed - before.removed;
    const kept = held > removed ? `; ${plural(held - removed, 'product')} kept because the source still has them` : '';
    record(writer, `run ${runId} is approved: ${plural(removed, 'product')} removed${kept}`);
  });
}

/** Drops the removals that a run holds. @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE */
async function reject({ leased, runId, record }: Review): Promise<void> {
  return leased.write((writer) => {
    rejectRun(leased, runId);
    record(writer, `run ${runId} is rejected: nothing is removed`);
  });
}

/** Restores what a run removed. @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE */
async function undo({ leased, clock, runId, record }: Review): Promise<void> {
  return leased.write((writer) => {
    const restored = undoRun(leased, runId, clock.now());
    const none = `run ${runId} removed nothing that could be restored`;
    record(writer, restored === 0 ? none : `restored ${plural(restored, 'product')} that run ${runId} removed`);
  });
}

/** Reviews by the names of their actions. */
export const REVIEWS = { approve, reject, undo } as const;

export function isReview(action: string): action is keyof typeof REVIEWS {
  return Object.hasOwn(REVIEWS, action);
}
