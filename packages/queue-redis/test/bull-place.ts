import { type Clock, type Pause, systemClock } from '@catchword/base/clock';
import { createLog, type Logger } from '@catchword/base/log';
import type { LearnedLimit } from '@catchword/pace/learned-rate';
import { type BullQueue, createBullQueue } from '@catchword/queue-redis/bull-queue';
import { type FetcherOptions, startFetcher } from '@catchword/queue-redis/fetcher';
import { type RedisServer, startRedis } from '@catchword/testing/redis';
import { task } from '@catchword/testing/scripted-source';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

/** Retries without a delay. */
export const clock: Clock = { ...systemClock, random: () => 0 };

export interface Place {
  readonly queue: BullQueue;
  readonly source: string;
  /** @returns stops this fetcher */
  fetcher(options: Pick<FetcherOptions, 'read'> & Partial<FetcherOptions>): Promise<() => Promise<void>>;
  readonly close: () => Promise<void>;
}

interface KeeperOptions {
  /** Default: one of its own. */
  readonly source?: string;
  readonly mirror?: string;
  readonly onRateLimited?: (pause: Pause) => void;
  readonly pause?: () => Pause | null;
  readonly learned?: LearnedLimit;
  readonly intervalMs?: number | null;
  readonly isTemporary?: boolean;
  readonly log?: Logger;
}

let names = 0;

/** Opens a keeper's queue with a source id of its own, until the test ends; fetchers can be added. */
export async function openPlace(
  redisUrl: string,
  { intervalMs = null, log = createLog('silent'), source = `test${++names}`, ...options }: KeeperOptions = {},
): Promise<Place> {
  const shared = { redisUrl, source, clock, log };
  const pace = () => options.learned?.pace() ?? (intervalMs === null ? null : { intervalMs, slackMs: 0 });
  const queue = await createBullQueue({ ...shared, mirror: 'mirror-a', pace, ...options });
  const closers = [() => queue.close()];
  const close = async (): Promise<void> => {
    await Promise.all(closers.splice(0).map((one) => one()));
  };
  onTestFinished(close);
  return {
    queue,
    source,
    fetcher: async (own) => {
      const fetcher = await startFetcher({ ...shared, concurrency: 2, ...own });
      closers.push(() => fetcher.close());
      return () => fetcher.close();
    },
    close,
  };
}

/** Starts a Redis for the tests of a file. */
export function useRedis() {
  let server: RedisServer;
  let admin: Redis;
  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url, { maxRetriesPerRequest: null });
    admin.on('error', () => {});
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });
  return {
    url: () => server.url,
    admin: () => admin,
  };
}

export const pages = (count: number) => Array.from({ length: count }, (_, index) => task(index + 1));
