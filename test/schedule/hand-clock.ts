import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/clock.ts';

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
  const sleepers = new Set<{ readonly at: number; wake(): void }>();

  /** What was woken may take several turns before it sleeps again. */
  async function settle(): Promise<void> {
    for (let turns = 0; turns < 5; turns++) await turn();
  }

  return {
    now: () => offsetMs + passedMs,
    random: () => 0.5,
    sleep: (ms, signal) =>
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
        const sleeper = { at: passedMs + ms, wake };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', onAbort);
      }),
    pass: async (ms) => {
      const until = passedMs + ms;
      await settle();
      for (;;) {
        const [next] = [...sleepers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
        if (next === undefined) break;
        passedMs = Math.max(passedMs, next.at);
        sleepers.delete(next);
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
