import type { FastifyInstance } from 'fastify';
import type { Clock } from '../clock.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import { iso } from '../iso-time.ts';
import { errorFields, type Logger } from '../log.ts';
import { completeAt } from '../report/status.ts';
import type { Store } from '../store/store.ts';
import { HEALTH_PATH } from './auth.ts';

export interface ReadinessOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** `/readyz` answers 503 if the mirror is older, milliseconds. */
  readonly readyMaxAgeMs: number;
  /** Why the rest (the sinks) is not ready; null if it is. */
  readonly unready: (store: Store) => string | null;
}

/** Why the mirror should not be relied on; null if it may be. */
function unreadyReason({ store, clock, readyMaxAgeMs, unready }: ReadinessOptions): string | null {
  const asOf = completeAt(store);
  if (asOf === null) return 'the first full load has not finished';
  const ageMs = clock.now() - asOf;
  if (Math.abs(ageMs) <= readyMaxAgeMs) return unready(store);
  return ageMs < 0
    ? `the mirror's age is unknown: it is as of ${iso(asOf)}, which is ahead of this machine's clock`
    : `the mirror is as of ${iso(asOf)}, which is older than CATCHWORD_READY_MAX_AGE allows`;
}

export function addHealth(app: FastifyInstance, options: ReadinessOptions, log: Logger): void {
  app.get(HEALTH_PATH, async () => ({ alive: true }));

  app.get('/readyz', async (_request, reply) => {
    let reason: string | null;
    try {
      options.store.check();
      reason = options.store.read(() => unreadyReason(options));
    } catch (error) {
      log.error(errorFields(error), 'readiness check failed');
      const isKnown = error instanceof CatchwordError;
      reason = isKnown ? `${error.message} [${error.code}]` : `the mirror cannot be read (${messageOf(error)})`;
    }
    return reply.code(reason === null ? 200 : 503).send({ ready: reason === null, reason });
  });
}
