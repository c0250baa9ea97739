import type { FastifyInstance } from 'fastify';
import * as z from 'zod';
import { METRICS_TYPE, type Metrics } from '../operate/metrics/metrics.ts';
import { body, sending } from './route-schema.ts';

const SCHEMA = sending(body("Metrics in Prometheus's text format.", 'text/plain', z.string()), {
  operationId: 'getMetrics',
  summary: 'Figures for Prometheus',
  description: 'The figures of this process and of the mirror.',
  tags: ['operation'],
});

/** Serves the figures of this process, and of the mirror where it is shown, in Prometheus's text format. */
export function addMetrics(app: FastifyInstance, metrics: Metrics): void {
  app.get('/metrics', { schema: SCHEMA }, async (_request, reply) =>
    reply.type(METRICS_TYPE).send(await metrics.text()),
  );
}
