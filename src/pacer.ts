import { unlessAborted } from './abort.ts';
import { type Clock, createPauses, type Pauses } from './clock.ts';
import { CatchwordError } from './errors.ts';

/** Hands out the moments at which a request may be made. */
export interface Pacer {
  /**
   * Resolves when the caller may make one request; first come, first served. Rejects as soon as `signal` aborts, and the
   * place in the row is free again.
   * @param patienceMs the longest block to wait for, in milliseconds; default: any
   * @param isWanted asked as long as it waits at the head of the row; default: it is
   * @returns whether a request may be made; false where it was not wanted any longer, which leaves the turn to the next
   * @throws CatchwordError SOURCE_RATE_LIMITED with `retryAfterMs`, where the block lasts longer
   */
  acquire(signal: AbortSignal, patienceMs?: number, isWanted?: () => boolean): Promise<boolean>;
  /** No request before `timeMs` (milliseconds since 1970), for those that wait already as well. */
  blockUntil(timeMs: number): void;
}

export interface PacerOptions {
  /** Null for no limit. */
  readonly pace: Pace | null;
  readonly clock: Clock;
  /** Keeps the pauses that the source asks for; default: in memory. */
  readonly pauses?: Pauses;
  /** Shares the pace with other processes; default: this process keeps it alone. */
  readonly reserve?: Reserve;
  /** Called before a wait of more than a few seconds; of those that the pace asks for, before the first. */
  readonly onWait?: (wait: Wait) => void;
}

/** A wait that a person would wonder about. */
export interface Wait {
  /** `asked`: the source asked for a pause. `pace`: the rate limit allows no earlier request. */
  readonly reason: 'asked' | 'pace';
  readonly ms: number;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/**
 * Reserves `slots` requests, one interval apart, for this process alone among all that share the limit.
 * @returns the moment of the first of them, not later than `nowMs`; or, where it is later, when to ask again: nothing is
 *   reserved then. Null where the limit cannot be shared: this process keeps the pace alone from then on.
 */
export type Reserve = (nowMs: number, request: Pace & { readonly slots: number }) => number | null;

/** So many requests in any window of this length. */
export interface Rate {
  readonly requests: number;
  readonly windowMs: number;
}

export interface Pace {
  readonly intervalMs: number;
  /** How late a request may be without moving those behind it. */
  readonly slackMs: number;
}

/** Slower than the rate by this: room for jitter on the way and for lateness here, before a source counts one too many. */
const MARGIN = 0.01;

export function paceOf(rate: Rate | null): Pace | null {
  if (rate === null) return null;
  return { intervalMs: ((1 + MARGIN) * rate.windowMs) / rate.requests, slackMs: (MARGIN * rate.windowMs) / 2 };
}

function blocked(forMs: number): CatchwordError {
  return new CatchwordError(
    'SOURCE_RATE_LIMITED',
    `the service asked for no request for another ${Math.ceil(forMs / 1_000)} s`,
    { hint: 'Try again after that time; nothing was sent.', retryAfterMs: forMs },
  );
}

/** Shorter waits need no word. */
const LONG_WAIT_MS = 5_000;
/** In steps: a block that was set in the meantime, or a clock that was put right, is noticed. */
const STEP_MS = 1_000;
/**
 * How far ahead requests are reserved. Above some 10 requests a second they are reserved several at a time, so that
 * neither the disk nor the lock of the mirror that keeps the reservations becomes the limit.
 */
const RESERVED_MS = 200;

function slotsOf({ intervalMs }: Pace): number {
  return Math.max(1, Math.floor(RESERVED_MS / intervalMs));
}

/** The moment that a request at `now` counts as made at. */
function counted(slot: number, now: number, { slackMs }: Pace): number {
  return now - slot <= slackMs ? slot : now;
}

/** Hands out the slots of one process; with `reserve`, only reserved ones. */
function createSlots(pace: Pace, reserve: Reserve | undefined) {
  const slots = slotsOf(pace);
  let shared = reserve;
  let next = 0;
  /** Up to here requests are reserved. */
  let reservedTo = 0;

  function isReserved(now: number): boolean {
    // Further ahead than ever reserved: the clock was put back, and what was reserved is not known any more.
    const isKnown = reservedTo <= now + slots * pace.intervalMs;
    return isKnown && counted(next, now, pace) + pace.intervalMs <= reservedTo + pace.slackMs;
  }

  return {
    /** When the next request may be made: now, where it is not later than that. */
    at(now: number): number {
      // Never further ahead, unless the clock was put back.
      next = Math.min(next, now + pace.intervalMs);
      if (next > now || shared === undefined || isReserved(now)) return next;
      const found = shared(now, { ...pace, slots });
      if (found === null) shared = undefined;
      if (found === null || found > now) return found ?? next;
      next = found;
      reservedTo = found + slots * pace.intervalMs;
      return found;
    },
    take(now: number): void {
      next = counted(next, now, pace) + pace.intervalMs;
    },
  };
}

/**
 * Requests evenly spaced on a grid, never in a burst: whatever window a source counts in, it sees no more than the rate.
 * A request that is late by no more than the slack does not move the grid, or every delay of a timer would add up.
 */
export function createPacer({ pace, clock, pauses = createPauses(), reserve, onWait }: PacerOptions): Pacer {
  const slots = pace === null ? null : createSlots(pace, reserve);
  let queue: Promise<unknown> = Promise.resolve();
  /** End of the wait that was announced last. */
  let announced = 0;
  let hasPaceWaited = false;

  function announce(wait: Wait): void {
    if (wait.ms <= LONG_WAIT_MS || Math.abs(wait.until - announced) < LONG_WAIT_MS) return;
    if (wait.reason === 'pace' && hasPaceWaited) return;
    hasPaceWaited ||= wait.reason === 'pace';
    announced = wait.until;
    onWait?.(wait);
  }

  /** How long it is until the next request may be made; 0 where it may be now. */
  function waitOf(now: number): Pick<Wait, 'ms' | 'reason'> {
    const pause = pauses.current(now);
    if (pause !== null) return { ms: pause.until - now, reason: 'asked' };
    return { ms: Math.max(0, (slots?.at(now) ?? now) - now), reason: 'pace' };
  }

  async function waitUntilFree(signal: AbortSignal, patienceMs: number, isWanted: () => boolean): Promise<boolean> {
    for (;;) {
      signal.throwIfAborted();
      if (!isWanted()) return false;
      const now = clock.now();
      const { ms, reason } = waitOf(now);
      if (reason === 'asked' && ms > patienceMs) throw blocked(ms);
      if (ms === 0) {
        slots?.take(now);
        return true;
      }
      announce({ reason, ms, until: now + ms });
      await clock.sleep(Math.min(ms, STEP_MS), signal);
    }
  }

  return {
    acquire: (signal, patienceMs = Number.POSITIVE_INFINITY, isWanted = () => true) => {
      const turn = queue.then(() => waitUntilFree(signal, patienceMs, isWanted));
      // Who waits behind others hears of it at once; its place rejects by itself when its turn comes.
      const granted = unlessAborted(turn, signal);
      queue = turn.catch(() => {});
      return granted;
    },
    blockUntil: (until) => pauses.note({ since: clock.now(), until }),
  };
}
