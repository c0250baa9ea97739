import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/clock.ts';

interface Sleeper {
  readonly at: number;
  wake(): void;
}

/** Those who sleep until a moment of `time`. */
function createSleepers(time: () => number, onSleep: () => void = () => {}) {
  const sleepers = new Set<Sleeper>();
  return {
    count: () => sleepers.size,
    /** Removes the one who wakes first, if that is not after `until`. */
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

/** A clock that moves when the test says so. */
export interface HandClock extends Clock {
  /** Lets time pass: sleepers wake in order, and have their turn before the next one wakes. */
  pass(ms: number): Promise<void>;
  /** Sets the clock by this much, as an operator does: no time passes, so that no sleeper wakes. */
  set(byMs: number): void;
}

export function createHandClock(startMs: number): HandClock {
  let passedMs = 0;
  let offsetMs = startMs;
  const { takeNext, sleep } = createSleepers(() => passedMs);

  /** What was woken may take several turns before it sleeps again. */
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

/** Time that passes only while everything waits for it: it jumps to the moment the next sleeper wants to be woken at. */
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
