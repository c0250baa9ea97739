import { createHash } from 'node:crypto';
import { ErrorCode, type Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { type FetchTask, taskId } from '../../catalog/page.ts';
import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { cutRedis, doneWithin } from './redis.ts';

/** What the keeper and the fetchers must agree on, and what is the same for their workers. */

/** Which queues: the same on both sides. */
export interface QueuePlace {
  /** `redis://[user:password@]host:port[/db]` */
  readonly redisUrl: string;
  /** In front of every key. Default `catchword`. */
  readonly prefix?: string;
  /** Tells apart services that are read through one Redis; see `sourceId`. */
  readonly source: string;
}

/**
 * All mirrors of a source share its fetchers, and so its rate limit. What was read goes back to the keeper that asked:
 * each mirror has an `apply` queue of its own.
 */
export function queueNames({ prefix = 'catchword', source }: QueuePlace) {
  return {
    prefix,
    fetch: `fetch-${source}`,
    runs: `runs-${source}`,
    apply: (mirror: string) => `apply-${source}-${mirror}`,
  };
}

/** In the apply queue: tells the keeper of a pause that a fetcher was asked for. Its data is a `PauseNews`. */
export const PAUSE_JOB = 'pause';
export const PAUSE_NEWS = z.object({ pauseMs: z.number().positive() });
export type PauseNews = z.infer<typeof PAUSE_NEWS>;

/**
 * End of a key of the fetch queue whose value changes whenever an operator asks the source although it asked for a pause:
 * fetchers forget the pauses that they were asked for before.
 */
export const FORGOTTEN_KEY = 'forgotten-pauses';

/** Without a `:`, which BullMQ keeps for itself. */
export function jobId(task: FetchTask): string {
  return `${task.mirror}_${taskId(task)}`;
}

/** A short name of a source, the same in every process that reads it. */
export function sourceId(baseUrl: string): string {
  return createHash('sha256').update(baseUrl).digest('hex').slice(0, 12);
}

/** A job that is over leaves nothing behind, so that its id can be added again. */
export const JOB_OPTIONS = { removeOnComplete: true, removeOnFail: true, stackTraceLimit: 0 } as const;

/** Every failed try of a fetch job comes back through the fetcher's `backoffStrategy`. */
export function fetchJobOptions(task: FetchTask) {
  return { ...JOB_OPTIONS, attempts: task.maxAttempts, backoff: { type: 'custom' } };
}

/** A job whose worker died is taken up again after `lockDuration` and up to two `stalledInterval`s (milliseconds). */
export const WORKER_OPTIONS = { lockDuration: 15_000, stalledInterval: 5_000 } as const;

const CLOSE_TIMEOUT_MS = 3_000;

/** Of a job that Redis has forgotten, or that another worker took over. It is done again; nothing is lost. */
const NO_LONGER_OURS: readonly unknown[] = [
  ErrorCode.JobNotExist,
  ErrorCode.JobLockNotExist,
  ErrorCode.JobNotInState,
  ErrorCode.JobLockMismatch,
];

/** Logs what a worker cannot do; while the connection is down, its own line in the log says all there is to say. */
export function logErrors(worker: Worker, connection: Redis, log: Logger): void {
  worker.on('error', (error) => {
    const expected = connection.status !== 'ready' || ('code' in error && NO_LONGER_OURS.includes(error.code));
    log[expected ? 'debug' : 'warn']({ queue: worker.name, reason: messageOf(error) }, 'the queue reports an error');
  });
}

/**
 * Takes no more jobs, waits for those in hand, and disconnects. Where Redis has gone, or stops answering, the
 * connections are cut; a job that could not be marked as done is then done again by another worker.
 * @param inHand resolves when no job needs this process any more; called after the worker has stopped taking jobs
 */
export async function closeWorker(
  worker: Worker,
  connection: Redis,
  clock: Clock,
  inHand: () => Promise<unknown>,
): Promise<void> {
  const closed = worker.close(connection.status !== 'ready');
  await inHand();
  await doneWithin(closed, CLOSE_TIMEOUT_MS, clock);
  cutRedis(connection);
  worker.getBackend().blockingClient?.then(cutRedis, () => {});
}
