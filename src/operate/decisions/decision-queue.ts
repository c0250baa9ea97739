import { isMirrorLost } from '@catchword/base/errors';
import { repeat, type Service } from '@catchword/base/lifecycle';
import { errorFields } from '@catchword/base/log';
import { createTrouble } from '@catchword/base/trouble';
import { covers, type Run, type RunKind } from '@catchword/catalog/run-types';
import type { ActionRow } from '../../store/rows/decision-rows.ts';
import type { KeeperWriter } from '../../store/schema/writers.ts';
import type { Keeper } from '../../sync/keeper.ts';
import { createReviews } from './carry-out-review.ts';
import { LONGEST_WAIT_MS } from './check-pause.ts';
import { isReview, type ReviewOptions } from './held-run-review.ts';

/*
 * Decisions that the process which keeps the mirror carries out, in the order of asking:
 *
 *   asked ── a run is under way, or unfinished ──► waits; a start that this run covers is done
 *     │ between two runs
 *     ├─ asked more than an hour ago ─► failed
 *     └─ carried out ─► done | failed
 *
 * Each ends in the transaction that carries it out, so a process that dies in between has done nothing, and the next
 * one takes the decision again. A decision that another process has ended meanwhile is not carried out.
 */

/** How often to look for decisions; milliseconds. */
const LOOK_MS = 1_000;

export interface AskedOptions extends ReviewOptions {
  readonly keeper: Pick<Keeper, 'run'>;
}

function kindOf(target: string): RunKind {
  return target === 'full' ? 'full' : 'delta';
}

export type AskedDecisions = ReturnType<typeof createDecisionQueue>;

export function createDecisionQueue({ store, keeper, clock, log, lookUp }: AskedOptions) {
  const reviews = createReviews({ store, clock, log, lookUp });
  const fail = (row: ActionRow, why: string) => store.request((writer) => reviews.end(writer, row, 'failed', why));

  async function start(row: ActionRow, kind: RunKind, signal: AbortSignal): Promise<Run | null> {
    function onStart(writer: KeeperWriter, run: Run, resumed: boolean): void {
      const other = run.kind === kind ? '' : ': it reads everything, because a delta is not enough now';
      const outcome = resumed
        ? `run ${run.id}, which was unfinished, continues and covers it`
        : `run ${run.id} started${other}`;
      reviews.endOnce(writer, row, outcome);
    }
    try {
      return await keeper.run({ kind }, signal, onStart);
    } catch (error) {
      // Once the run has started, it shows its errors by itself.
      if (store.actions.get(row.id)?.state === 'asked') reviews.fail(row, error, signal);
      throw error;
    }
  }

  return {
    /**
     * The first decision that can be carried out now: a run to start, or another one, whose errors are recorded; null if
     * there is none. Call it while this process makes no run.
     */
    next: () => {
      for (const row of store.actions.asked()) {
        // A time in the future shows that the clock was put back.
        if (Math.abs(clock.now() - row.at) > LONGEST_WAIT_MS) {
          fail(row, 'it waited longer than an hour, and was not carried out');
          continue;
        }
        if (store.keeperLease.holder(clock.now()) !== null) return null;
        const { action } = row;
        if (action === 'start') {
          const kind = kindOf(row.target);
          return { starts: kind, work: (signal: AbortSignal) => start(row, kind, signal) };
        }
        if (store.runs.unfinished() !== undefined) continue;
        if (isReview(action)) return { starts: null, work: (signal: AbortSignal) => reviews.carryOut(row, signal) };
        fail(row, 'this version of catchword cannot carry it out');
      }
      return null;
    },
    /** Ends each decision to start a run that the current one covers. @returns whether a decision waited */
    look: (): boolean => {
      const rows = store.actions.asked();
      const starts = rows.filter(({ action }) => action === 'start');
      if (starts.length === 0 || store.keeperLease.holder(clock.now()) === null) return rows.length > 0;
      const run = store.runs.unfinished();
      const covered = run === undefined ? [] : starts.filter(({ target }) => covers(run.kind, kindOf(target)));
      if (run === undefined || covered.length === 0) return true;
      store.request((writer) => {
        if (writer.runs.unfinished()?.id !== run.id) return;
        for (const row of covered) reviews.end(writer, row, 'done', `run ${run.id}, which is under way, covers it`);
      });
      return true;
    },
  };
}

/** Looks for new decisions every second. @param wake called while a decision waits */
export function watchDecisions(
  decisions: Pick<AskedDecisions, 'look'>,
  { clock, log }: Pick<AskedOptions, 'clock' | 'log'>,
  wake: () => void,
): Service {
  const trouble = createTrouble({ clock, log, wrong: 'decisions of operators could not be read' });

  function turn(): void {
    try {
      if (decisions.look()) wake();
    } catch (error) {
      if (isMirrorLost(error)) throw error;
      trouble.failed('', errorFields(error));
    }
  }

  return repeat({ name: 'decisions', clock, everyMs: LOOK_MS, turn });
}
