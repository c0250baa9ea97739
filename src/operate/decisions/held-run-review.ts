import type { Clock } from '../../base/clock.ts';
import { CatchwordError } from '../../base/errors.ts';
import { printable } from '../../base/printable.ts';
import { plural } from '../../report/text.ts';
import type { LeasedKeeper } from '../../store/schema/writers.ts';
import type { Store } from '../../store/store.ts';
import { approveRun, rejectRun, requireHeld, undoRun } from '../../sync/approve-held-run.ts';
import type { SampleAnswer } from '../../sync/recheck-held.ts';
import type { Recorder } from './decision-record.ts';

/** A run to review. The lease of its mirror is held, so that no run writes meanwhile. */
export interface Review {
  readonly store: Store;
  readonly leased: LeasedKeeper;
  readonly clock: Clock;
  readonly runId: number;
  /** Looks up at most `most` products that the run would remove. @returns null without a lookup path */
  readonly lookUp: (most: number) => Promise<SampleAnswer | null>;
  /** Called in the transaction that makes the decision. @param outcome one sentence */
  readonly record: (recorder: Recorder, outcome: string) => void;
}

/** Products that are looked up for an operator who has not decided yet, and before they are removed. */
const [FEW, MOST] = [20, 200];

/** @returns ids of the products that the source still has. @throws CatchwordError RUN_NOT_ACTIVE if not all were looked up */
function sparedBy({ held, asked, living }: SampleAnswer): number[] {
  if (living.length === 0 || asked === held) return living.map(({ id }) => id);
  const hint = 'The list is outdated and too long to look up: make a new one with npx catchword sync --full.';
  throw new CatchwordError('RUN_NOT_ACTIVE', `of ${asked} products looked up, ${living.length} still exist`, { hint });
}

/**
 * Applies the removals that a run holds, after looking up whether the source has the products again.
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE; what `lookUp` throws
 */
async function approve({ store, leased, clock, runId, lookUp, record }: Review): Promise<void> {
  const before = requireHeld(store, runId);
  const held = store.removals.heldCount(runId);
  const answer = await lookUp(MOST);
  const spared = answer === null ? [] : sparedBy(answer);
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

/** What the source said of a sample, product by product. */
function sampleText({ held, asked, living, withdrawn, gone }: SampleAnswer): string {
  if (held === 0) return 'it holds no product any more: all were seen, or removed, since';
  const answers = { 'it has': living, 'it has withdrawn': withdrawn, 'it does not have': gone };
  const parts = Object.entries(answers).flatMap(([words, some]) =>
    some.length === 0 ? [] : `${words} ${some.length} (${some.map(({ vbid }) => vbid).join(', ')})`,
  );
  const advice = living.length === 0 ? '' : '. Its list missed living products: reject, and start a full load';
  return printable(`the service was asked about ${asked} of ${plural(held, 'product')}: ${parts.join('; ')}${advice}`);
}

/**
 * Asks the source about a sample of what a run would remove; the answer is the outcome, and nothing else is changed.
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE; CONFIG_INVALID without a lookup path; what `lookUp` throws
 */
async function check({ store, leased, runId, lookUp, record }: Review): Promise<void> {
  requireHeld(store, runId);
  const answer = await lookUp(FEW);
  if (answer === null) {
    const hint = 'Set it to the path that reads one product, or look at some products in the shop.';
    throw new CatchwordError('CONFIG_INVALID', 'CATCHWORD_LOOKUP_PATH is not set', { hint });
  }
  leased.write((writer) => record(writer, sampleText(answer)));
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
export const REVIEWS = { approve, reject, check, undo } as const;

export function isReview(action: string): action is keyof typeof REVIEWS {
  return Object.hasOwn(REVIEWS, action);
}
