import type { Pause } from '@catchword/base/clock';
import { createLog, errorFields, type Logger } from '@catchword/base/log';
import { reasonOf } from '@catchword/base/redis-place';
import { createTrouble } from '@catchword/base/trouble';
import { type FetchOutcome, type FetchTask, taskId } from '@catchword/catalog/page-types';
import { createLearnedRate, type LearnedLimit } from '@catchword/pace/learned-rate';
import type { Pace } from '@catchword/pace/pace';
import type { PageQueue, ValidatePage } from '@catchword/queue/queue-port';
import type { Job, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { checkRedis } from './check-redis.ts';
import { decodeOutcome } from './codec.ts';
import {
  fetchJobOptions,
  jobId,
  openQueue,
  PAUSE_JOB,
  PAUSE_MESSAGE,
  type QueueOptions,
  type QueuePlace,
  queueNames,
  returnToQueue,
  startWorker,
} from './jobs.ts';
import { connectRedis, cutRedis } from './redis-connection.ts';
import { createStatedPace } from './redis-pace.ts';
import { createRedisTrouble } from './redis-trouble.ts';

type Handle = (outcome: FetchOutcome) => Promise<void>;

/** Delivers outcomes to the keeper of `mirror`, one at a time, in the order of arrival. */
function createDelivery({ mirror, clock, log }: BullQueueOptions, learner: ReturnType<typeof createLearnedRate>) {
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
    handOver: async (outcome: FetchOutcome): Promise<boolean> => {
      const handle = taker;
      const { task } = outcome;
      if (handle === undefined || task.mirror !== mirror || !runs.has(task.runId)) return false;
      await inTurn(() => deliver(outcome, handle));
      return true;
    },
    idle: () => idle,
  };
}

interface BullQueueOptions extends QueueOptions {
  /** The pace of all fetchers together; null for no limit. */
  readonly pace: () => Pace | null;
  /** The pause that the mirror notes; default: none. Fetchers do not know it if Redis could not be told, or was flushed. */
  readonly pause?: () => Pause | null;
  /** Incarnation of the keeper's mirror; letters, digits and `-`. */
  readonly mirror: string;
  /** Default: in this thread. */
  readonly validate?: ValidatePage | undefined;
  /** Learns that pace; default: it is configured. */
  readonly learned?: LearnedLimit | undefined;
  /** Called when the source asks a fetcher of this mirror for a pause. Must not throw. */
  readonly onRateLimited?: (pause: Pause) => void;
  /** The mirror is deleted after this run: nothing of it stays in Redis. */
  readonly isTemporary?: boolean;
}

export interface BullQueue extends PageQueue {
  readonly mirror: string;
  /** Ends the pause that the source asked for, for all fetchers. */
  forgetPause(): Promise<void>;
  /** Delivers an outcome of this process. @returns false, at once, if it does not deliver, or added no task of that run */
  handOver(outcome: FetchOutcome): Promise<boolean>;
}

/** Pages that are decoded while one is written. Limits memory. */
const DECODED_PAGES = 4;

async function withoutJob(tasks: readonly FetchTask[], queues: readonly Queue[], redis: Redis): Promise<FetchTask[]> {
  const ids = tasks.map(jobId);
  const pipeline = redis.pipeline();
  for (const queue of queues) for (const id of ids) pipeline.exists(queue.toKey(id));
  const exists = ((await pipeline.exec()) ?? []).map(([error, reply]) => {
    if (error !== null) throw error;
    return reply === 1;
  });
  return tasks.filter((_, index) => queues.every((_queue, nth) => exists[nth * ids.length + index] === false));
}

/** Deletes the pages of a mirror that is gone: a killed command cannot, and a mirror may be deleted. */
async function forget(gone: string, place: QueuePlace, redis: Redis): Promise<void> {
  const pages = openQueue(queueNames(place).apply(gone), redis);
  try {
    await pages.obliterate({ force: true });
  } finally {
    await pages.close();
  }
}

const NO_FETCHER_HINT =
  'Start npx catchword fetcher with the settings of this keeper: address, key, currencies, details and lookup path.';

/** Logs when no fetcher reads the tasks of this queue, so that pages wait, and when one does again. */
function createFetcherWatch(fetchQueue: Queue, log: Logger): () => Promise<void> {
  let isLonely = false;
  return async () => {
    const wasLonely = isLonely;
    // Some services of Redis forbid clients to list others, or to name themselves.
    const workers = await fetchQueue.getWorkersCount().catch(() => null);
    isLonely = workers === 0 && (await fetchQueue.getActiveCount()) === 0;
    if (isLonely && !wasLonely) log.warn({ hint: NO_FETCHER_HINT }, 'no fetcher reads the pages of this keeper');
    if (wasLonely && !isLonely) log.info({}, 'a fetcher reads the pages of this keeper again');
  };
}

/**
 * The keeper's side of the queue in Redis.
 *
 * ```
 * keeper ── add ──► fetch jobs ──► fetchers, anywhere ──► apply jobs ── handle ──► keeper
 * ```
 * Both jobs of a task have the same id. A fetcher adds the apply job before its fetch job ends, so checking for the
 * fetch job first finds every task in progress. A fetcher in the keeper's process hands its pages over instead, and its
 * fetch job ends when the page was handled: packing, sending and unpacking a page cost as much as reading it. While
 * Redis is unreachable, `add` and `drop` only log that.
 *
 * @throws CatchwordError QUEUE_UNAVAILABLE, QUEUE_MISCONFIGURED as `checkRedis`
 */
export async function createBullQueue(options: BullQueueOptions): Promise<BullQueue> {
  const { redisUrl, clock, log, mirror, learned, pace, onRateLimited, isTemporary } = options;
  const { trouble = createRedisTrouble(options) } = options;
  const learner = createLearnedRate(clock, learned);
  await checkRedis(redisUrl);
  const names = queueNames(options);
  // Silent, because the worker's connection logs an outage already.
  const producer = connectRedis(redisUrl, { ...options, trouble, log: createLog('silent') }, 'fail');
  const fetchQueue = openQueue(names.fetch, producer);
  const applyQueue = openQueue(names.apply(mirror), producer);
  const queues = [fetchQueue, applyQueue];
  const stated = createStatedPace(producer, options.source, mirror, clock);
  const watchFetchers = createFetcherWatch(fetchQueue, log);
  await Promise.all(queues.map((queue) => queue.waitUntilReady()));

  const delivery = createDelivery(options, learner);
  let consumer: ReturnType<typeof startWorker> | undefined;
  let closed: Promise<void> | undefined;

  /** Does `work` in Redis; a failure is only logged. */
  async function attempt(what: string, work: () => Promise<void>): Promise<void> {
    if (closed !== undefined) return;
    try {
      await work();
    } catch (error) {
      if (producer.status === 'ready') trouble.failed(what, reasonOf(error));
      else log.debug({ what, reason: reasonOf(error) }, 'Redis command failed');
    }
  }

  function pauseMs(): number {
    const now = clock.now();
    return Math.max(0, (options.pause?.()?.until ?? now) - now);
  }

  /** Reports a pause, whose remaining time Redis knows, because the job may have waited for this process; and a refusal. */
  async function notePause(data: unknown): Promise<void> {
    const { pauseMs, refused } = PAUSE_MESSAGE.parse(data);
    if (refused) learner.refused(pauseMs === 0 ? undefined : pauseMs);
    if (pauseMs === 0) return;
    const leftMs = Math.min(pauseMs, await stated.pauseMs());
    const since = clock.now();
    if (leftMs > 0) onRateLimited?.({ since, until: since + leftMs });
  }

  /** Decodes a page at once; what the job tells is handled after the jobs that arrived before. */
  function inTurn({ name, data }: Job, handle: Handle): Promise<void> {
    if (name === PAUSE_JOB) return delivery.inTurn(() => attempt('note a pause', () => notePause(data)));
    return delivery.deliver(decodeOutcome(data, options.validate), handle);
  }

  async function close(): Promise<void> {
    delivery.end();
    await consumer?.close(delivery.idle);
    if (isTemporary === true) {
      await applyQueue.obliterate({ force: true }).catch(() => {});
      await stated.end().catch(() => {});
    }
    await Promise.all(queues.map((queue) => queue.close()));
    cutRedis(producer);
  }

  return {
    mirror,
    add: (tasks) =>
      attempt('add tasks', async () => {
        const isDelivered = delivery.ask(tasks);
        // Again and again, because a limit may have been learned, and Redis flushed, since.
        for (const gone of await stated.state(pace(), pauseMs())) await forget(gone, options, producer);
        const jobless = await withoutJob(tasks, queues, producer);
        // A page that was delivered while Redis answered has no job any more.
        const missing = jobless.filter((task) => !isDelivered(task));
        if (missing.length === 0) {
          await watchFetchers();
          return;
        }
        await fetchQueue.addBulk(missing.map((task) => ({ name: 'fetch', data: task, opts: fetchJobOptions(task) })));
      }),
    consume: async (handle) => {
      delivery.begin(handle);
      async function take(job: Job, token: string | undefined): Promise<void> {
        if (closed !== undefined) return returnToQueue(job, token);
        await inTurn(job, handle);
      }
      // Not awaited: while Redis is gone, a run must still be able to stop.
      consumer = startWorker({ ...options, trouble }, names.apply(mirror), take, { concurrency: DECODED_PAGES });
    },
    rest: async () => {
      const resting = consumer;
      consumer = undefined;
      delivery.end();
      await resting?.close(delivery.idle);
    },
    drop: (runId) =>
      attempt('drop tasks', async () => {
        for (const queue of queues) {
          // Reads only ids, because apply jobs contain whole pages.
          const ids = await queue.getRanges(['wait', 'prioritized', 'delayed'], 0, -1);
          const own = ids.filter((id) => id.startsWith(`${mirror}_r${runId}-`));
          await Promise.all(own.map((id) => queue.remove(id)));
        }
      }),
    forgetPause: () => attempt('end the pause', stated.endPause),
    handOver: delivery.handOver,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
