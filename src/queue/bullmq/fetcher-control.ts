import type { Queue } from 'bullmq';
import type { Clock, Pause } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Pace } from '../../pace/pace.ts';
import type { createSharedRate } from './shared-rate.ts';

export interface FetcherControlOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** The pace of all fetchers together; null for no limit. */
  readonly pace: () => Pace | null;
  /** The pause that the mirror notes; default: none. Fetchers do not know it if a command was told, or Redis was flushed. */
  readonly pause?: () => Pause | null;
}

const HINT =
  'Start npx catchword fetcher with the settings of this keeper: address, key, currencies, details and lookup path.';

/** What a keeper tells its fetchers through Redis, and knows of them. */
export function createFetcherControl(
  fetchQueue: Queue,
  rate: ReturnType<typeof createSharedRate>,
  { clock, log, pace, pause }: FetcherControlOptions,
) {
  let isLonely = false;
  return {
    /**
     * Sets how fast they may read: again and again, because a limit may have been learned, and Redis flushed, since.
     * @returns incarnations of mirrors that are gone
     */
    setPace: async (): Promise<readonly string[]> => {
      const gone = await rate.set(pace()?.intervalMs ?? null);
      const now = clock.now();
      const leftMs = Math.ceil((pause?.()?.until ?? now) - now);
      if (leftMs > 0 && leftMs > (await fetchQueue.getRateLimitTtl())) await fetchQueue.rateLimit(leftMs);
      return gone;
    },
    /** Logs when there is none, so that pages wait, and when there is one again. */
    watch: async (): Promise<void> => {
      const wasLonely = isLonely;
      // Some services of Redis forbid clients to list others, or to name themselves.
      const workers = await fetchQueue.getWorkersCount().catch(() => null);
      isLonely = workers === 0 && (await fetchQueue.getActiveCount()) === 0;
      if (isLonely && !wasLonely) log.warn({ hint: HINT }, 'no fetcher reads the pages of this keeper');
      if (wasLonely && !isLonely) log.info({}, 'a fetcher reads the pages of this keeper again');
    },
  };
}
