import { type Clock, createPauses, laterPause, type Pause, type Pauses } from '../../clock.ts';
import type { SourceConfig } from '../../config.ts';
import { CatchwordError, hasCode, messageOf } from '../../errors.ts';
import type { Logger, Notice, Tell } from '../../log.ts';
import { createPacer, type Pacer, paceOf, type Reserve, type Wait } from '../../pacer.ts';
import type { Store } from '../../store/store.ts';
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

/** Requests are reserved in the mirror, for all its processes; by a user who may only read it, for this process alone. */
function reserveIn({ source, path }: Pick<Store, 'source' | 'path'>, tell: Tell): Reserve {
  return (nowMs, request) => {
    try {
      const at = source.reserve(nowMs, request);
      if (at === null) {
        tell({
          message: 'the rate limit is kept by this process alone: the mirror cannot be written',
          fields: { mirror: path },
          text: `${path} cannot be written: this process keeps CATCHWORD_RATE_LIMIT by itself, not together with others`,
        });
      }
      return at;
    } catch (error) {
      if (hasCode(error, 'MIRROR_BUSY')) return nowMs + BUSY_AGAIN_MS;
      throw error;
    }
  };
}

export interface PaceOptions {
  readonly config: Pick<SourceConfig, 'rateLimit'>;
  readonly clock: Clock;
  readonly tell: Tell;
  /** `--now`: the pause that is noted now does not count, where this user may not end it for all processes. */
  readonly now?: boolean | undefined;
}

/** Pauses are noted in the mirror, so that all its processes keep to them, and `--now` ends them for all. */
export function pausesIn({ source }: Pick<Store, 'source'>, { clock, tell, now = false }: PaceOptions): Pauses {
  /** What could not be noted: this process keeps to it all the same. */
  const own = createPauses();
  const ignoredTo = now ? (source.pause(clock.now())?.until ?? 0) : 0;

  function noted(nowMs: number): Pause | null {
    try {
      return source.keepPause(nowMs);
    } catch (error) {
      if (hasCode(error, 'MIRROR_BUSY')) return source.pause(nowMs);
      throw error;
    }
  }

  return {
    current: (nowMs) => {
      const pause = noted(nowMs);
      return laterPause(own.current(nowMs), pause !== null && pause.until <= ignoredTo ? null : pause);
    },
    note: (pause) => {
      try {
        if (source.notePause(pause)) return;
      } catch (error) {
        const reason = messageOf(error);
        const message = 'a pause that the source asked for could not be noted';
        tell({ message, fields: { reason }, text: `${message}: ${reason}` });
      }
      own.note(pause);
    },
  };
}

/**
 * The pace, and the pauses, that all processes of a mirror share.
 * @param here the mirror; null where there is none, so that this process keeps them alone
 */
export function mirrorPacer(options: PaceOptions, here: Pick<Store, 'source' | 'path'> | null): Pacer {
  const { config, clock, tell } = options;
  return createPacer({
    pace: paceOf(config.rateLimit),
    clock,
    ...(here !== null && { pauses: pausesIn(here, options), reserve: reserveIn(here, tell) }),
    onWait: (wait) => tell(waitNotice(wait)),
  });
}

/**
 * `--now`: ends the pause that the source asked for, for every process of the mirror, and lets a daemon whose run was
 * refused try again at once. A mirror that this user may only read keeps it; see `PaceOptions.now`.
 */
export function forgetPause({ source, schedule }: Pick<Store, 'source' | 'schedule'>, nowMs: number, tell: Tell): void {
  const pause = source.pause(nowMs);
  if (pause === null || !source.forgetPause()) return;
  const retry = schedule.retry();
  if (retry !== null) schedule.setRetry({ ...retry, at: nowMs });
  tell({
    message: 'a pause that the source asked for is ended',
    fields: { until: new Date(pause.until).toISOString() },
    text: `the source asked for no request before ${moment(pause.until)} UTC: it is asked now, by a running daemon too`,
  });
}

/** @throws CatchwordError SOURCE_RATE_LIMITED where the source asked for a pause that is too long to wait for */
export function checkPause({ source }: Pick<Store, 'source'>, nowMs: number): void {
  const pause = source.pause(nowMs);
  const waitMs = pause === null ? 0 : pause.until - nowMs;
  if (pause === null || waitMs <= PATIENCE_MS) return;
  throw new CatchwordError('SOURCE_RATE_LIMITED', `the source asked for no request before ${moment(pause.until)} UTC`, {
    hint: `Try again in ${duration(waitMs)}. With --now, sync and verify ask at once: npx catchword sync --now.`,
    retryAfterMs: waitMs,
  });
}
