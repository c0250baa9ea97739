import { setTimeout as delay } from 'node:timers/promises';

/** Time and chance as parameters, so that the same code runs in the simulator. */
export interface Clock {
  /** Milliseconds since 1970, of this machine. */
  now(): number;
  /** Resolves after `ms`; rejects with the signal's reason when aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** At least 0, below 1. */
  random(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal === undefined ? {} : { signal });
  },
  random: () => Math.random(),
};
