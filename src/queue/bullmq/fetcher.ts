import { setMaxListeners } from 'node:events';
import { type Job, Queue, WaitingError, Worker } from 'bullmq';
import { retryDelayMs } from '../../backoff.ts';
import type { FetchOutcome, FetchTask } from '../../catalog/page.ts';
import { taskId } from '../../catalog/page.ts';
import { type Clock, createPauses } from '../../clock.ts';
import { CatchwordError, messageOf, toErrorRecord } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { type ReadWindow, toReadError } from '../queue.ts';
import { encodeOutcome, parseTask } from './codec.ts';
import {
  closeWorker,
  JOB_OPTIONS,
  jobId,
  logErrors,
  PAUSE_ENDED_KEY,
  PAUSE_JOB,
  type PauseMessage,
  type QueuePlace,
  queueNames,
  WORKER_OPTIONS,
} from './jobs.ts';
import { checkRedis, connectRedis } from './redis.ts';

export interface FetcherOptions extends QueuePlace {
  readonly read: ReadWindow;
  /** Requests in flight in this process. */
  readonly concurrency: number;
  /** Time between two requests of all fetchers together, milliseconds; null for no limit. The same in every fetcher. */
  readonly intervalMs: number | null;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Fetcher {
  /** Returns the jobs in flight to the queue and closes connections. Idempotent. */
  close(): Promise<void>;
}

/** The shortest pause worth a round trip to Redis. With a higher rate, requests come in bursts, one in each pause. */
const MIN_PAUSE_MS = 20;
const DELIVERY_RETRY_MS = 2_000;
/** How often a paused fetcher checks whether an operator has ended the pause. */
const PAUSE_CHECK_MS = 1_000;

/**
 * The options of BullMQ's limiter, which counts jobs as they become active, over all workers of a queue. `max` is 1, for
 * evenly spaced requests, unless the pauses between them would be too short.
 *
 * Without a rate limit the worker gets a limiter that is never reached, because a worker without one would ignore the
 * pause of `Retry-After`.
 */
export function limiterOf(intervalMs: number | null): { max: number; duration: number } {
  if (intervalMs === null) return { max: 1_000_000_000, duration: 1 };
  const max = Math.max(1, Math.floor(MIN_PAUSE_MS / intervalMs));
  return { max, duration: Math.ceil(max * intervalMs) };
}

/**
 * Starts a worker for fetch jobs. One attempt of a job is one request, so retries pass the limiter too. The outcome is
 * added to the apply queue of the task's mirror.
 * @throws CatchwordError QUEUE_UNAVAILABLE, QUEUE_MISCONFIGURED as `checkRedis`
 */
export async function startFetcher(options: FetcherOptions): Promise<Fetcher> {
  const { redisUrl, read, concurrency, intervalMs, clock, log } = options;
  await checkRedis(redisUrl);
  const { prefix, ...names } = queueNames(options);
  const connection = connectRedis(redisUrl, log, 'wait');
  const applyQueues = new Map<string, Queue>();
  const stop = new AbortController();
  // Each active job adds a listener.
  setMaxListeners(0, stop.signal);
  const pauses = createPauses();
  /** The value of PAUSE_ENDED_KEY when the pause began. */
  let endedBefore: string | null = null;
  let closed: Promise<void> | undefined;

  /** Milliseconds that are left of the pause, as far as this process knows. */
  function pauseLeft(): number {
    const now = clock.now();
    return (pauses.current(now)?.until ?? now) - now;
  }

  async function lastEnded(): Promise<string | null> {
    return await connection.get(worker.toKey(PAUSE_ENDED_KEY));
  }

  /** Whether there is a pause that no operator has ended. */
  async function isPaused(): Promise<boolean> {
    if (pauseLeft() <= 0) return false;
    const ended = await lastEnded();
    if (ended !== null && ended !== endedBefore) pauses.forget();
    return pauseLeft() > 0;
  }

  /** Pauses all fetchers, and reports the pause to the keeper, which notes it in the mirror. */
  async function notePause(pauseMs: number, task: FetchTask): Promise<void> {
    const isLonger = pauseMs > pauseLeft();
    if (isLonger) {
      const since = clock.now();
      // Read first, because another job may check the pause as soon as it is noted.
      const before = await lastEnded();
      pauses.note({ since, until: since + pauseMs });
      endedBefore = before;
    }
    await blockAll();
    if (!isLonger) return;
    const message: PauseMessage = { pauseMs };
    await applyQueueOf(task.mirror).add(PAUSE_JOB, message, JOB_OPTIONS);
  }

  /** Blocks all fetchers for the rest of the pause, or of a longer one that another fetcher has set. */
  async function blockAll(): Promise<void> {
    const known = await worker.getBackend().getRateLimitTtl();
    await worker.rateLimit(Math.ceil(Math.max(1, known, pauseLeft())));
  }

  function applyQueueOf(mirror: string): Queue {
    const known = applyQueues.get(mirror);
    if (known !== undefined) return known;
    const queue = new Queue(names.apply(mirror), { connection, prefix });
    // The connection logs its errors itself; without a listener they would be thrown.
    queue.on('error', () => {});
    applyQueues.set(mirror, queue);
    return queue;
  }

  /** Keeps the outcome while Redis cannot store it (full, a failover), so that the page is not requested again. */
  async function deliver(outcome: FetchOutcome, task: FetchTask): Promise<void> {
    const data = await encodeOutcome(outcome);
    for (;;) {
      try {
        await applyQueueOf(task.mirror).add('apply', data, { ...JOB_OPTIONS, jobId: jobId(task) });
        return;
      } catch (error) {
        if (stop.signal.aborted) throw error;
        log.warn({ task: taskId(task), reason: messageOf(error) }, 'Redis cannot store the page, retrying');
        await clock.sleep(DELIVERY_RETRY_MS, stop.signal);
      }
    }
  }

  async function returnToQueue(job: Job, token: string | undefined): Promise<never> {
    await job.moveToWait(token);
    throw new WaitingError();
  }

  async function tryOnce(task: FetchTask, attempt: number): Promise<FetchOutcome> {
    try {
      const { page, response } = await read(task, stop.signal, attempt);
      return { kind: 'captured', captured: { task, page, response, requests: attempt } };
    } catch (thrown) {
      if (stop.signal.aborted) throw thrown;
      const error = toReadError(thrown);
      if (error.retryAfterMs !== undefined) await notePause(error.retryAfterMs, task);
      if (retryDelayMs(error, attempt, task.maxAttempts, () => clock.random()) !== null) throw error;
      return { kind: 'failed', task, error: toErrorRecord(error), requests: attempt };
    }
  }

  async function work(job: Job, token: string | undefined): Promise<void> {
    if (stop.signal.aborted) return returnToQueue(job, token);
    // The job may have started just before the pause was set, and a flushed Redis has forgotten the pause.
    if (await isPaused()) {
      await blockAll();
      throw Worker.RateLimitError();
    }
    const task = parseTask(job.data);
    const attempt = job.attemptsMade + 1;
    try {
      await deliver(await tryOnce(task, attempt), task);
    } catch (error) {
      if (stop.signal.aborted) return returnToQueue(job, token);
      log.warn({ task: taskId(task), attempt, reason: messageOf(error) }, 'retrying page');
      throw error;
    }
  }

  const worker: Worker = new Worker(names.fetch, work, {
    ...WORKER_OPTIONS,
    connection,
    prefix,
    concurrency,
    limiter: limiterOf(intervalMs),
    maximumRateLimitDelay: PAUSE_CHECK_MS,
    settings: {
      // -1 means never in BullMQ: the job is deleted, and the keeper, still missing the page, adds it again.
      backoffStrategy: (attempt, _type, error, job) =>
        Math.ceil(retryDelayMs(toReadError(error), attempt, job?.opts.attempts ?? 1, () => clock.random()) ?? -1),
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
