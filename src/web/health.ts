import type { FastifyInstance } from 'fastify';
import type { Clock } from '../clock.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import { iso } from '../iso-time.ts';
import { errorFields, type Logger } from '../log.ts';
import type { Store } from '../store/store.ts';
import { HEALTH_PATH } from './auth.ts';

export interface ReadinessOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** How old the mirror may be, milliseconds. */
  readonly maxAgeMs: number;
  /** Why what stands beside the mirror is not as it should be; null where it is. */
  readonly unready: (store: Store) => string | null;
}

/**
 * Why the mirror should not be relied on; null where it may be. Age is counted by this machine's clock, from when the
 * last complete run began: the source's own clock may be wrong by any amount.
 */
export function unreadyReason({ store, clock, maxAgeMs, unready }: ReadinessOptions): string | null {
  const watermark = store.watermark();
  if (watermark === null) return 'the mirror was never filled';
  const asOf = store.clockSeen()?.local ?? watermark;
  if (asOf - clock.now() > maxAgeMs) {
    return `the mirror is as of ${iso(asOf)}, which lies ahead of this machine's clock: its age is not known`;
  }
  if (clock.now() - asOf > maxAgeMs) {
    return `the mirror is as of ${iso(asOf)}, which is longer ago than CATCHWORD_READY_MAX_AGE allows`;
  }
  return unready(store);
}

export function addHealth(app: FastifyInstance, options: ReadinessOptions, log: Logger): void {
  app.get(HEALTH_PATH, async () => ({ alive: true }));

  app.get('/readyz', async (_request, reply) => {
    let reason: string | null;
    try {
      options.store.check();
      reason = options.store.read(() => unreadyReason(options));
    } catch (error) {
      log.error(errorFields(error), 'readiness could not be found out');
      const known = error instanceof CatchwordError;
      reason = known ? `${error.message} [${error.code}]` : `the mirror cannot be read (${messageOf(error)})`;
    }
    return reply.code(reason === null ? 200 : 503).send({ ready: reason === null, reason });
  });
}
