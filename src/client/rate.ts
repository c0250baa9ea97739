import { unlessAborted } from '../abort.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError } from '../errors.ts';

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
  /** The first request is not made before this; milliseconds since 1970. */
  readonly notBefore?: number;
}

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

/**
 * Requests evenly spaced on a grid, never in a burst: whatever window a source counts in, it sees no more than the rate.
 * A request that is late by no more than the slack does not move the grid, or every delay of a timer would add up.
 */
export function createPacer({ pace, clock, notBefore = 0 }: PacerOptions): Pacer {
  let blockedUntil = notBefore;
  let nextSlot = 0;
  let queue: Promise<unknown> = Promise.resolve();

  async function waitUntilFree(signal: AbortSignal, patienceMs: number, isWanted: () => boolean): Promise<boolean> {
    for (;;) {
      signal.throwIfAborted();
      if (!isWanted()) return false;
      const now = clock.now();
      if (blockedUntil - now > patienceMs) throw blocked(blockedUntil - now);
      const freeAt = Math.max(nextSlot, blockedUntil);
      if (freeAt <= now) break;
      // In steps: a block that was set in the meantime, or a clock that was put right, is noticed.
      await clock.sleep(Math.min(freeAt - now, 1_000), signal);
    }
    if (pace === null) return true;
    const now = clock.now();
    const slot = Math.max(nextSlot, blockedUntil);
    nextSlot = (now - slot <= pace.slackMs ? slot : now) + pace.intervalMs;
    return true;
  }

  return {
    acquire: (signal, patienceMs = Number.POSITIVE_INFINITY, isWanted = () => true) => {
      const turn = queue.then(() => waitUntilFree(signal, patienceMs, isWanted));
      // Who waits behind others hears of it at once; its place rejects by itself when its turn comes.
      const granted = unlessAborted(turn, signal);
      queue = turn.catch(() => {});
      return granted;
    },
    blockUntil: (timeMs) => {
      blockedUntil = Math.max(blockedUntil, timeMs);
    },
  };
}
