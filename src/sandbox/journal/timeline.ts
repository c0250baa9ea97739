import type { Clock } from '../../clock.ts';

/**
 * The time of what the sandbox holds. It stands still during a change, so that all of the change has the time that the
 * journal says, now and when it is done again; and it never goes back.
 */
export interface Timeline {
  /** Milliseconds since 1970. */
  now(): number;
  /** Does `change` at the time `at`, or later where time had gone on further. */
  during<T>(at: number, change: () => T): T;
  /** Goes with the clock from now on. Until then, time is what the last change had. */
  run(): void;
}

/** @param beginning milliseconds since 1970; where it stands until it runs. Default: now, and it runs */
export function createTimeline(clock: Pick<Clock, 'now'>, beginning?: number): Timeline {
  let latest = beginning ?? clock.now();
  let stands = beginning !== undefined;
  return {
    now: () => {
      if (!stands) latest = Math.max(latest, clock.now());
      return latest;
    },
    during: (at, change) => {
      const stood = stands;
      latest = Math.max(latest, at);
      stands = true;
      try {
        return change();
      } finally {
        stands = stood;
      }
    },
    run: () => {
      stands = false;
    },
  };
}
