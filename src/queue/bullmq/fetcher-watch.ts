import type { Queue } from 'bullmq';
import type { Logger } from '../../base/log.ts';

const HINT =
  'Start npx catchword fetcher with the settings of this keeper: address, key, currencies, details and lookup path.';

/** Logs when no fetcher reads the tasks of this queue, so that pages wait, and when one does again. */
export function createFetcherWatch(fetchQueue: Queue, log: Logger): () => Promise<void> {
  let isLonely = false;
  return async () => {
    const wasLonely = isLonely;
    // Some services of Redis forbid clients to list others, or to name themselves.
    const workers = await fetchQueue.getWorkersCount().catch(() => null);
    isLonely = workers === 0 && (await fetchQueue.getActiveCount()) === 0;
    if (isLonely && !wasLonely) log.warn({ hint: HINT }, 'no fetcher reads the pages of this keeper');
    if (wasLonely && !isLonely) log.info({}, 'a fetcher reads the pages of this keeper again');
  };
}
