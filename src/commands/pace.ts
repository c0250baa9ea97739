import { createPacer, type Pacer, paceOf, type Reserve, type Wait } from '../client/rate.ts';
import type { Clock } from '../clock.ts';
import type { SourceConfig } from '../config.ts';
import { CatchwordError, systemCodeOf } from '../errors.ts';
import type { Logger, Notice, Tell } from '../log.ts';
import type { Store } from '../store/store.ts';
import type { CommandContext } from './context.ts';
import { duration, isTerminal, moment } from './format.ts';

/** While another process writes the mirror, a reservation is tried again after this; milliseconds. */
const BUSY_AGAIN_MS = 500;
/** A pause that is longer is not waited for by a command; milliseconds. */
const PATIENCE_MS = 3_600_000;

/** Tells a daemon's log. */
export function toLog(log: Logger): Tell {
  return ({ message, fields }) => log.warn(fields, message);
}

/** Tells the person who runs a command, on stderr. */
export function toPerson({ stderr }: Pick<CommandContext, 'stderr'>): Tell {
  // Over a progress bar, which is drawn again.
  const clear = isTerminal(stderr) ? '\r\u001b[K' : '';
  return ({ text }) => stderr.write(`${clear}${text}\n`);
}

function waitNotice({ reason, ms, until }: Wait): Notice {
  const why =
    reason === 'asked' ? 'the source asked for no request before then' : 'CATCHWORD_RATE_LIMIT allows no more';
  return {
    message: 'waiting before the next request',
    fields: { reason: why, until: new Date(until).toISOString() },
    text: `waiting ${duration(ms)}, until ${moment(until)} UTC: ${why}`,
  };
}

/** Tells of a wait of `ms` milliseconds before a page is retried. */
export function retryNotice(error: CatchwordError, ms: number, nowMs: number): Notice {
  const until = nowMs + ms;
  return {
    message: 'waiting before a retry',
    fields: { code: error.code, reason: error.message, until: new Date(until).toISOString() },
    text: `waiting ${duration(ms)}, until ${moment(until)} UTC, before a retry: ${error.message}`,
  };
}

function isReadOnly(error: unknown): boolean {
  return error instanceof CatchwordError && (systemCodeOf(error.cause) ?? '').startsWith('SQLITE_READONLY');
}

function reserveIn({ source, path }: Pick<Store, 'source' | 'path'>, tell: Tell): Reserve {
  return (nowMs, request) => {
    try {
      return source.reserve(nowMs, request);
    } catch (error) {
      if (error instanceof CatchwordError && error.code === 'MIRROR_BUSY') {
        return { at: nowMs + BUSY_AGAIN_MS, paused: false };
      }
      if (!isReadOnly(error)) throw error;
      tell({
        message: 'the rate limit is kept by this process alone: the mirror cannot be written',
        fields: { mirror: path },
        text: `${path} cannot be written: this process keeps CATCHWORD_RATE_LIMIT by itself, not together with others`,
      });
      return null;
    }
  };
}

export interface PaceOptions {
  readonly config: Pick<SourceConfig, 'rateLimit'>;
  readonly clock: Clock;
  readonly tell: Tell;
}

/** The pace, and the pauses, that all processes of a mirror share. */
export function mirrorPacer({ config, clock, tell }: PaceOptions, store: Pick<Store, 'source' | 'path'>): Pacer {
  return createPacer({
    pace: paceOf(config.rateLimit),
    clock,
    notBefore: store.source.pause(clock.now())?.until ?? 0,
    reserve: reserveIn(store, tell),
    onWait: (wait) => tell(waitNotice(wait)),
  });
}

/**
 * @param now whether to ask the source now, although it asked for a pause: the pause is forgotten
 * @throws CatchwordError SOURCE_RATE_LIMITED where the source asked for a pause that is too long to wait for
 */
export function checkPause({ source }: Pick<Store, 'source'>, nowMs: number, now = false): void {
  const pause = source.pause(nowMs);
  if (pause === null) return;
  if (now) {
    source.setPause(null);
    return;
  }
  const waitMs = pause.until - nowMs;
  if (waitMs <= PATIENCE_MS) return;
  throw new CatchwordError('SOURCE_RATE_LIMITED', `the source asked for no request before ${moment(pause.until)} UTC`, {
    hint: `Try again in ${duration(waitMs)}; catchword sync --now asks at once.`,
    retryAfterMs: waitMs,
  });
}
