import type { Job } from 'bullmq';
import * as z from 'zod';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Service } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import { createRedisTrouble, type RedisTrouble } from '../redis-trouble.ts';
import { JOB_OPTIONS, openQueue, type QueuePlace, queueNames, startWorker } from './jobs.ts';
import { connectRedis, cutRedis } from './redis-connection.ts';

interface RunRequestOptions extends QueuePlace {
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: one of its own. */
  readonly trouble?: RedisTrouble | undefined;
}

const REQUEST = z.object({ kind: z.enum(['full', 'delta']), tick: z.string() });
type RequestedRun = z.infer<typeof REQUEST>;

/** Sends requests for runs from a scheduler to the keeper, which may be on another machine. */
export function connectRunRequests(options: RunRequestOptions) {
  const { trouble = createRedisTrouble(options) } = options;
  const connection = connectRedis(options.redisUrl, { ...options, trouble }, 'fail');
  const queue = openQueue(options, queueNames(options).runs, connection);
  return {
    name: 'run requests',
    ask: async (request: RequestedRun): Promise<void> => {
      await queue.waitUntilReady();
      // Two schedulers add one job with this id. The keeper ignores ticks that it has served.
      await queue.add('run', request, { ...JOB_OPTIONS, jobId: request.tick.replaceAll(':', '-') });
    },
    stop: async (): Promise<void> => {
      await queue.close();
      cutRedis(connection);
    },
  };
}

/** Receives requests for runs, in the keeper. */
export async function serveRunRequests(
  options: RunRequestOptions & { readonly onRequest: (request: RequestedRun) => Promise<void> },
): Promise<Service> {
  const { trouble = createRedisTrouble(options) } = options;
  async function take({ data }: Job): Promise<void> {
    const request = REQUEST.safeParse(data);
    // Not awaited: a request that waits until it is due holds up no other one.
    if (request.success) void options.onRequest(request.data);
    else options.log.error({ reason: messageOf(request.error) }, 'a request for a run cannot be read');
  }
  const { worker, close } = startWorker({ ...options, trouble }, queueNames(options).runs, take);
  await worker.waitUntilReady();
  return { name: 'run requests', stop: () => close() };
}
