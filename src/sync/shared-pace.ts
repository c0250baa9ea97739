import { type Clock, createPauses, laterPause, type Pauses } from '@catchword/base/clock';
import { hasCode, messageOf } from '@catchword/base/errors';
import { iso } from '@catchword/base/iso-time';
import type { Tell } from '@catchword/base/log';
import { afterRefusal, afterRequests, type LearnedLimit } from '@catchword/pace/learned-rate';
import { type Pace, paceOf, type Rate } from '@catchword/pace/pace';
import { createPacer, type Pacer, type PacerOptions, type Reserve } from '@catchword/pace/pacer';
import type { Store } from '../store/store.ts';

/** The parts of the mirror that its processes share to keep one pace. */
type PaceStore = Pick<Store, 'source' | 'path'>;

/** While another process writes the mirror, a reservation is retried after this; milliseconds. */
const BUSY_RETRY_MS = 500;

/** How often the requests that a learned limit allowed are noted in the mirror; milliseconds. */
const NOTE_USED_MS = 10_000;

export const KEEPS_PACE_ALONE = 'this process keeps CATCHWORD_RATE_LIMIT by itself';

/** The turns of all processes that share a Redis. */
export interface SharedTurns {
  /** @param own the pace of this process; null for no limit. @returns null if Redis does not answer */
  take(own: Pace | null): ReturnType<NonNullable<PacerOptions['shared']>>;
  /** Tells them to pause, if Redis answers. */
  pause(pauseMs: number): void;
}

export interface PaceOptions {
  readonly config: { readonly rateLimit: Rate | null };
  readonly clock: Clock;
  readonly tell: Tell;
  /** `--now`: ignore the pause that is noted at the start, even if this user cannot end it for all processes. */
  readonly now?: boolean | undefined;
}

/** @returns what `work` returns; `instead` if another process writes the mirror */
function unlessBusy<T>(instead: T, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (hasCode(error, 'MIRROR_BUSY')) return instead;
    throw error;
  }
}

/** Reserves requests in the mirror, for all its processes. */
function reserveIn({ source, path }: PaceStore, tell: Tell): Reserve {
  return (nowMs, request) => {
    const at = unlessBusy(nowMs + BUSY_RETRY_MS, () => source.reserve(nowMs, request));
    if (at === null) tell({ message: KEEPS_PACE_ALONE, fields: { reason: `${path} cannot be written` } });
    return at;
  };
}

/** Pauses that the source asked for, noted in the mirror for all its processes. */
export function pausesIn({ source }: PaceStore, { clock, tell, now = false }: PaceOptions): Pauses {
  /** Pauses that could not be noted in the mirror. */
  const own = createPauses();
  const ignoredTo = now ? (source.pause(clock.now())?.until ?? 0) : 0;
  return {
    current: (nowMs) => {
      const pause = unlessBusy(source.pause(nowMs), () => source.keepPause(nowMs));
      return laterPause(own.current(nowMs), pause !== null && pause.until <= ignoredTo ? null : pause);
    },
    note: (pause) => {
      try {
        if (source.notePause(pause)) return;
      } catch (error) {
        const fields = { reason: messageOf(error) };
        tell({ message: 'a pause that the source asked for could not be noted', fields });
      }
      own.note(pause);
    },
  };
}

/** A limit that is learned where none is configured, and noted in the mirror for all its processes. */
function learnedLimit({ source }: PaceStore, { clock, tell }: PaceOptions): LearnedLimit {
  let used = 0;
  let notedAt = clock.now();

  /** What cannot be noted now is noted later: a request that succeeded must not fail because of this. */
  function learn(refusedPerMinute: number | null): boolean {
    try {
      source.learnRate((known) => {
        const before = known === null ? null : afterRequests(known, used);
        return refusedPerMinute === null ? before : afterRefusal(before?.perMinute ?? refusedPerMinute);
      });
    } catch (error) {
      if (hasCode(error, 'MIRROR_BUSY', 'MIRROR_WRITE_FAILED')) return false;
      throw error;
    }
    [used, notedAt] = [0, clock.now()];
    return true;
  }

  return {
    pace: () => {
      const known = source.learnedRate();
      return known && paceOf({ requests: known.perMinute, windowMs: 60_000 });
    },
    used: (requests) => {
      if (source.learnedRate() === null) return;
      used += requests;
      if (Math.abs(clock.now() - notedAt) >= NOTE_USED_MS) learn(null);
    },
    refused: (perMinute) => {
      if (!learn(perMinute)) return;
      const limit = source.learnedRate();
      if (limit === null) return;
      const [refusedPerMinute, limitPerMinute] = [limit.refusedAt, limit.perMinute].map(Math.round);
      const reason = `it refused ${refusedPerMinute} requests a minute; ${limitPerMinute} are made now`;
      tell({ message: 'slower, because of the source', fields: { refusedPerMinute, limitPerMinute, reason } });
    },
  };
}

/** The limit, configured or learned; without a mirror none is learned. */
function limitIn(mirror: PaceStore | null, options: PaceOptions) {
  const { rateLimit } = options.config;
  const learned = rateLimit === null && mirror !== null ? learnedLimit(mirror, options) : undefined;
  const pace = paceOf(rateLimit);
  return { pace, learned, current: () => pace ?? learned?.pace() ?? null };
}

export function fetcherPace(mirror: PaceStore, options: PaceOptions) {
  const { current: pace, learned } = limitIn(mirror, options);
  return { pace, learned };
}

/**
 * Paces the requests of this process together with those of the mirror's other processes.
 * @param mirror null if there is none: this process then keeps the pace alone
 * @param redis takes turns with the fetchers in Redis; default: in the mirror only
 */
export function mirrorPacer(options: PaceOptions, mirror: PaceStore | null, redis?: SharedTurns): Pacer {
  const { clock, tell } = options;
  const { pace, learned, current } = limitIn(mirror, options);
  const noted = mirror === null ? createPauses() : pausesIn(mirror, options);
  const pauses: Pauses = {
    current: (nowMs) => noted.current(nowMs),
    note: (pause) => {
      noted.note(pause);
      redis?.pause(pause.until - pause.since);
    },
  };
  return createPacer({
    clock,
    pace,
    learned,
    pauses,
    ...(mirror !== null && { reserve: reserveIn(mirror, tell) }),
    shared: redis && (() => redis.take(current())),
    onWait: ({ reason, until }) => {
      const why = reason === 'asked' ? 'the source asked for a pause' : 'CATCHWORD_RATE_LIMIT allows no more';
      tell({ message: 'waiting before the next request', fields: { reason: why, until: iso(until) } });
    },
  });
}

/** `--now`: ends the pause for every process of the mirror. One that this user cannot write keeps it; see `PaceOptions`. */
export function forgetPause({ source, schedule }: Pick<Store, 'source' | 'schedule'>, nowMs: number, tell: Tell): void {
  const pause = source.pause(nowMs);
  if (pause === null || !source.forgetPause()) return;
  const retry = schedule.retry();
  if (retry !== null) schedule.setRetry({ ...retry, at: nowMs });
  const fields = { until: iso(pause.until), reason: 'a running daemon asks the source now, too' };
  tell({ message: 'ending the pause that the source asked for', fields });
}
