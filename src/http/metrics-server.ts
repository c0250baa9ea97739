import { systemClock } from '@catchword/base/clock';
import type { Service } from '@catchword/base/lifecycle';
import { startMetrics } from '../operate/metrics/metrics.ts';
import { createApp } from './app.ts';
import { addAuth, HEALTH_PATH } from './auth.ts';
import { addAlive, addMetrics } from './health.ts';
import { checkExposure, listen } from './listen.ts';
import type { WebOptions } from './web-server.ts';

export type MetricsServerOptions = Pick<WebOptions, 'host' | 'port' | 'token' | 'rateLimit' | 'log' | 'problem'>;

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
