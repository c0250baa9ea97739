import type { Clock } from '../clock.ts';

/**
 * The time of what the sandbox holds. It stands still during a change, so that all of the change has the time that the
 * journal says, now and when it is replayed; and it never goes back.
 */
export interface Timeline {
  /** Milliseconds since 1970. */
  now(): number;
  /** Does `change` at the time `at`, or later where time had gone on further. */
  during<T>(at: number, change: () => T): T;
}

export function createTimeline(clock: Pick<Clock, 'now'>): Timeline {
  let latest = Number.NEGATIVE_INFINITY;
  let stands = false;
  const reach = (time: number) => {
    latest = Math.max(latest, time);
    return latest;
  };
  return {
    now: () => (stands ? latest : reach(clock.now())),
    during: (at, change) => {
      reach(at);
      stands = true;
      try {
        return change();
      } finally {
        stands = false;
      }
    },
  };
}
