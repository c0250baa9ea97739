import { setMaxListeners } from 'node:events';
import { type Job, Queue, WaitingError, Worker } from 'bullmq';
import { retryDelayMs } from '../../backoff.ts';
import type { FetchOutcome, FetchTask } from '../../catalog/page.ts';
import { taskId } from '../../catalog/page.ts';
import { type Clock, createPauses } from '../../clock.ts';
import { CatchwordError, messageOf, toErrorRecord } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import type { ReadWindow } from '../queue.ts';
import { readError } from '../read-error.ts';
import { encodeOutcome, parseTask } from './codec.ts';
import {
  closeWorker,
  FORGOTTEN_KEY,
  JOB_OPTIONS,
  jobId,
  logErrors,
  PAUSE_JOB,
  type PauseNews,
  type QueuePlace,
  queueNames,
  WORKER_OPTIONS,
} from './jobs.ts';
import { checkRedis, connectRedis } from './redis.ts';

export interface FetcherOptions extends QueuePlace {
  readonly read: ReadWindow;
  /** Pages in flight in this process. */
  readonly concurrency: number;
  /** Between two requests of all fetchers together, in milliseconds; null for no limit. The same for all of them. */
  readonly intervalMs: number | null;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Fetcher {
  /** Gives back what is in flight and lets go of connections. Idempotent. */
  close(): Promise<void>;
}

/** Shorter pauses than this are not worth a round trip each; requests then come in bursts that last so long. */
const MIN_PAUSE_MS = 20;
const HAND_OVER_AGAIN_MS = 2_000;
/** How often a fetcher that is held back looks whether an operator has ended the pause. */
const LOOK_MS = 1_000;

/**
 * BullMQ's limiter counts jobs as they become active, over all workers of a queue. Evenly spaced: `max` is 1 unless the
 * pauses would be too short for it.
 *
 * Without a limit the worker still has a limiter, one that is never reached, because a worker without one would not
 * see the pause that `Retry-After` asked for.
 */
export function limiterOf(intervalMs: number | null): { max: number; duration: number } {
  if (intervalMs === null) return { max: 1_000_000_000, duration: 1 };
  const max = Math.max(1, Math.floor(MIN_PAUSE_MS / intervalMs));
  return { max, duration: Math.ceil(max * intervalMs) };
}

/**
 * Works off fetch jobs. One try of a job is one request, so each of them, the second and third try of a page too,
 * passes the limiter. What came of a task is added to its mirror's apply queue: the page, or the error that remained.
 * @throws CatchwordError QUEUE_UNAVAILABLE, QUEUE_MISCONFIGURED as `checkRedis`
 */
export async function startFetcher(options: FetcherOptions): Promise<Fetcher> {
  const { redisUrl, read, concurrency, intervalMs, clock, log } = options;
  await checkRedis(redisUrl);
  const { prefix, ...names } = queueNames(options);
  const connection = connectRedis(redisUrl, log, 'wait');
  const applyQueues = new Map<string, Queue>();
  const stop = new AbortController();
  // Each page in hand listens to it.
  setMaxListeners(0, stop.signal);
  const pauses = createPauses();
  /** The value of FORGOTTEN_KEY when the pause was noted. */
  let forgottenBefore: string | null = null;
  let closed: Promise<void> | undefined;

  /** Milliseconds until the source may be asked again, as far as this process knows. */
  function pauseLeft(): number {
    const now = clock.now();
    return (pauses.current(now)?.until ?? now) - now;
  }

  async function forgotten(): Promise<string | null> {
    return await connection.get(worker.toKey(FORGOTTEN_KEY));
  }

  /** Whether the pause still holds: an operator may have ended it. */
  async function isPaused(): Promise<boolean> {
    if (pauseLeft() <= 0) return false;
    const now = await forgotten();
    if (now !== null && now !== forgottenBefore) pauses.forget();
    return pauseLeft() > 0;
  }

  /** Keeps to a pause, with all other fetchers, and tells the keeper, whose mirror shows it to its other processes. */
  async function notePause(pauseMs: number, task: FetchTask): Promise<void> {
    const isLonger = pauseMs > pauseLeft();
    if (isLonger) {
      const since = clock.now();
      // Asked first: another job may look as soon as the pause is noted.
      const before = await forgotten();
      pauses.note({ since, until: since + pauseMs });
      forgottenBefore = before;
    }
    await blockAll();
    if (!isLonger) return;
    const news: PauseNews = { pauseMs };
    await applyQueueOf(task.mirror).add(PAUSE_JOB, news, JOB_OPTIONS);
  }

  /** Stops all fetchers for the rest of the pause; a longer one that another fetcher was asked for stays. */
  async function blockAll(): Promise<void> {
    const known = await worker.getBackend().getRateLimitTtl();
    await worker.rateLimit(Math.ceil(Math.max(1, known, pauseLeft())));
  }

  function applyQueueOf(mirror: string): Queue {
    const known = applyQueues.get(mirror);
    if (known !== undefined) return known;
    const queue = new Queue(names.apply(mirror), { connection, prefix });
    // The connection logs for itself; without a listener the error would be thrown.
    queue.on('error', () => {});
    applyQueues.set(mirror, queue);
    return queue;
  }

  /** Holds on to what was read while Redis cannot take it (full, a failover): the source is not asked twice. */
  async function handOver(outcome: FetchOutcome, task: FetchTask): Promise<void> {
    const data = await encodeOutcome(outcome);
    for (;;) {
      try {
        await applyQueueOf(task.mirror).add('apply', data, { ...JOB_OPTIONS, jobId: jobId(task) });
        return;
      } catch (error) {
        if (stop.signal.aborted) throw error;
        log.warn({ task: taskId(task), reason: messageOf(error) }, 'Redis does not take the page, trying again');
        await clock.sleep(HAND_OVER_AGAIN_MS, stop.signal);
      }
    }
  }

  async function giveBack(job: Job, token: string | undefined): Promise<never> {
    await job.moveToWait(token);
    throw new WaitingError();
  }

  async function tryOnce(task: FetchTask, attempt: number): Promise<FetchOutcome> {
    try {
      const { page, response } = await read(task, stop.signal, attempt);
      return { kind: 'captured', captured: { task, page, response, requests: attempt } };
    } catch (thrown) {
      if (stop.signal.aborted) throw thrown;
      const error = readError(thrown);
      if (error.retryAfterMs !== undefined) await notePause(error.retryAfterMs, task);
      if (retryDelayMs(error, attempt, task.maxAttempts, () => clock.random()) !== null) throw error;
      return { kind: 'failed', task, error: toErrorRecord(error), requests: attempt };
    }
  }

  async function work(job: Job, token: string | undefined): Promise<void> {
    if (stop.signal.aborted) return giveBack(job, token);
    // A flushed Redis has forgotten the pause, and a job can have started just before it was set.
    if (await isPaused()) {
      await blockAll();
      throw Worker.RateLimitError();
    }
    const task = parseTask(job.data);
    const attempt = job.attemptsMade + 1;
    try {
      await handOver(await tryOnce(task, attempt), task);
    } catch (error) {
      if (stop.signal.aborted) return giveBack(job, token);
      log.warn({ task: taskId(task), attempt, reason: messageOf(error) }, 'reading again');
      throw error;
    }
  }

  const worker: Worker = new Worker(names.fetch, work, {
    ...{ connection, prefix, concurrency, limiter: limiterOf(intervalMs), ...WORKER_OPTIONS },
    maximumRateLimitDelay: LOOK_MS,
    settings: {
      // -1 is BullMQ's word for never: then the job is gone, and the keeper, still missing the page, adds it again.
      backoffStrategy: (attempt, _type, error, job) =>
        Math.ceil(retryDelayMs(readError(error), attempt, job?.opts.attempts ?? 1, () => clock.random()) ?? -1),
    },
  });
  logErrors(worker, connection, log);
  await worker.waitUntilReady();

  async function close(): Promise<void> {
    await closeWorker(worker, connection, clock, async () => {
      stop.abort(new CatchwordError('INTERRUPTED', 'the fetcher was stopped'));
    });
    await Promise.all([...applyQueues.values()].map((queue) => queue.close()));
  }

  return {
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
