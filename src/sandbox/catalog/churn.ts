import type { Clock } from '../../base/clock.ts';
import { CatchwordError } from '../../base/errors.ts';
import type { Mutation } from './changing-catalog.ts';
import { createRandom } from './random.ts';

const MIN_TICK_MS = 20;

/**
 * Changes the catalog at a steady pace until the signal aborts: 40% updates, 30% creations, 30% removals. The seed alone
 * decides what changes and in which order, the clock when.
 */
export async function churn(
  mutate: (mutation: Mutation) => void,
  { perSecond, seed, clock, signal }: { perSecond: number; seed: number; clock: Clock; signal: AbortSignal },
): Promise<void> {
  const random = createRandom(seed);
  const startedAt = clock.now();
  let done = 0;
  while (!signal.aborted) {
    try {
      await clock.sleep(Math.max(MIN_TICK_MS, 1000 / perSecond), signal);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    for (const due = ((clock.now() - startedAt) / 1000) * perSecond; done + 1 <= due; done++) {
      const chance = random();
      try {
        mutate(chance < 0.4 ? { update: 1 } : chance < 0.7 ? { create: 1 } : { remove: 1 });
      } catch (error) {
        // A change that cannot be journaled, as on a full disk, is skipped; the next one may succeed.
        if (!(error instanceof CatchwordError)) throw error;
      }
    }
  }
}
