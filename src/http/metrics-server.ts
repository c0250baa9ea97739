import { systemClock } from '../base/clock.ts';
import type { Service } from '../base/lifecycle.ts';
import type { Logger } from '../base/log.ts';
import { startMetrics } from '../operate/metrics/metrics.ts';
import type { Rate } from '../pace/pace.ts';
import { createApp } from './app.ts';
import { addAuth, HEALTH_PATH } from './auth.ts';
import { addAlive } from './health.ts';
import { checkExposure, listen } from './listen.ts';
import { addMetrics } from './metrics-route.ts';

export interface MetricsServerOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Bearer token required from clients; needed unless `host` is on loopback. */
  readonly token: string | undefined;
  /** CATCHWORD_RATE_LIMIT; null without a limit. */
  readonly rateLimit: Rate | null;
  readonly log: Logger;
  /** As in `ReadinessOptions`. */
  readonly problem?: (() => string | null) | undefined;
}

/**
 * Serves the figures of a role that has no other HTTP.
 * @throws CatchwordError CONFIG_INVALID
 */
export async function startMetricsServer(options: MetricsServerOptions): Promise<Service> {
  const { host, port, token, rateLimit, log } = options;
  checkExposure(host, token);
  const metrics = startMetrics({ rateLimit });
  const app = createApp(log, `Use /metrics or ${HEALTH_PATH}.`);
  addAuth(app, { token, clock: systemClock, log, login: false });
  addAlive(app, options);
  addMetrics(app, metrics);
  try {
    log.info({ address: await listen(app, host, port, 'CATCHWORD_METRICS_PORT') }, 'listening');
  } catch (error) {
    await metrics.close();
    throw error;
  }
  return {
    name: 'metrics',
    stop: async () => {
      await app.close();
      await metrics.close();
    },
  };
}
