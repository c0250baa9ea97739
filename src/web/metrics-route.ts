import type { FastifyInstance } from 'fastify';
import { METRICS_TYPE, type Metrics } from '../metrics/metrics.ts';

/** Serves the figures of this process, and of the mirror where it is shown, in Prometheus's text format. */
export function addMetrics(app: FastifyInstance, metrics: Metrics): void {
  app.get('/metrics', async (_request, reply) => reply.type(METRICS_TYPE).send(await metrics.text()));
}
