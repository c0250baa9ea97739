import type { Clock } from '../clock.ts';

/** Hands out the moments at which a request may be made. */
export interface Pacer {
  /** Resolves when the caller may make one request; first come, first served. Rejects when `signal` aborts. */
  acquire(signal: AbortSignal): Promise<void>;
  /** No request before `timeMs` (milliseconds since 1970), for those that wait already as well. */
  blockUntil(timeMs: number): void;
}

export interface PacerOptions {
  /** Between two requests, in milliseconds; null for no limit. See `paceOf`. */
  readonly intervalMs: number | null;
  readonly clock: Clock;
  /** The first request is not made before this; milliseconds since 1970. */
  readonly notBefore?: number;
}

/** Slower than the rate by this, so that jitter on the way cannot make a source count one too many. */
const MARGIN = 1.01;

/** @param ratePerMs requests a millisecond; null for no limit */
export function paceOf(ratePerMs: number | null): number | null {
  return ratePerMs === null ? null : MARGIN / ratePerMs;
}

/**
 * Requests evenly spaced on a grid, never in a burst: whatever window a source counts in, it sees no more than the rate.
 * A request that is late by less than an interval does not move the grid, or every delay of a timer would add up.
 */
export function createPacer({ intervalMs, clock, notBefore = 0 }: PacerOptions): Pacer {
  let blockedUntil = notBefore;
  let nextSlot = 0;
  let queue: Promise<void> = Promise.resolve();

  async function waitUntilFree(signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const now = clock.now();
      const freeAt = Math.max(nextSlot, blockedUntil);
      if (freeAt <= now) break;
      // In steps: a block that was set in the meantime, or a clock that was put right, is noticed.
      await clock.sleep(Math.min(freeAt - now, 1_000), signal);
    }
    if (intervalMs === null) return;
    const now = clock.now();
    const slot = nextSlot + intervalMs > now ? Math.max(nextSlot, blockedUntil) : now;
    nextSlot = slot + intervalMs;
  }

  return {
    acquire: (signal) => {
      const turn = queue.then(() => waitUntilFree(signal));
      queue = turn.catch(() => {});
      return turn;
    },
    blockUntil: (timeMs) => {
      blockedUntil = Math.max(blockedUntil, timeMs);
    },
  };
}
