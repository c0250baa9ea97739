import { randomUUID } from 'node:crypto';
import { backoffMs } from '@catchword/base/backoff';
import { reasonOf } from '@catchword/base/redis-place';
import { type FetchTask, taskId } from '@catchword/catalog/page-types';
import { ErrorCode, type Job, type Processor, Queue, WaitingError, Worker, type WorkerOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import * as z from 'zod';
import { type ConnectionOptions, connectRedis, cutRedis } from './redis-connection.ts';

/** Where the queues are; the same for the keeper and the fetchers. */
export interface QueuePlace {
  readonly redisUrl: string;
  readonly redisUrlAgain?: ConnectionOptions['redisUrlAgain'];
  /** Identifies what is read, because several catalogs may share one Redis; see `sourceId`. */
  readonly source: string;
}

type WorkerPlace = QueuePlace & ConnectionOptions;

export interface QueueOptions extends QueuePlace, Omit<ConnectionOptions, 'trouble'> {
  /** Default: one of its own. */
  readonly trouble?: ConnectionOptions['trouble'] | undefined;
}

/** Names the queues of a source. Its mirrors share the fetchers, and so the rate limit; each has its own `apply` queue. */
export function queueNames({ source }: Pick<QueuePlace, 'source'>) {
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

/** Identifies the jobs of a task. Contains no `:`, which BullMQ reserves. */
export function jobId(task: FetchTask): string {
  return `${task.mirror}_${taskId(task)}`;
}

/** Deletes jobs when they end, so that their ids can be added again. */
export const JOB_OPTIONS = { removeOnComplete: true, removeOnFail: true, stackTraceLimit: 0 } as const;

/** Lower than the priority of a job without one. */
const LIST_PRIORITY = 1;

/** Deltas and lookups come before the pages of a list, which another mirror of the source may be reading for hours. */
export function fetchJobOptions(task: FetchTask) {
  const isList = task.from === null && task.vbid === undefined;
  return { ...JOB_OPTIONS, jobId: jobId(task), ...(isList && { priority: LIST_PRIORITY }) };
}

/** A job whose worker died is restarted after `lockDuration` and up to two `stalledInterval`s (milliseconds). */
const WORKER_OPTIONS = { lockDuration: 15_000, stalledInterval: 5_000 } as const;

const CLOSE_TIMEOUT_MS = 3_000;
/** Begins every key. */
export const PREFIX = 'catchword';

/** Errors of a job that Redis has lost or another worker has taken over. It runs again, so nothing is lost. */
const NO_LONGER_OURS: readonly unknown[] = [
  ErrorCode.JobNotExist,
  ErrorCode.JobLockNotExist,
  ErrorCode.JobNotInState,
  ErrorCode.JobLockMismatch,
];

/** The same, without a code. */
const NOT_RENEWED = 'could not renew lock';

export function openQueue(name: string, connection: Redis): Queue {
  const queue = new Queue(name, { connection, prefix: PREFIX });
  // The connection logs its errors itself; without a listener they would be thrown.
  queue.on('error', () => {});
  return queue;
}

/** Adds, takes and removes a job, as keepers and fetchers do, in a queue of its own. @throws the first error of Redis */
export async function tryJob(connection: Redis): Promise<void> {
  const options = { connection, prefix: PREFIX };
  const [jobId, token] = ['check', 'token'];
  const queue = new Queue(`check-${randomUUID()}`, { ...options, skipMetasUpdate: true });
  const worker = new Worker(queue.name, null, { ...options, autorun: false });
  // The calls below throw the same errors.
  queue.on('error', () => {});
  worker.on('error', () => {});
  try {
    // No job needs it, but a keeper does.
    await connection.time();
    await queue.add('check', {}, { ...JOB_OPTIONS, jobId });
    await worker.getBackend().waitForJob(1);
    const job = await worker.getNextJob(token, { block: false });
    await job?.extendLock(token, WORKER_OPTIONS.lockDuration);
    await job?.moveToCompleted(null, token, false);
  } finally {
    // Not by a script, which may be what Redis refuses.
    const keys = [jobId, `${jobId}:lock`].map((key) => queue.toKey(key));
    await connection.del(...Object.values(queue.getBackend().keys), ...keys).catch(() => {});
    await Promise.all([worker.close(true), queue.close()]);
  }
}

/** Returns an active job to the queue, for another worker. */
export async function returnToQueue(job: Job, token: string | undefined): Promise<never> {
  await job.moveToWait(token);
  throw new WaitingError();
}

/** BullMQ asks again at once when Redis answers with an error. Here it waits first, longer after each error in a row. */
function patient<Asked extends unknown[], Answer>(
  ask: (...asked: Asked) => Promise<Answer>,
  { clock, trouble }: WorkerPlace,
  closing: AbortSignal,
): (...asked: Asked) => Promise<Answer> {
  let errors = 0;
  return async (...asked) => {
    const pauseMs = backoffMs(errors, () => clock.random());
    if (errors > 0) await clock.sleep(pauseMs, closing);
    try {
      const answer = await ask(...asked);
      errors = 0;
      trouble.passed();
      return answer;
    } catch (error) {
      errors++;
      throw error;
    }
  };
}

/** Starts a worker with a connection of its own. */
export function startWorker(place: WorkerPlace, name: string, work: Processor, options: Partial<WorkerOptions> = {}) {
  const { redisUrl, clock, log, trouble } = place;
  const connection = connectRedis(redisUrl, place, 'wait');
  const worker = new Worker(name, work, { ...WORKER_OPTIONS, ...options, prefix: PREFIX, connection, autorun: false });
  const closing = new AbortController();
  worker.on('closing', () => closing.abort());
  worker.on('error', (error) => {
    const isLost = ('code' in error && NO_LONGER_OURS.includes(error.code)) || error.message.startsWith(NOT_RENEWED);
    const isOver = closing.signal.aborted || isLost;
    // While the connection is down, that is already logged.
    if (isOver || connection.status !== 'ready') log.debug({ queue: name, reason: reasonOf(error) }, 'queue error');
    else trouble.failed(`work on ${name}`, reasonOf(error));
  });
  const backend = worker.getBackend();
  backend.moveToActive = patient(backend.moveToActive.bind(backend), place, closing.signal);
  backend.waitForJob = patient(backend.waitForJob.bind(backend), place, closing.signal);
  worker.run().catch((error: unknown) => worker.emit('error', error as Error));

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
