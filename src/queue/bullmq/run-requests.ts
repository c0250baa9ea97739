import { type Job, Queue, Worker } from 'bullmq';
import { z } from 'zod';
import type { RunRequest } from '../../catalog/run.ts';
import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import type { Service } from '../../lifecycle.ts';
import type { Logger } from '../../log.ts';
import { closeWorker, JOB_OPTIONS, logErrors, type QueuePlace, queueNames, WORKER_OPTIONS } from './jobs.ts';
import { connectRedis, cutRedis } from './redis.ts';

/** Sends requests for runs from a scheduler to the keeper, which may be on another machine. */
export interface RunRequests extends Service {
  ask(request: RunRequest & { readonly tick: string }): Promise<void>;
}

export interface RunRequestOptions extends QueuePlace {
  readonly log: Logger;
}

const REQUEST = z.object({ kind: z.enum(['full', 'delta']), tick: z.string() });

/** Job id of a tick, so that two schedulers add one job; the keeper ignores ticks that it has served. */
function tickJobId(tick: string): string {
  return tick.replaceAll(':', '-');
}

export function connectRunRequests(options: RunRequestOptions): RunRequests {
  const { prefix, runs } = queueNames(options);
  const connection = connectRedis(options.redisUrl, options.log, 'fail');
  const queue = new Queue(runs, { connection, prefix });
  queue.on('error', () => {});
  return {
    name: 'run requests',
    ask: async (request) => {
      await queue.waitUntilReady();
      await queue.add('run', request, { ...JOB_OPTIONS, jobId: tickJobId(request.tick) });
    },
    stop: async () => {
      await queue.close();
      cutRedis(connection);
    },
  };
}

export interface ServeRunRequestsOptions extends RunRequestOptions {
  readonly clock: Clock;
  readonly onRequest: (request: RunRequest) => void;
}

/** Receives requests for runs, in the keeper. */
export async function serveRunRequests(options: ServeRunRequestsOptions): Promise<Service> {
  const { prefix, runs } = queueNames(options);
  const { log, clock, onRequest } = options;
  const connection = connectRedis(options.redisUrl, log, 'wait');
  const worker = new Worker(
    runs,
    async (job: Job) => {
      const request = REQUEST.safeParse(job.data);
      if (request.success) onRequest(request.data);
      else log.error({ reason: messageOf(request.error) }, 'a request for a run cannot be read');
    },
    { connection, prefix, concurrency: 1, ...WORKER_OPTIONS },
  );
  logErrors(worker, connection, log);
  await worker.waitUntilReady();
  return { name: 'run requests', stop: () => closeWorker(worker, connection, clock, async () => {}) };
}
