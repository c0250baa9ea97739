import type { Clock } from '../../base/clock.ts';
import { errorFields, type Logger } from '../../base/log.ts';
import { createTrouble } from '../../base/trouble.ts';
import { type FetchOutcome, type FetchTask, taskId } from '../../catalog/page-types.ts';
import type { createLearner } from '../../pace/learned-rate.ts';

export type Handle = (outcome: FetchOutcome) => Promise<void>;

/** Delivers outcomes to the keeper of `mirror`, one at a time, in the order of arrival. */
export function createDelivery(
  mirror: string,
  learner: ReturnType<typeof createLearner>,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
) {
  const trouble = createTrouble({ clock, log, level: 'error', wrong: 'a fetched page was not applied' });
  let taker: Handle | undefined;
  /** Runs whose tasks this keeper has asked for. Another queue of the mirror may look up products of a held run. */
  const runs = new Set<number>();
  /** Ids of the tasks delivered since the keeper last asked. */
  let delivered = new Set<string>();
  let idle: Promise<void> = Promise.resolve();

  async function deliver(decoding: FetchOutcome | Promise<FetchOutcome>, handle: Handle): Promise<void> {
    try {
      const outcome = await decoding;
      learner.asked(outcome.requests);
      if (outcome.kind === 'captured') learner.succeeded();
      await handle(outcome);
      delivered.add(taskId(outcome.task));
    } catch (error) {
      // Not retried: the keeper adds the missing page again.
      const fields = errorFields(error);
      trouble.failed(fields.code ?? '', fields);
    }
  }

  /** Does `work` after all that was given before; it must not throw. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    idle = idle.then(work);
    return idle;
  }

  return {
    begin: (handle: Handle): void => {
      taker = handle;
    },
    /** Ends what `handOver` takes. */
    end: (): void => {
      taker = undefined;
      runs.clear();
    },
    /** @returns tells whether a task has been delivered since */
    ask: (tasks: readonly FetchTask[]): ((task: FetchTask) => boolean) => {
      for (const { runId } of tasks) runs.add(runId);
      const since = new Set<string>();
      delivered = since;
      return (task) => since.has(taskId(task));
    },
    inTurn,
    deliver: (decoding: Promise<FetchOutcome>, handle: Handle): Promise<void> => {
      // An error is reported in turn.
      decoding.catch(() => {});
      return inTurn(() => deliver(decoding, handle));
    },
    /** As `BullQueue.handOver`. */
    handOver: async (outcome: FetchOutcome): Promise<boolean> => {
      const handle = taker;
      const { task } = outcome;
      if (handle === undefined || task.mirror !== mirror || !runs.has(task.runId)) return false;
      await inTurn(() => deliver(outcome, handle));
      return true;
    },
    /** Resolves when everything that was given is delivered. */
    idle: () => idle,
  };
}
