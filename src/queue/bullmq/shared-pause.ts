import { Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { type Clock, createPauses } from '../../base/clock.ts';
import { PAUSE_ENDED_KEY } from './jobs.ts';

/** The pause that the source asked for, as a fetcher knows it. Redis holds it for all fetchers of the source. */
export function createSharedPause(connection: Redis, worker: Worker, clock: Clock) {
  const pauses = createPauses();
  /** The value of PAUSE_ENDED_KEY when the pause began. */
  let endedBefore: string | null = null;

  /** Milliseconds that are left of the pause, as far as this process knows. */
  function leftMs(): number {
    const now = clock.now();
    return (pauses.current(now)?.until ?? now) - now;
  }

  function lastEnded(): Promise<string | null> {
    return connection.get(worker.toKey(PAUSE_ENDED_KEY));
  }

  /** Blocks all fetchers for the rest of the pause, or of a longer one that another fetcher has set. */
  async function blockAll(): Promise<void> {
    const known = await worker.getBackend().getRateLimitTtl();
    await worker.rateLimit(Math.ceil(Math.max(1, known, leftMs())));
  }

  return {
    /** Throws BullMQ's rate limit error, which returns the job to the queue, while there is a pause. */
    check: async (): Promise<void> => {
      if (leftMs() <= 0) return;
      const ended = await lastEnded();
      // An operator may have ended the pause.
      if (ended !== null && ended !== endedBefore) pauses.forget();
      if (leftMs() <= 0) return;
      await blockAll();
      throw Worker.RateLimitError();
    },
    /** Pauses all fetchers. @returns whether this pause is longer than the one already known */
    begin: async (pauseMs: number): Promise<boolean> => {
      const isLonger = pauseMs > leftMs();
      if (isLonger) {
        const since = clock.now();
        // Read first, because another job may check the pause as soon as it is noted.
        const before = await lastEnded();
        pauses.note({ since, until: since + pauseMs });
        endedBefore = before;
      }
      await blockAll();
      return isLonger;
    },
  };
}
