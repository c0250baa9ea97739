import { messageOf } from '@catchword/base/errors';
import type { Service } from '@catchword/base/lifecycle';
import type { Job } from 'bullmq';
import * as z from 'zod';
import { JOB_OPTIONS, openQueue, type QueueOptions, queueNames, startWorker } from './jobs.ts';
import { connectRedis, cutRedis } from './redis-connection.ts';
import { createRedisTrouble } from './redis-trouble.ts';

const REQUEST = z.object({ kind: z.enum(['full', 'delta']), tick: z.string() });
type RequestedRun = z.infer<typeof REQUEST>;

/** Sends requests for runs from a scheduler to the keeper, which may be on another machine. */
export function connectRunRequests(options: QueueOptions) {
  const { trouble = createRedisTrouble(options) } = options;
  const connection = connectRedis(options.redisUrl, { ...options, trouble }, 'fail');
  const queue = openQueue(queueNames(options).runs, connection);
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
  options: QueueOptions & { readonly onRequest: (request: RequestedRun) => Promise<void> },
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
