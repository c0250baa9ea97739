import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';

/** Retries wait for up to 30 s, or until the pause of all fetchers ends; milliseconds. */
const LATEST_RETRY_MS = 60_000;
/** BullMQ orders delayed jobs by their time in milliseconds, multiplied by this. */
const SCORE_OF_MS = 0x1000;

/**
 * Starts retries that are put off for longer than any retry is, by Redis's clock: that of the fetcher which put them off
 * was ahead, and they would wait until then.
 */
export async function startLateRetries(fetchQueue: Queue, redis: Redis): Promise<void> {
  const [seconds = 0] = (await redis.time()).map(Number);
  const latest = seconds * 1_000 + LATEST_RETRY_MS + (await fetchQueue.getRateLimitTtl());
  const late = await redis.zrangebyscore(fetchQueue.toKey('delayed'), latest * SCORE_OF_MS, '+inf');
  for (const id of late) await (await fetchQueue.getJob(id))?.promote();
}
