import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { FetchTask } from '../../catalog/page.ts';
import type { EncodedOutcome } from './codec.ts';
import { JOB_OPTIONS, jobId, PAUSE_JOB, type PauseMessage, type QueuePlace, queueNames } from './jobs.ts';

/** The apply queues of all mirrors that a fetcher reads for. */
export interface ApplyQueues {
  addOutcome(task: FetchTask, outcome: EncodedOutcome): Promise<void>;
  addPause(task: FetchTask, pauseMs: number): Promise<void>;
  close(): Promise<void>;
}

export function connectApplyQueues(place: QueuePlace, connection: Redis): ApplyQueues {
  const { prefix, apply } = queueNames(place);
  const queues = new Map<string, Queue>();

  function queueOf({ mirror }: FetchTask): Queue {
    const known = queues.get(mirror);
    if (known !== undefined) return known;
    const queue = new Queue(apply(mirror), { connection, prefix });
    // The connection logs its errors itself; without a listener they would be thrown.
    queue.on('error', () => {});
    queues.set(mirror, queue);
    return queue;
  }

  return {
    addOutcome: async (task, outcome) => {
      await queueOf(task).add('apply', outcome, { ...JOB_OPTIONS, jobId: jobId(task) });
    },
    addPause: async (task, pauseMs) => {
      const message: PauseMessage = { pauseMs };
      await queueOf(task).add(PAUSE_JOB, message, JOB_OPTIONS);
    },
    close: async () => {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}
