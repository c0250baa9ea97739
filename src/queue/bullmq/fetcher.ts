import { setMaxListeners } from 'node:events';
import type { Job, Queue } from 'bullmq';
import { backoffMs, retryDelayMs } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { CatchwordError, messageOf, toErrorRecord } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { type FetchOutcome, type FetchTask, taskId } from '../../catalog/page-types.ts';
import type { Pacer } from '../../pace/pacer.ts';
import { type ReadWindow, toReadError } from '../queue-port.ts';
import { createRedisTrouble, type RedisTrouble } from '../redis-trouble.ts';
import type { BullQueue } from './bull-queue.ts';
import { checkRedis } from './check-redis.ts';
import { encodeOutcome, parseTask } from './codec.ts';
import {
  JOB_OPTIONS,
  jobId,
  openQueue,
  PAUSE_JOB,
  type QueuePlace,
  queueNames,
  returnToQueue,
  startWorker,
} from './jobs.ts';
import { reasonOf } from './redis-connection.ts';
import { createTurns } from './request-limiter.ts';
import { createSharedPause } from './shared-pause.ts';

export interface FetcherOptions extends QueuePlace {
  /** @param pacer for requests besides the one of each job: those that renew the token, and repeats after that */
  readonly read: (pacer: Pacer) => ReadWindow;
  /** Requests in flight in this process. */
  readonly concurrency: number;
  /** The queue of the keeper in this process, which gets the pages of its mirror without a way through Redis. */
  readonly keeper?: Pick<BullQueue, 'mirror' | 'handOver'> | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: one of its own. */
  readonly trouble?: RedisTrouble | undefined;
}

/** How often a paused fetcher checks whether an operator has ended the pause. */
const PAUSE_CHECK_MS = 1_000;

/**
 * Starts a worker for fetch jobs. One attempt of a job is one request, so retries pass the limiter of the queue too,
 * which the keeper sets. The outcome is added to the apply queue of the task's mirror, unless the
 * keeper in this process takes it.
 * @throws CatchwordError QUEUE_UNAVAILABLE, QUEUE_MISCONFIGURED as `checkRedis`
 */
export async function startFetcher(options: FetcherOptions) {
  const { redisUrl, concurrency, clock, log, keeper, trouble = createRedisTrouble(options) } = options;
  await checkRedis(redisUrl);
  const names = queueNames(options);
  const stop = new AbortController();
  // Each active job adds a listener.
  setMaxListeners(0, stop.signal);
  /** The apply queues of all mirrors that this fetcher reads for. */
  const applyQueues = new Map<string, Queue>();
  let closed: Promise<void> | undefined;

  function applyQueueOf({ mirror }: FetchTask): Queue {
    const queue = applyQueues.get(mirror) ?? openQueue(options, names.apply(mirror), fetching.connection);
    applyQueues.set(mirror, queue);
    return queue;
  }

  /** Keeps the outcome while Redis cannot store it (full, a failover), so that the page is not requested again. */
  async function deliver(task: FetchTask, outcome: FetchOutcome): Promise<void> {
    if ((await keeper?.handOver(outcome)) === true) return;
    const encoded = await encodeOutcome(outcome);
    for (let attempt = 1; ; attempt++) {
      try {
        await applyQueueOf(task).add('apply', encoded, { ...JOB_OPTIONS, jobId: jobId(task) });
        return;
      } catch (error) {
        if (stop.signal.aborted) throw error;
        trouble.failed('store a page', reasonOf(error));
        const pauseMs = backoffMs(attempt, () => clock.random());
        await clock.sleep(pauseMs, stop.signal);
      }
    }
  }

  async function tryOnce(task: FetchTask, attempt: number): Promise<FetchOutcome> {
    try {
      // Another process validates the page again, and then makes the rows that a mirror is filled with.
      const asked = task.mirror === keeper?.mirror ? task : { ...task, filling: false };
      const { page, response } = await read(asked, stop.signal, attempt);
      return { kind: 'captured', captured: { task, page, response, requests: attempt } };
    } catch (thrown) {
      if (stop.signal.aborted) throw thrown;
      const error = toReadError(thrown);
      const pauseMs = error.retryAfterMs ?? 0;
      const refused = error.code === 'SOURCE_RATE_LIMITED';
      // The keeper notes the pause in its mirror, and learns from a refusal.
      if (pauseMs > 0 ? await pause.begin(pauseMs) : refused) {
        await applyQueueOf(task).add(PAUSE_JOB, { pauseMs, refused }, JOB_OPTIONS);
      }
      if (retryDelayMs(error, attempt, task.maxAttempts, () => clock.random()) !== null) throw error;
      log.warn({ task: taskId(task), attempt, code: error.code, reason: error.message }, 'a page cannot be read');
      return { kind: 'failed', task, error: toErrorRecord(error), requests: attempt };
    }
  }

  async function work(job: Job, token: string | undefined): Promise<void> {
    if (stop.signal.aborted) return returnToQueue(job, token);
    // The job may have started just before the pause was set, and a flushed Redis has forgotten the pause.
    await pause.check();
    const task = parseTask(job.data);
    const attempt = job.attemptsMade + 1;
    try {
      await deliver(task, await tryOnce(task, attempt));
    } catch (error) {
      if (stop.signal.aborted) return returnToQueue(job, token);
      log.warn({ task: taskId(task), attempt, reason: messageOf(error) }, 'retrying page');
      throw error;
    }
  }

  const fetching = startWorker({ ...options, trouble }, names.fetch, work, {
    concurrency,
    maximumRateLimitDelay: PAUSE_CHECK_MS,
    settings: {
      // -1 means never in BullMQ: the job is deleted, and the keeper, still missing the page, adds it again.
      backoffStrategy: (attempt, _type, error, job) =>
        Math.ceil(retryDelayMs(toReadError(error), attempt, job?.opts.attempts ?? 1, () => clock.random()) ?? -1),
    },
  });
  const pause = createSharedPause(fetching.connection, fetching.worker, clock);
  const turns = createTurns(fetching.connection, fetching.worker, clock);
  // A setting of the client may be wrong; an open worker would then keep the process from ending.
  const read = await (async () => options.read(turns))().catch(async (error: unknown) => {
    await fetching.close();
    throw error;
  });
  await fetching.worker.waitUntilReady();

  async function close(): Promise<void> {
    await fetching.close(async () => {
      stop.abort(new CatchwordError('INTERRUPTED', 'the fetcher was stopped'));
    });
    await Promise.all([...applyQueues.values()].map((queue) => queue.close()));
  }

  return {
    /** Returns the jobs in flight to the queue and closes connections. Idempotent. */
    close: (): Promise<void> => {
      closed ??= close();
      return closed;
    },
  };
}
