import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { limiterOf } from './jobs.ts';

/** Last part of the key of a hash: when each keeper of the source set its rate, and the interval in ms or nothing. */
const KEEPERS_KEY = 'keepers';
/** A keeper with a run under way sets its rate every five seconds, by reconciling; milliseconds. */
const IN_USE_MS = 60_000;
/** No run waits for so long without a request; milliseconds. */
const GONE_MS = 86_400_000;

/** @returns the longest interval in use or '', whether a limit was set before, and the mirrors that are gone */
const SET = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. ' ' .. ARGV[2])
  local longest, gone = '', {}
  local keepers = redis.call('HGETALL', KEYS[1])
  for index = 1, #keepers, 2 do
    local at, interval = string.match(keepers[index + 1], '^(%d+) (.*)$')
    local age = now - tonumber(at)
    if age > tonumber(ARGV[4]) then
      redis.call('HDEL', KEYS[1], keepers[index])
      gone[#gone + 1] = keepers[index]
    elseif age < tonumber(ARGV[3]) and interval ~= '' and (longest == '' or tonumber(interval) > tonumber(longest)) then
      longest = interval
    end
  end
  return {longest, redis.call('HEXISTS', KEYS[2], 'max'), gone}`;

/**
 * The rate of all fetchers of a source. Its mirrors share the fetchers, so the lowest rate of their keepers holds: one
 * may have learned a limit that another does not know.
 */
export function createSharedRate(fetchQueue: Queue, redis: Redis, mirror: string) {
  const keepers = fetchQueue.toKey(KEEPERS_KEY);
  let wasSet = false;
  return {
    /**
     * Sets this keeper's part.
     * @param intervalMs time between two requests; null for no limit
     * @returns incarnations of mirrors for which no pages were asked for in a day
     */
    set: async (intervalMs: number | null): Promise<readonly string[]> => {
      const own = [mirror, intervalMs ?? '', IN_USE_MS, GONE_MS];
      const reply = await redis.eval(SET, 2, keepers, fetchQueue.toKey('meta'), ...own);
      const [longest, isSet, gone] = reply as [string, number, string[]];
      const [max, durationMs] = limiterOf(longest === '' ? null : Number(longest));
      await fetchQueue.setGlobalRateLimit(max, durationMs);
      // A Redis that was flushed does not know when the last request was.
      const isForgotten = wasSet && isSet === 0;
      if (isForgotten && durationMs > (await fetchQueue.getRateLimitTtl())) await fetchQueue.rateLimit(durationMs);
      wasSet = true;
      return gone;
    },
    /** Ends this keeper's part. */
    end: async (): Promise<void> => {
      await redis.hdel(keepers, mirror);
    },
  };
}
