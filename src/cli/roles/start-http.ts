import type { Clock } from '../../base/clock.ts';
import type { Service } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import { configuredSource } from '../../catalog/event.ts';
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
          const { listFetchers } = await import('../../queue/bullmq/list-fetchers.ts');
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
