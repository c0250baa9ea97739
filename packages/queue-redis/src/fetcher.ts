import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import { backoffMs } from '@catchword/base/backoff';
import { CatchwordError } from '@catchword/base/errors';
import { reasonOf } from '@catchword/base/redis-place';
import type { FetchOutcome, FetchTask } from '@catchword/catalog/page-types';
import { createInFlight } from '@catchword/pace/in-flight';
import type { Pacer } from '@catchword/pace/pacer';
import type { ReadWindow } from '@catchword/queue/queue-port';
import { readUntilDone } from '@catchword/queue/read-until-done';
import type { Job, Queue } from 'bullmq';
import type { BullQueue } from './bull-queue.ts';
import { checkRedis } from './check-redis.ts';
import { encodeOutcome, parseTask } from './codec.ts';
import {
  JOB_OPTIONS,
  jobId,
  openQueue,
  PAUSE_JOB,
  type QueueOptions,
  queueNames,
  returnToQueue,
  startWorker,
} from './jobs.ts';
import { fetcherName } from './list-fetchers.ts';
import { createFetcherTurns } from './redis-pace.ts';
import { createRedisTrouble } from './redis-trouble.ts';

type Refusal = Parameters<Pacer['heed']>[0];

export interface FetcherOptions extends QueueOptions {
  /** @param pacer for requests besides each job's own: renewals of the token, and repeats after them */
  readonly read: (pacer: Pacer) => ReadWindow;
  readonly concurrency: number;
  /** The queue of the keeper in this process, which gets the pages of its mirror without a way through Redis. */
  readonly keeper?: Pick<BullQueue, 'mirror' | 'handOver'> | undefined;
}

/**
 * Starts a worker for fetch jobs. A job ends when its windows have outcomes; its requests take turns in Redis. An outcome
 * is added to the apply queue of the task's mirror, unless the keeper in this process takes it.
 * @throws CatchwordError QUEUE_UNAVAILABLE, QUEUE_MISCONFIGURED as `checkRedis`
 */
export async function startFetcher(options: FetcherOptions) {
  const { redisUrl, concurrency, clock, log, keeper, trouble = createRedisTrouble(options) } = options;
  await checkRedis(redisUrl);
  const names = queueNames(options);
  const name = fetcherName(process.pid, hostname());
  const stop = new AbortController();
  // Each active job adds a listener.
  setMaxListeners(0, stop.signal);
  const inFlight = createInFlight(concurrency, ({ message, fields }) => log.warn(fields, message));
  const applyQueues = new Map<string, Queue>();
  let closed: Promise<void> | undefined;

  function applyQueueOf(mirror: string): Queue {
    const queue = applyQueues.get(mirror) ?? openQueue(names.apply(mirror), fetching.connection);
    applyQueues.set(mirror, queue);
    return queue;
  }

  /** Repeats what Redis cannot do now (full, a failover), so that no page is requested again, and no pause forgotten. */
  async function insist<T>(what: string, work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (stop.signal.aborted) throw error;
        trouble.failed(what, reasonOf(error));
        const pauseMs = backoffMs(attempt, () => clock.random());
        await clock.sleep(pauseMs, stop.signal);
      }
    }
  }

  async function deliver(task: FetchTask, outcome: FetchOutcome): Promise<void> {
    if ((await keeper?.handOver(outcome)) === true) return;
    const encoded = await encodeOutcome(outcome);
    const options = { ...JOB_OPTIONS, jobId: jobId(task) };
    await insist('store a page', () => applyQueueOf(task.mirror).add('apply', encoded, options));
  }

  /** Tells the keeper of `mirror`, which notes the pause there, and learns from a refusal. */
  async function heed(mirror: string, { code, retryAfterMs: pauseMs = 0 }: Refusal): Promise<void> {
    const refused = code === 'SOURCE_RATE_LIMITED';
    const isNew = pauseMs > 0 ? await turns.pause(pauseMs, (work) => insist('note a pause', work)) : refused;
    const message = { pauseMs, refused };
    if (isNew) await insist('note a pause', () => applyQueueOf(mirror).add(PAUSE_JOB, message, JOB_OPTIONS));
  }

  async function work(job: Job, token: string | undefined): Promise<void> {
    const task = parseTask(job.data);
    const pacer = { ...client, heed: (error: Refusal) => heed(task.mirror, error) };
    const outcome = await readUntilDone(task, { read: readFor, pacer, inFlight, clock, log }, stop.signal);
    if (outcome === null) return returnToQueue(job, token);
    await deliver(task, outcome).catch((error: unknown) => {
      if (stop.signal.aborted) return returnToQueue(job, token);
      throw error;
    });
  }

  const fetching = startWorker({ ...options, trouble }, names.fetch, work, { concurrency, name });
  const turns = createFetcherTurns(fetching.connection, options.source, { clock, trouble });
  // The queue heeds the errors of the client, too.
  const client: Pacer = { acquire: turns.acquire, succeeded: () => {}, heed: async () => {} };
  // A setting of the client may be wrong; an open worker would then keep the process from ending.
  const read = await (async () => options.read(client))().catch(async (error: unknown) => {
    await fetching.close();
    throw error;
  });
  /** Another process validates the page again, and then makes the rows that a mirror is filled with. */
  const readFor: ReadWindow = (task, ...more) =>
    read(task.mirror === keeper?.mirror ? task : { ...task, filling: false }, ...more);
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
