import { randomUUID } from 'node:crypto';
import { type Job, Queue, WaitingError, Worker } from 'bullmq';
import type { FetchOutcome, FetchTask } from '../../catalog/page.ts';
import { type Clock, LONGEST_PAUSE_MS, type Pause } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import { createLog, errorFields, type Logger } from '../../log.ts';
import type { PageQueue } from '../queue.ts';
import { decodeOutcome } from './codec.ts';
import {
  closeWorker,
  FORGOTTEN_KEY,
  fetchJobOptions,
  jobId,
  logErrors,
  PAUSE_JOB,
  PAUSE_NEWS,
  type QueuePlace,
  queueNames,
  WORKER_OPTIONS,
} from './jobs.ts';
import { checkRedis, connectRedis, cutRedis } from './redis.ts';

export interface BullQueueOptions extends QueuePlace {
  /** Incarnation of the keeper's mirror; letters, digits and `-`. */
  readonly mirror: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the source asked a fetcher for a pause while it read for this mirror. Must not throw. */
  readonly onRateLimited?: (pause: Pause) => void;
}

export interface BullQueue extends PageQueue {
  /** Lets all fetchers ask the source again, although it asked for a pause. */
  forgetPause(): Promise<void>;
}

/**
 * The keeper's side of the queue in Redis.
 *
 * ```
 * keeper ── add ──► fetch jobs ──► fetchers, anywhere ──► apply jobs ── handle ──► keeper
 * ```
 * A job's id is the mirror and the task's id in both queues. A fetcher adds the apply job before its fetch job ends, so whoever looks
 * for the fetch job first and for the apply job after it cannot miss a task that is under way.
 *
 * Without Redis, `add` and `drop` do nothing but say so in the log: the keeper adds again what is still missing.
 *
 * @throws CatchwordError QUEUE_UNAVAILABLE, QUEUE_MISCONFIGURED as `checkRedis`
 */
export async function createBullQueue(options: BullQueueOptions): Promise<BullQueue> {
  const { redisUrl, clock, log, mirror, onRateLimited } = options;
  await checkRedis(redisUrl);
  const { prefix, ...names } = queueNames(options);
  // An outage is told once, by the connection of the worker.
  const producer = connectRedis(redisUrl, createLog('silent'), 'fail');
  const fetchQueue = new Queue(names.fetch, { connection: producer, prefix });
  const applyQueue = new Queue(names.apply(mirror), { connection: producer, prefix });
  const queues = [fetchQueue, applyQueue];
  // The connection logs for itself; without a listener the error would be thrown.
  for (const queue of queues) queue.on('error', () => {});
  await Promise.all(queues.map((queue) => queue.waitUntilReady()));

  let consumer: { readonly worker: Worker; readonly connection: typeof producer } | undefined;
  let inHand: Promise<void> = Promise.resolve();
  let closed: Promise<void> | undefined;

  async function unlessGone(what: string, work: () => Promise<void>): Promise<void> {
    if (closed !== undefined) return;
    try {
      await work();
    } catch (error) {
      const level = producer.status === 'ready' ? 'warn' : 'debug';
      log[level]({ what, reason: messageOf(error) }, 'Redis did not do what it was asked');
    }
  }

  async function isUnderWay(tasks: readonly FetchTask[]): Promise<boolean[]> {
    const pipeline = producer.pipeline();
    for (const task of tasks) {
      const id = jobId(task);
      pipeline.exists(fetchQueue.toKey(id)).exists(applyQueue.toKey(id));
    }
    const replies = ((await pipeline.exec()) ?? []).map(([error, reply]) => {
      if (error !== null) throw error;
      return reply === 1;
    });
    return tasks.map((_, index) => replies[2 * index] === true || replies[2 * index + 1] === true);
  }

  /** What is left of it is what Redis still holds fetchers back for: the news may have waited for this process. */
  async function notePause(data: unknown): Promise<void> {
    const { pauseMs } = PAUSE_NEWS.parse(data);
    const leftMs = Math.min(pauseMs, await fetchQueue.getRateLimitTtl());
    const since = clock.now();
    if (leftMs > 0) onRateLimited?.({ since, until: since + leftMs });
  }

  async function deliver(data: unknown, handle: (outcome: FetchOutcome) => Promise<void>): Promise<void> {
    try {
      await handle(await decodeOutcome(data));
    } catch (error) {
      // Not tried again: what the keeper still misses it asks for again.
      log.error(errorFields(error), 'an outcome was not accepted');
    }
  }

  async function close(): Promise<void> {
    if (consumer !== undefined) await closeWorker(consumer.worker, consumer.connection, clock, () => inHand);
    await Promise.all(queues.map((queue) => queue.close()));
    cutRedis(producer);
  }

  return {
    add: (tasks) =>
      unlessGone('add', async () => {
        const underWay = await isUnderWay(tasks);
        const missing = tasks.filter((_, index) => underWay[index] === false);
        if (missing.length === 0) return;
        await fetchQueue.addBulk(
          missing.map((task) => ({
            name: 'fetch',
            data: task,
            opts: { ...fetchJobOptions(task), jobId: jobId(task) },
          })),
        );
      }),
    consume: async (handle) => {
      const connection = connectRedis(redisUrl, log, 'wait');
      const worker = new Worker(
        names.apply(mirror),
        async (job: Job, token) => {
          if (closed !== undefined) {
            await job.moveToWait(token);
            throw new WaitingError();
          }
          inHand =
            job.name === PAUSE_JOB
              ? unlessGone('tell of a pause', () => notePause(job.data))
              : deliver(job.data, handle);
          await inHand;
        },
        { connection, prefix, concurrency: 1, ...WORKER_OPTIONS },
      );
      logErrors(worker, connection, log);
      consumer = { worker, connection };
      await worker.waitUntilReady();
    },
    drop: (runId) =>
      unlessGone('drop', async () => {
        for (const queue of queues) {
          // Ids alone: the jobs that wait to be applied hold pages.
          const ids = await queue.getRanges(['wait', 'delayed'], 0, -1);
          const own = ids.filter((id) => id.startsWith(`${mirror}_r${runId}-`));
          await Promise.all(own.map((id) => queue.remove(id)));
        }
      }),
    forgetPause: () =>
      unlessGone('forget the pause', async () => {
        // First: a fetcher that starts a job without it would hold all of them back again.
        await producer.set(fetchQueue.toKey(FORGOTTEN_KEY), randomUUID(), 'PX', LONGEST_PAUSE_MS);
        await fetchQueue.removeRateLimitKey();
        // Tries that were put off until the pause is over.
        await fetchQueue.promoteJobs();
      }),
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
