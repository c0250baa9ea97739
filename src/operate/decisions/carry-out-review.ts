import { CatchwordError, hasCode, isMirrorLost } from '@catchword/base/errors';
import { errorFields, type Tell } from '@catchword/base/log';
import type { ActionRow } from '../../store/rows/decision-rows.ts';
import { holdLease } from '../../store/schema/lease.ts';
import { type Recorder, record, requireReviewable, whyFailed } from './decision-record.ts';
import type { Decision } from './decision-types.ts';
import { isReview, REVIEWS, type ReviewOptions } from './held-run-review.ts';

/** How often a command looks whether its decision has ended; milliseconds. */
const LOOK_MS = 250;

/** Carries out decisions that wait, and ends them: in the daemon, or in a command if none is active. */
export function createReviews(options: ReviewOptions) {
  const { store, clock, log } = options;
  /** Ends a decision. @returns false if another process has ended it */
  function end({ actions }: Recorder, { id, action, target }: ActionRow, state: 'done' | 'failed', outcome: string) {
    const ended = actions.end(id, { state, outcome, endedAt: clock.now() });
    if (ended) log.info({ what: `${action} ${target}`, reason: outcome }, 'a decision of an operator has ended');
    return ended;
  }

  /** Ends it as done, within a transaction that must not commit if another process has ended it. */
  function endOnce(writer: Recorder, row: ActionRow, outcome: string): void {
    if (end(writer, row, 'done', outcome)) return;
    throw new CatchwordError('RUN_CANCELLED', 'another process has carried out this decision');
  }

  /** Records why it failed. Leaves it asked if it can be carried out later as it is. */
  function fail(row: ActionRow, error: unknown, signal: AbortSignal): void {
    if (signal.aborted || isMirrorLost(error) || hasCode(error, 'MIRROR_BUSY', 'LEASE_LOST')) return;
    if (!(error instanceof CatchwordError)) log.error(errorFields(error), 'a decision of an operator failed');
    store.request((writer) => end(writer, row, 'failed', whyFailed(error)));
  }

  async function perform(row: ActionRow, signal: AbortSignal, isReady = (): boolean => true): Promise<void> {
    const { id, action, target } = row;
    if (!isReview(action)) throw new Error(`${action} is not a review`);
    await holdLease(store.keeperLease, clock, log, async (leased) => {
      // Another process may have worked until now.
      if (store.actions.get(id)?.state !== 'asked' || !isReady()) return;
      const decide = await REVIEWS[action]({ ...options, leased, runId: Number(target), signal });
      leased.write((writer) => endOnce(writer, row, decide()));
    });
  }

  return {
    end,
    endOnce,
    fail,
    /** Carries it out, or does nothing if it has ended or must wait. @throws what the review throws */
    perform,
    /** As `perform`; records an error. @returns false if it could not be carried out now, and still waits */
    carryOut: async (row: ActionRow, signal: AbortSignal): Promise<boolean> => {
      try {
        // An unfinished run may have seen products that a held run would remove.
        await perform(row, signal, () => store.runs.unfinished() === undefined);
      } catch (error) {
        fail(row, error, signal);
        if (isMirrorLost(error)) throw error;
      }
      return store.actions.get(row.id)?.state !== 'asked';
    },
  };
}

/**
 * Asks for a review of a run, and waits for its end: the active daemon carries it out, or this process without one.
 * @param tell called before this process waits for a daemon
 * @throws CatchwordError NOT_FOUND, RUN_NOT_ACTIVE, MIRROR_BUSY, what `lookUp` throws; then nothing was changed
 */
export async function reviewNow(
  options: ReviewOptions & { readonly tell: Tell },
  decision: Decision,
  signal: AbortSignal,
): Promise<ActionRow> {
  const { store, clock, tell } = options;
  const reviews = createReviews(options);
  requireReviewable(store, decision);
  const id = store.request((writer) => record(writer, decision, clock.now()));
  for (let told = false; ; ) {
    const row = store.actions.get(id);
    if (row === undefined) throw new CatchwordError('NOT_FOUND', `decision ${id} is not recorded any more`);
    if (row.state === 'done') return row;
    if (row.state === 'failed') throw new CatchwordError('RUN_NOT_ACTIVE', row.outcome ?? 'it failed');
    const daemon = store.daemonLease.holder(clock.now());
    try {
      if (daemon === null) {
        await reviews.perform(row, signal);
        continue;
      }
      if (!told)
        tell({ message: `process ${daemon.pid} on ${daemon.host} carries it out when it makes no run`, fields: {} });
      told = true;
      await clock.sleep(LOOK_MS, signal);
    } catch (error) {
      const why = signal.aborted ? 'the command that asked for it was interrupted' : whyFailed(error);
      store.request((writer) => reviews.end(writer, row, 'failed', why));
      throw error;
    }
  }
}
