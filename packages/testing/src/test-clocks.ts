import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '@catchword/base/clock';

interface Sleeper {
  readonly at: number;
  wake(): void;
}

/** The sleepers of a clock, each with the time at which it wakes. */
function createSleepers(time: () => number, onSleep: () => void = () => {}) {
  const sleepers = new Set<Sleeper>();
  return {
    count: () => sleepers.size,
    /** Removes the sleeper that wakes first, if it wakes by `until`. */
    takeNext: (until: number): Sleeper | undefined => {
      const [next] = [...sleepers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
      if (next !== undefined) sleepers.delete(next);
      return next;
    },
    sleep: (ms: number, signal?: AbortSignal): Promise<void> =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const onAbort = (): void => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        const wake = (): void => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        };
        const sleeper = { at: time() + ms, wake };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', onAbort);
        onSleep();
      }),
  };
}

/** A clock that the test moves. */
export interface HandClock extends Clock {
  /** Lets time pass. Sleepers wake in order, and each one runs before the next wakes. */
  pass(ms: number): Promise<void>;
  /** Changes the clock by this much, as an operator does. No time passes, so no sleeper wakes. */
  set(byMs: number): void;
}

export function createHandClock(startMs: number): HandClock {
  let passedMs = 0;
  let offsetMs = startMs;
  const { takeNext, sleep } = createSleepers(() => passedMs);

  /** A woken sleeper may take several turns of the event loop before it sleeps again. */
  async function settle(): Promise<void> {
    for (let turns = 0; turns < 5; turns++) await turn();
  }

  return {
    now: () => offsetMs + passedMs,
    random: () => 0.5,
    sleep,
    pass: async (ms) => {
      const until = passedMs + ms;
      await settle();
      for (let next = takeNext(until); next !== undefined; next = takeNext(until)) {
        passedMs = Math.max(passedMs, next.at);
        next.wake();
        await settle();
      }
      passedMs = until;
    },
    set: (byMs) => {
      offsetMs += byMs;
    },
  };
}

/** A clock that jumps to the next sleeper's time whenever everything else is idle. */
export function createVirtualClock(): Clock {
  let now = 1_000_000;
  const { count, takeNext, sleep } = createSleepers(
    () => now,
    () => {
      if (count() === 1) setImmediate(advance);
    },
  );

  function advance(): void {
    const next = takeNext(Number.POSITIVE_INFINITY);
    if (next === undefined) return;
    now = Math.max(now, next.at);
    next.wake();
    setImmediate(advance);
  }

  return { now: () => now, random: () => 0, sleep };
}
