import { CatchwordError, messageOf } from '@catchword/base/errors';
import { iso } from '@catchword/base/iso-time';
import { errorFields, type Logger } from '@catchword/base/log';
import type { Run } from '@catchword/catalog/run-types';
import type { FastifyInstance } from 'fastify';
import * as z from 'zod';
import { METRICS_TYPE, type Metrics } from '../operate/metrics/metrics.ts';
import { openText } from '../report/run-text.ts';
import { haltedSinks } from '../report/sink-report.ts';
import { type MirrorState, openRun } from '../state/mirror-state.ts';
import { ALIVE, ERROR, READINESS } from './answers.ts';
import { HEALTH_PATH } from './auth.ts';
import { type HttpError, sendError } from './http-error.ts';
import type { PageParts } from './pages/page-view.ts';
import { answering, body, sending } from './route-schema.ts';

export interface ReadinessOptions extends Pick<PageParts, 'store' | 'state'> {
  /** Tells whether the thread that loads and delivers, if it is another one, hangs. */
  readonly isStalled?: (() => boolean) | undefined;
  /** Names a problem that the process works around, in words without secrets; null if all is well. */
  readonly problem?: (() => string | null) | undefined;
}

function unreadyReason(state: MirrorState): string | null {
  const asOf = iso(state.asOf);
  switch (state.freshness) {
    case 'empty':
      return 'the first full load has not finished';
    case 'clock':
      return `the mirror's age is unknown: it is as of ${asOf}, which is ahead of this machine's clock`;
    case 'stale':
      return `the mirror is as of ${asOf}, which is older than CATCHWORD_READY_MAX_AGE allows`;
    case 'fresh':
      return haltedSinks(state);
  }
}

const STALLED: HttpError = {
  code: 'STALLED',
  message: 'the thread that loads and delivers has not run for a while',
  hint: 'Restart catchword if this lasts.',
};

/** Answers that the process is alive, and names its problem: to start it again would not solve that. */
export function addAlive(app: FastifyInstance, options: Pick<ReadinessOptions, 'isStalled' | 'problem'>): void {
  const alive = answering(ALIVE, {
    operationId: 'getHealth',
    summary: 'Whether the process is alive',
    description:
      'Needs no token, and does not read the mirror. Answers 503 if a daemon does nothing but serve HTTP any more.',
    tags: ['operation'],
    security: [],
  });
  app.get(HEALTH_PATH, { schema: alive }, async (_request, reply) => {
    if (options.isStalled?.() === true) return sendError(reply, STALLED);
    const problem = options.problem?.() ?? null;
    return problem === null ? { alive: true } : { alive: true, problem };
  });
}

export function addHealth(app: FastifyInstance, options: ReadinessOptions, log: Logger): void {
  addAlive(app, options);
  const readiness = answering(READINESS.meta({ description: 'The mirror may be relied on.' }), {
    operationId: 'getReadiness',
    summary: 'Whether the mirror may be relied on',
    description: 'Answers 503 with the reason if the mirror is older than allowed, or a sink is stopped.',
    tags: ['operation'],
  });
  const unready = body(
    'The mirror should not be relied on, or catchword is stopping.',
    'application/json',
    z.union([READINESS, ERROR]),
  );
  const schema = { ...readiness, response: { ...readiness.response, 503: unready } };
  app.get('/readyz', { schema }, async (_request, reply) => {
    let reason: string | null;
    let run: Run | null = null;
    try {
      const { store, state } = options;
      store.check();
      const now = store.read(state);
      [reason, run] = [unreadyReason(now), openRun(now)];
    } catch (error) {
      log.error(errorFields(error), 'readiness check failed');
      const isKnown = error instanceof CatchwordError;
      reason = isKnown ? `${error.message} [${error.code}]` : `the mirror cannot be read (${messageOf(error)})`;
    }
    return reply.code(reason === null ? 200 : 503).send({ ready: reason === null, reason, open: run && openText(run) });
  });
}

/** Serves the figures of this process, and of the mirror where it is shown, in Prometheus's text format. */
export function addMetrics(app: FastifyInstance, metrics: Metrics): void {
  const schema = sending(body("Metrics in Prometheus's text format.", 'text/plain', z.string()), {
    operationId: 'getMetrics',
    summary: 'Figures for Prometheus',
    description: 'The figures of this process and of the mirror.',
    tags: ['operation'],
  });
  app.get('/metrics', { schema }, async (_request, reply) => reply.type(METRICS_TYPE).send(await metrics.text()));
}
