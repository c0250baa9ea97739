import type { Clock } from '@catchword/base/clock';
import type { Service } from '@catchword/base/lifecycle';
import type { Logger } from '@catchword/base/log';
import { configuredSource } from '@catchword/catalog/event';
import { startWeb, type WebOptions } from '../../http/web-server.ts';
import { plansOf, upcomingRuns } from '../../operate/schedule/due.ts';
import type { HttpConfig } from './http-config.ts';

interface HttpOptions extends Pick<WebOptions, 'searchApart' | 'figures' | 'isStalled' | 'problem' | 'port'> {
  readonly config: HttpConfig;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Serves HTTP in this thread. @throws CatchwordError as `startWeb` does */
export async function startHttp({ config, ...options }: HttpOptions): Promise<Service> {
  const { httpHost: host, httpToken: token, deltaOverlapMs: overlapMs, queues, ...limits } = config;
  const fetchers =
    queues === null
      ? undefined
      : async () => {
          const { listFetchers } = await import('@catchword/queue-redis/list-fetchers');
          const { fetchers, ...redis } = await listFetchers(queues, options.clock);
          return { ...redis, fetchers: fetchers.map((one) => ({ ...one, roles: ['fetcher'], other_settings: [] })) };
        };
  return await startWeb({
    ...options,
    ...limits,
    host,
    token,
    overlapMs,
    fetchers,
    source: configuredSource(config.baseUrl),
    upcoming: (nowMs, most) => upcomingRuns(config, nowMs, most),
    plans: ({ schedule }, nowMs) => plansOf(config, schedule.servedOfEach(), nowMs),
  });
}
