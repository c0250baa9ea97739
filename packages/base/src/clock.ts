import { setTimeout as delay } from 'node:timers/promises';

/** Time and randomness as parameters, so that the same code runs in the simulator. */
export interface Clock {
  /** This machine's time, milliseconds since 1970. */
  now(): number;
  /** Resolves after `ms`; rejects with the signal's reason if that aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** A random number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal === undefined ? {} : { signal });
  },
  random: () => Math.random(),
};

/** The longest pause that is accepted from a service: a day. */
export const LONGEST_PAUSE_MS = 86_400_000;

/** A pause that a service asked for, by this machine's clock; milliseconds since 1970. */
export interface Pause {
  readonly since: number;
  readonly until: number;
}

/**
 * Corrects a pause for a clock that may have been put back since it began, so that it never becomes longer; null if it is
 * over. If the clock shows a time before `since`, the pause starts over now, because the time passed is unknown.
 */
export function pauseAt({ since, until }: Pause, nowMs: number): Pause | null {
  const lengthMs = until - since;
  if (nowMs < since) return lengthMs > 0 ? { since: nowMs, until: nowMs + lengthMs } : null;
  return nowMs < until ? { since, until } : null;
}

/** The pause that ends later. */
export function laterPause(one: Pause | null, other: Pause | null): Pause | null {
  return one === null || (other !== null && other.until > one.until) ? other : one;
}

export interface Pauses {
  /** Null without a pause, or if it is over. */
  current(nowMs: number): Pause | null;
  /** Sets the pause, unless the current one ends later. */
  note(pause: Pause): void;
}

/** Keeps the pause in memory, for this process only. */
export function createPauses(): Pauses & { forget(): void } {
  let known: Pause | null = null;
  const current = (nowMs: number): Pause | null => {
    known &&= pauseAt(known, nowMs);
    return known;
  };
  return {
    current,
    note: (pause) => {
      known = laterPause(current(pause.since), pause);
    },
    forget: () => {
      known = null;
    },
  };
}
