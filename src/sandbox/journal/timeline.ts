import type { Clock } from '../../base/clock.ts';

/**
 * The time of the sandbox's state. It stands still during a change, so that the whole change has the time that the journal
 * records, now and when it is replayed. It never goes back.
 * @param beginning milliseconds since 1970; the time until the first change
 */
export function createTimeline(clock: Pick<Clock, 'now'>, beginning: number) {
  let latest = beginning;
  let stopped = true;
  return {
    /** Milliseconds since 1970. */
    now: (): number => {
      if (!stopped) latest = Math.max(latest, clock.now());
      return latest;
    },
    /** Makes a change at the time `at`, or later if time is already further. */
    during: <T>(at: number, change: () => T): T => {
      const before = stopped;
      latest = Math.max(latest, at);
      stopped = true;
      try {
        return change();
      } finally {
        stopped = before;
      }
    },
    /** Follows the clock from now on. Until then, it is the time of the last change. */
    run: (): void => {
      stopped = false;
    },
  };
}

export type Timeline = ReturnType<typeof createTimeline>;
