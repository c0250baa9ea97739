import type { Clock } from '@catchword/base/clock';
import { hostUrls } from '@catchword/base/host-urls';
import { reasonOf, redisPlace } from '@catchword/base/redis-place';
import { openQueue, type QueuePlace, queueNames } from './jobs.ts';
import { ONE_TRY } from './redis-connection.ts';

/** The fetchers of a source, as Redis knows their connections. */
export interface FetcherList {
  /** Where Redis is, without credentials. */
  readonly redis: string;
  /** Why Redis does not say; null if it does. Some services of Redis let no client list others. */
  readonly problem: string | null;
  readonly fetchers: readonly { readonly pid: number; readonly host: string; readonly since: number | null }[];
}

/** Names the worker of a fetcher, so that it can be listed: `HOST/PID`. */
export function fetcherName(pid: number, host: string): string {
  return `${encodeURIComponent(host)}/${pid}`;
}

/** Lists the fetchers, with a connection of its own. */
export async function listFetchers({ redisUrl, source }: QueuePlace, clock: Clock): Promise<FetcherList> {
  const { label, open } = redisPlace(hostUrls(redisUrl));
  const redis = open(ONE_TRY);
  let reason: unknown;
  redis.on('error', (error) => {
    reason ??= error;
  });
  try {
    await redis.connect();
    const queue = openQueue(queueNames({ source }).fetch, redis);
    const workers = (await queue.getWorkers()) as Readonly<Record<string, string>>[];
    const fetchers = workers.flatMap(({ rawname = '', age }) => {
      const [, host, pid] = /:w:([^/]+)\/(\d+)$/.exec(rawname) ?? [];
      if (host === undefined) return [];
      const since = age === undefined ? null : clock.now() - Number(age) * 1000;
      return [{ pid: Number(pid), host: decodeURIComponent(host), since }];
    });
    return { redis: label, problem: null, fetchers };
  } catch (error) {
    return { redis: label, problem: reasonOf(reason ?? error), fetchers: [] };
  } finally {
    redis.disconnect();
  }
}
