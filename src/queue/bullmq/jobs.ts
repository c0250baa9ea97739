import { ErrorCode, type Job, type Processor, Queue, WaitingError, Worker, type WorkerOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import * as z from 'zod';
import { type FetchTask, taskId } from '../../catalog/page.ts';
import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { connectRedis, cutRedis } from './redis.ts';

/** Where the queues are; the same for the keeper and the fetchers. */
export interface QueuePlace {
  /** An address of the form of REDIS_URL. */
  readonly redisUrl: string;
  /** Prefix of every key. Default `catchword`. */
  readonly prefix?: string;
  /** Identifies what is read, because several catalogs may share one Redis; see `sourceId`. */
  readonly source: string;
}

/** What a worker needs besides its job. */
interface WorkerPlace extends QueuePlace {
  readonly clock: Clock;
  readonly log: Logger;
}

/** Names the queues of a source. Its mirrors share the fetchers, and so the rate limit; each has its own `apply` queue. */
export function queueNames({ source }: QueuePlace) {
  return {
    fetch: `fetch-${source}`,
    runs: `runs-${source}`,
    apply: (mirror: string) => `apply-${source}-${mirror}`,
  };
}

/** Name of a job in the apply queue that reports a pause or a refusal to the keeper. Its data is a `PAUSE_MESSAGE`. */
export const PAUSE_JOB = 'pause';
export const PAUSE_MESSAGE = z.object({
  /** 0 if the source asked for none. */
  pauseMs: z.number().min(0),
  /** Whether the source refused a request because there were too many. */
  refused: z.boolean(),
});

/** Last part of the key whose value changes when an operator ends a pause; fetchers then forget earlier pauses. */
export const PAUSE_ENDED_KEY = 'forgotten-pauses';

/** Identifies the jobs of a task. Contains no `:`, which BullMQ reserves. */
export function jobId(task: FetchTask): string {
  return `${task.mirror}_${taskId(task)}`;
}

/** Deletes jobs when they end, so that their ids can be added again. */
export const JOB_OPTIONS = { removeOnComplete: true, removeOnFail: true, stackTraceLimit: 0 } as const;

/** Lower than that of a job without a priority. */
const LIST_PRIORITY = 1;

/**
 * The fetcher's `backoffStrategy` delays each retry of a fetch job. Deltas and lookups come before the pages of a list,
 * which another mirror of the source may be reading for hours.
 */
export function fetchJobOptions(task: FetchTask) {
  const isList = task.from === null && task.vbid === undefined;
  return {
    ...JOB_OPTIONS,
    attempts: task.maxAttempts,
    backoff: { type: 'custom' },
    jobId: jobId(task),
    ...(isList && { priority: LIST_PRIORITY }),
  };
}

/** The shortest pause worth a round trip to Redis. With a higher rate, requests come in bursts, one in each pause. */
const MIN_PAUSE_MS = 20;

/**
 * The arguments of BullMQ's limiter, which counts jobs as they become active, over all workers of a queue. Without a rate
 * limit it is never reached: a queue without a limiter would ignore the pause of `Retry-After`.
 * @param intervalMs time between two requests of all fetchers together; null for no limit
 */
export function limiterOf(intervalMs: number | null): readonly [max: number, durationMs: number] {
  if (intervalMs === null) return [1_000_000_000, 1];
  const max = Math.max(1, Math.floor(MIN_PAUSE_MS / intervalMs));
  return [max, Math.ceil(max * intervalMs)];
}

/** A job whose worker died is restarted after `lockDuration` and up to two `stalledInterval`s (milliseconds). */
const WORKER_OPTIONS = { lockDuration: 15_000, stalledInterval: 5_000 } as const;

const CLOSE_TIMEOUT_MS = 3_000;
const PREFIX = 'catchword';

/** Errors of a job that Redis has lost or another worker has taken over. It runs again, so nothing is lost. */
const NO_LONGER_OURS: readonly unknown[] = [
  ErrorCode.JobNotExist,
  ErrorCode.JobLockNotExist,
  ErrorCode.JobNotInState,
  ErrorCode.JobLockMismatch,
];

export function openQueue({ prefix = PREFIX }: QueuePlace, name: string, connection: Redis): Queue {
  const queue = new Queue(name, { connection, prefix });
  // The connection logs its errors itself; without a listener they would be thrown.
  queue.on('error', () => {});
  return queue;
}

/** Returns an active job to the queue, for another worker. */
export async function returnToQueue(job: Job, token: string | undefined): Promise<never> {
  await job.moveToWait(token);
  throw new WaitingError();
}

/** Starts a worker with a connection of its own. */
export function startWorker(place: WorkerPlace, name: string, work: Processor, options: Partial<WorkerOptions> = {}) {
  const { redisUrl, prefix = PREFIX, clock, log } = place;
  const connection = connectRedis(redisUrl, log, 'wait');
  const worker = new Worker(name, work, { ...WORKER_OPTIONS, ...options, prefix, connection });
  worker.on('error', (error) => {
    // While the connection is down, that is already logged.
    const expected = connection.status !== 'ready' || ('code' in error && NO_LONGER_OURS.includes(error.code));
    log[expected ? 'debug' : 'warn']({ queue: name, reason: messageOf(error) }, 'queue error');
  });

  return {
    worker,
    connection,
    /**
     * Stops taking jobs, waits for the active ones and disconnects. If Redis is gone or stops responding, cuts the
     * connections; another worker then repeats a job that could not be marked as done.
     * @param idle resolves when no job needs this process any more; called after the worker has stopped taking jobs
     */
    close: async (idle: () => Promise<unknown> = async () => {}): Promise<void> => {
      const closed = worker.close(connection.status !== 'ready');
      await idle();
      const timer = new AbortController();
      await Promise.race([closed, clock.sleep(CLOSE_TIMEOUT_MS, timer.signal)]).finally(() => timer.abort());
      cutRedis(connection);
      worker.getBackend().blockingClient?.then(cutRedis, () => {});
    },
  };
}
