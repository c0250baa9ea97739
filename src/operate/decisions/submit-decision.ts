import { CatchwordError } from '@catchword/base/errors';
import { plural } from '../../report/text.ts';
import type { Store } from '../../store/store.ts';
import { cancelRun } from '../../sync/finish-run.ts';
import { record, requireReviewable, whyFailed } from './decision-record.ts';
import { type Decision, isSinkAction } from './decision-types.ts';
import { changeSink } from './sink-actions.ts';

/*
 *   pause, resume, retry, replay, skip, skip-all, release, cancel ── carried out at once ► done | failed
 *   approve, reject, check, undo, start ► asked ── the process that keeps the mirror ─────► done | failed
 *
 * A decision and its record are written in one transaction. The second kind changes what only the holder of the
 * keeper's lease may write: carry-out-review.ts does, in the daemon between two runs (decision-queue.ts), or in a command without one.
 */

/** @returns what was done; null if the decision waits for the keeper */
function carryOut(store: Store, decision: Decision, nowMs: number): string | null {
  const { action, target, argument } = decision;
  if (action === 'cancel') {
    const { pages } = cancelRun(store, Number(target), nowMs);
    return `run ${target} is cancelled (${plural(pages, 'applied page')} kept)`;
  }
  if (isSinkAction(action)) return store.request((writer) => changeSink(writer, action, target, argument, nowMs));
  if (action !== 'start') requireReviewable(store, decision);
  return null;
}

/**
 * Carries out a decision at once, and records it, in one transaction.
 * @returns what was done
 * @throws CatchwordError NOT_FOUND, RUN_NOT_ACTIVE, USAGE; then nothing is recorded
 */
export function carryOutNow(store: Store, decision: Decision, nowMs: number): string {
  return store.request((writer) => {
    const outcome = carryOut(store, decision, nowMs);
    if (outcome === null) throw new Error(`${decision.action} waits for the keeper`);
    record(writer, decision, nowMs, 'done', outcome);
    return outcome;
  });
}

/** The command that carries out a decision which waits for the keeper. */
function commandOf({ action, target }: Decision): string {
  if (action === 'start') return `npx catchword sync${target === 'full' ? ' --full' : ''}`;
  return `npx catchword ${action === 'check' || action === 'undo' ? 'runs ' : ''}${action} ${target}`;
}

/**
 * Records a decision of an operator. Carries it out at once, or leaves it to the process that keeps the mirror. A
 * decision that cannot be carried out is recorded with the reason, and changes nothing else.
 * @param nowMs local clock
 * @returns the id of the record
 * @throws CatchwordError as `createWriteTransaction`; then nothing is recorded
 */
export function decide(store: Store, decision: Decision, nowMs: number): number {
  return store.request((writer) => {
    const end = (state: 'done' | 'failed', outcome: string) => record(writer, decision, nowMs, state, outcome);
    try {
      // A transaction within this one: what fails is rolled back, and the record stays.
      const outcome = store.request(() => carryOut(store, decision, nowMs));
      if (outcome !== null) return end('done', outcome);
    } catch (error) {
      if (error instanceof CatchwordError) return end('failed', whyFailed(error));
      throw error;
    }
    if (store.daemonLease.holder(nowMs) !== null) return record(writer, decision, nowMs);
    return end('failed', `no daemon is running; start it, or run: ${commandOf(decision)}`);
  });
}
