import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import type { Logger } from '@catchword/base/log';
import { printable } from '@catchword/base/printable';
import { plural } from '../../report/text.ts';
import type { LeasedKeeper } from '../../store/schema/writers.ts';
import type { Store } from '../../store/store.ts';
import { approveRun, rejectRun, requireHeld, undoRun } from '../../sync/approve-held-run.ts';
import type { SampleAnswer } from '../../sync/recheck-held.ts';

export interface ReviewOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Looks up at most `most` products that a run holds. @returns null without a lookup path */
  readonly lookUp: (runId: number, most: number, signal: AbortSignal) => Promise<SampleAnswer | null>;
}

/** A run to review. The lease of its mirror is held, so that no run writes meanwhile. */
interface Review extends ReviewOptions {
  readonly leased: LeasedKeeper;
  readonly runId: number;
  readonly signal: AbortSignal;
}

/** Makes a decision within the write transaction of its caller. @returns the outcome, one sentence */
type Decide = () => string;

/** Products that are looked up for an operator who has not decided yet, and before they are removed. */
const [FEW, MOST] = [20, 200];

/** @returns ids of the products that the source still has. @throws CatchwordError RUN_NOT_ACTIVE if not all were looked up */
function sparedBy({ held, asked, living }: SampleAnswer): number[] {
  if (living.length === 0 || asked === held) return living.map(({ id }) => id);
  const hint = 'The list is outdated and too long to look up: make a new one with npx catchword sync --full.';
  throw new CatchwordError('RUN_NOT_ACTIVE', `of ${asked} products looked up, ${living.length} still exist`, { hint });
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
 * Reviews by the names of their actions. Each asks the source what it needs, and leaves what it changes to `Decide`.
 * @throws CatchwordError LEASE_LOST, NOT_FOUND, RUN_NOT_ACTIVE; what `lookUp` throws
 */
export const REVIEWS = {
  /** Applies the removals that a run holds, unless the source has the products again. */
  approve: async ({ store, leased, clock, runId, lookUp, signal }: Review): Promise<Decide> => {
    const before = requireHeld(store, runId);
    const held = store.removals.heldCount(runId);
    const answer = await lookUp(runId, MOST, signal);
    const spared = answer === null ? [] : sparedBy(answer);
    return () => {
      const removed = approveRun(leased, runId, clock.now(), spared).removed - before.removed;
      const kept = `; ${plural(held - removed, 'product')} kept because the source still has them`;
      return `run ${runId} is approved: ${plural(removed, 'product')} removed${held > removed ? kept : ''}`;
    };
  },
  /** Drops the removals that a run holds. */
  reject:
    async ({ leased, runId }: Review): Promise<Decide> =>
    () => {
      rejectRun(leased, runId);
      return `run ${runId} is rejected: nothing is removed`;
    },
  /** Asks the source about a sample of what a run would remove; the answer is the outcome, and nothing is changed. */
  check: async ({ store, runId, lookUp, signal }: Review): Promise<Decide> => {
    requireHeld(store, runId);
    const answer = await lookUp(runId, FEW, signal);
    if (answer !== null) return () => sampleText(answer);
    const hint = 'Set it to the path that reads one product, or look at some products in the shop.';
    throw new CatchwordError('CONFIG_INVALID', 'CATCHWORD_LOOKUP_PATH is not set', { hint });
  },
  /** Restores what a run removed. */
  undo:
    async ({ leased, clock, runId }: Review): Promise<Decide> =>
    () => {
      const restored = undoRun(leased, runId, clock.now());
      if (restored === 0) return `run ${runId} removed nothing that could be restored`;
      return `restored ${plural(restored, 'product')} that run ${runId} removed`;
    },
};

export function isReview(action: string): action is keyof typeof REVIEWS {
  return Object.hasOwn(REVIEWS, action);
}
