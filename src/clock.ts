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

/** The longest pause that is believed, whatever a service asks for: a day. */
export const LONGEST_PAUSE_MS = 86_400_000;

/** A pause by this machine's clock, milliseconds since 1970. */
export interface Pause {
  /** When it was noted. */
  readonly since: number;
  readonly until: number;
}

/**
 * The pause by a clock that may have been put back since it was noted: it is never longer than it was then. Where the
 * clock shows a time before `since`, nothing tells how much of the pause has passed, so it begins now.
 * @returns null where it is over
 */
export function pauseAt({ since, until }: Pause, nowMs: number): Pause | null {
  const lengthMs = until - since;
  if (nowMs < since) return lengthMs > 0 ? { since: nowMs, until: nowMs + lengthMs } : null;
  return nowMs < until ? { since, until } : null;
}

/** Of two pauses as they are now, the one that ends later. */
export function laterPause(one: Pause | null, other: Pause | null): Pause | null {
  return one === null || (other !== null && other.until > one.until) ? other : one;
}

/** The pause that a service asked for, as all who ask it know it. */
export interface Pauses {
  /** Null where there is none, or where it is over. */
  current(nowMs: number): Pause | null;
  /** A pause that ends later stays. */
  note(pause: Pause): void;
}

/** Keeps a pause in memory, for this process alone. */
export function createPauses(): Pauses & { forget(): void } {
  let known: Pause | null = null;

  function current(nowMs: number): Pause | null {
    known = known === null ? null : pauseAt(known, nowMs);
    return known;
  }

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
