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
  const { httpHost: host, httpToken: token, deltaOverlapMs: overlapMs, ...limits } = config;
  return await startWeb({
    ...options,
    ...limits,
    host,
    token,
    overlapMs,
    source: configuredSource(config.baseUrl),
    upcoming: (nowMs, most) => upcomingRuns(config, nowMs, most),
    plans: ({ schedule }, nowMs) => plansOf(config, schedule.servedOfEach(), nowMs),
  });
}
