import type { Clock } from '../clock.ts';

export interface Meter {
  count(events: number): void;
  /** Events a second, over the last seconds in which there were any. */
  rate(): number;
}

const WINDOW_MS = 5_000;

export function createMeter(clock: Pick<Clock, 'now'>): Meter {
  let since = clock.now();
  let counted = 0;
  let before = 0;
  return {
    count: (events) => {
      const now = clock.now();
      // The clock was put back.
      if (now < since) since = now;
      if (now - since > WINDOW_MS) {
        // After a pause the window begins anew: nothing to do is not slowness.
        before = now - since > 2 * WINDOW_MS ? 0 : (counted * 1000) / (now - since);
        since = now;
        counted = 0;
      }
      counted += events;
    },
    rate: () => {
      const elapsed = clock.now() - since;
      return elapsed < 1_000 ? before : (counted * 1000) / elapsed;
    },
  };
}
