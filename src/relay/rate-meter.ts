import type { Clock } from '../clock.ts';

const WINDOW_MS = 5_000;

/** Measures events per second, over the last seconds in which there were any. */
export function createRateMeter(clock: Pick<Clock, 'now'>) {
  let since = clock.now();
  let counted = 0;
  let lastRate = 0;
  return {
    count: (events: number): void => {
      const now = clock.now();
      const wasSetBack = now < since;
      if (wasSetBack) since = now;
      if (now - since > WINDOW_MS) {
        // After a pause the rate starts at 0: an idle sink is not a slow one.
        lastRate = now - since > 2 * WINDOW_MS ? 0 : (counted * 1000) / (now - since);
        since = now;
        counted = 0;
      }
      counted += events;
    },
    rate: (): number => {
      const elapsed = clock.now() - since;
      return elapsed < 1_000 ? lastRate : (counted * 1000) / elapsed;
    },
  };
}
