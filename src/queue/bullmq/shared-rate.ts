import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Clock } from '../../base/clock.ts';
import { limiterOf } from './jobs.ts';

/** Last part of the key of a hash: when each keeper of the source set its rate, its interval in ms, and its limiter. */
const KEEPERS_KEY = 'keepers';
/** A keeper with a run under way sets its rate every five seconds, by reconciling; milliseconds. */
const IN_USE_MS = 60_000;
/** No run waits for so long without a request; milliseconds. */
const GONE_MS = 86_400_000;
/** When Redis has lost the rates, every keeper with a run under way sets its own again within this time; milliseconds. */
const LOST_MS = 10_000;

/** Sets the limiter of the queue. @returns whether one was set before, the longest interval, and the mirrors that are gone */
const SET = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. ' ' .. ARGV[2])
  local slowest, gone = nil, {}
  local keepers = redis.call('HGETALL', KEYS[1])
  for index = 1, #keepers, 2 do
    local at, interval, max, duration = string.match(keepers[index + 1], '^(%d+) (%S+) (%d+) (%d+)$')
    local age = now - tonumber(at)
    if age > tonumber(ARGV[4]) then
      redis.call('HDEL', KEYS[1], keepers[index])
      gone[#gone + 1] = keepers[index]
    elseif age < tonumber(ARGV[3]) and (not slowest or tonumber(interval) > tonumber(slowest[1])) then
      slowest = {interval, max, duration}
    end
  end
  local wasSet = redis.call('HEXISTS', KEYS[2], 'max')
  redis.call('HSET', KEYS[2], 'max', slowest[2], 'duration', slowest[3])
  return {wasSet, slowest[1], gone}`;

/**
 * The rate of all fetchers of a source. Its mirrors share the fetchers, so the lowest rate of their keepers holds: one
 * may have learned a limit that another does not know.
 */
export function createSharedRate(fetchQueue: Queue, redis: Redis, mirror: string, clock: Clock) {
  const keys = [fetchQueue.toKey(KEEPERS_KEY), fetchQueue.toKey('meta')] as const;
  /** The interval that holds since the last call; null before the first. */
  let known: number | null = null;
  let lost = { intervalMs: 0, until: 0 };

  async function put(intervalMs: number) {
    const own = `${intervalMs} ${limiterOf(intervalMs === 0 ? null : intervalMs).join(' ')}`;
    const reply = await redis.eval(SET, keys.length, ...keys, mirror, own, IN_USE_MS, GONE_MS);
    const [wasSet, longest, gone] = reply as [number, string, string[]];
    return { wasSet: wasSet === 1, longest: Number(longest), gone };
  }

  /** Blocks all fetchers for one interval: a Redis that was flushed does not know when the last request was. */
  async function block(intervalMs: number): Promise<void> {
    const ms = Math.ceil(intervalMs);
    if (ms > (await fetchQueue.getRateLimitTtl())) await fetchQueue.rateLimit(ms);
  }

  return {
    /**
     * Sets this keeper's part.
     * @param intervalMs time between two requests; null for no limit
     * @returns incarnations of mirrors for which no pages were asked for in a day
     */
    set: async (intervalMs: number | null): Promise<readonly string[]> => {
      const own = intervalMs ?? 0;
      let found = await put(clock.now() < lost.until ? Math.max(own, lost.intervalMs) : own);
      if (known !== null && !found.wasSet) {
        lost = { intervalMs: known, until: clock.now() + LOST_MS };
        found = await put(Math.max(own, known));
        await block(found.longest);
      }
      known = found.longest;
      return found.gone;
    },
    /** Ends this keeper's part. */
    end: async (): Promise<void> => {
      await redis.hdel(keys[0], mirror);
    },
  };
}
