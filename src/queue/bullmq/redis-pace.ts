import { createHash } from 'node:crypto';
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Pace } from '../../pace/pace.ts';
import type { Reserve } from '../../pace/pacer.ts';
import { createWaitingLine, type Wait } from '../../pace/waiting-line.ts';
import type { RedisTrouble } from '../redis-trouble.ts';
import { reasonOf } from './redis-connection.ts';

/*
 * The pace of all fetchers of a source, in Redis and by Redis's clock. Each keeper of the source states its own pace,
 * and the slowest one holds: one keeper may have learned a limit that another does not know. A Redis that was flushed
 * knows no pace, so no fetcher makes a request until a keeper states its pace again.
 */

/** A keeper with a run under way states its pace every five seconds; milliseconds. */
const IN_USE_MS = 60_000;
/** No run waits for so long without a request; milliseconds. */
const GONE_MS = 86_400_000;
/** When Redis has lost the paces, every keeper with a run under way states its own again within this time; milliseconds. */
const LOST_MS = 10_000;
const UNLIMITED: Pace = { intervalMs: 0, slackMs: 0 };
/** How long a fetcher waits if no keeper has stated its pace, or Redis does not answer; milliseconds. */
const RETRY_MS = 500;

/** Last parts of the keys: a hash of what each keeper stated, the time of the next request, and the pause. */
const PARTS = ['keepers', 'next-request', 'pause'] as const;

function keysOf(toKey: (part: string) => string): readonly [keepers: string, next: string, pause: string] {
  const [keepers, next, pause] = PARTS;
  return [toKey(keepers), toKey(next), toKey(pause)];
}

/**
 * Begins a pause of ARGV[1] ms, unless the current one ends later; then reserves a request, unless there is a pause.
 * ARGV[2] and ARGV[3]: interval and slack of a process that has a pace of its own; 0 for fetchers, which have none.
 * @returns whether the pause begun is the longest, and the milliseconds until the request, which is reserved with 0
 */
const RESERVE = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + time[2] / 1000
  local pause = math.max(0, redis.call('PTTL', KEYS[3]))
  local isLonger = tonumber(ARGV[1]) > pause
  if isLonger then redis.call('SET', KEYS[3], 1, 'PX', ARGV[1]) end
  pause = math.max(pause, tonumber(ARGV[1]))
  if pause > 0 then return {isLonger and 1 or 0, tostring(pause)} end
  local slowest, slack = tonumber(ARGV[2]), tonumber(ARGV[3])
  if slowest == 0 then slowest = nil end
  local keepers = redis.call('HGETALL', KEYS[1])
  for index = 2, #keepers, 2 do
    local at, interval, late = string.match(keepers[index], '^(%S+) (%S+) (%S+)$')
    if at and now - tonumber(at) < ${IN_USE_MS} and (not slowest or tonumber(interval) > slowest) then
      slowest, slack = tonumber(interval), tonumber(late)
    end
  end
  if not slowest then return {0, '${RETRY_MS}'} end
  if slowest == 0 then return {0, '0'} end
  local next = math.min(tonumber(redis.call('GET', KEYS[2]) or 0), now + slowest)
  if next > now then return {0, tostring(next - now)} end
  local slot = now - next <= slack and next or now
  redis.call('SET', KEYS[2], string.format('%.3f', slot + slowest), 'PX', math.ceil(slowest) + ${LOST_MS})
  return {0, '0'}`;

const RESERVE_SHA = createHash('sha1').update(RESERVE).digest('hex');

async function reserve(redis: Redis, keys: readonly string[], pauseMs: number, own: Pace = UNLIMITED) {
  const given = [keys.length, ...keys, Math.ceil(pauseMs), own.intervalMs, own.slackMs] as const;
  // Redis may not have the script yet, or any more. Sending all of it each time costs more than the reservation.
  const answer = await redis.evalsha(RESERVE_SHA, ...given).catch((error: unknown) => {
    if (messageOf(error).startsWith('NOSCRIPT')) return redis.eval(RESERVE, ...given);
    throw error;
  });
  const [isLonger, waitMs] = answer as [number, string];
  return { isLonger: isLonger === 1, waitMs: Number(waitMs) };
}

/** Takes turns with all fetchers of the source. They wait while Redis does not answer. */
export function createRedisTurns(
  redis: Redis,
  toKey: (part: string) => string,
  { clock, trouble }: { readonly clock: Clock; readonly trouble: RedisTrouble },
) {
  const keys = keysOf(toKey);

  async function take(): Promise<Omit<Wait, 'until'>> {
    try {
      return { ms: (await reserve(redis, keys, 0)).waitMs, reason: 'pace' };
    } catch (error) {
      trouble.failed('reserve a request', reasonOf(error));
      return { ms: RETRY_MS, reason: 'pace' };
    }
  }

  return {
    acquire: createWaitingLine({ clock, take }),
    /** Pauses all fetchers. @returns whether this pause ends later than the one already known */
    pause: async (pauseMs: number): Promise<boolean> => (await reserve(redis, keys, pauseMs)).isLonger,
  };
}

function slower(one: Pace, other: Pace): Pace {
  return other.intervalMs > one.intervalMs ? other : one;
}

/** Reserves requests of a process that has a pace of its own, such as a command, among those of the fetchers. */
export function createRedisReserve(redis: Redis, toKey: (part: string) => string): Reserve {
  const keys = keysOf(toKey);
  return async (nowMs, pace) => nowMs + (await reserve(redis, keys, 0, pace)).waitMs;
}

/** The keeper's part: it states its pace and its pause. */
export function createStatedPace(fetchQueue: Queue, redis: Redis, mirror: string, clock: Clock) {
  const keys = keysOf((part) => fetchQueue.toKey(part));
  const [keepers, next, pause] = keys;
  /** The slowest pace since the last statement; null before the first. */
  let known: Pace | null = null;
  /** What this keeper states for other keepers until they can do so. */
  let lost = { pace: UNLIMITED, until: 0 };

  /** What other keepers have stated. */
  async function others() {
    const [seconds = 0, micros = 0] = (await redis.time()).map(Number);
    const nowMs = seconds * 1_000 + Math.floor(micros / 1_000);
    const found = Object.entries(await redis.hgetall(keepers)).map(([name, stated]) => {
      const [at = 0, intervalMs = 0, slackMs = 0] = stated.split(' ').map(Number);
      return { name, ageMs: nowMs - at, pace: { intervalMs, slackMs } };
    });
    return { nowMs, found };
  }

  return {
    /**
     * @param own null for no limit
     * @param pauseMs what is left of the pause that the mirror notes; 0 without one
     * @returns incarnations of mirrors for which no pages were asked for in a day
     */
    state: async (own: Pace | null, pauseMs: number): Promise<readonly string[]> => {
      const { nowMs, found } = await others();
      if (known !== null && found.every(({ name }) => name !== mirror)) {
        lost = { pace: known, until: clock.now() + LOST_MS };
        // Redis has forgotten when the last request was, too.
        await redis.set(next, nowMs + known.intervalMs, 'PX', Math.ceil(known.intervalMs) + LOST_MS);
      }
      const pace = clock.now() < lost.until ? slower(own ?? UNLIMITED, lost.pace) : (own ?? UNLIMITED);
      const inUse = found.filter(({ name, ageMs }) => name !== mirror && ageMs < IN_USE_MS);
      known = inUse.reduce((slowest, one) => slower(slowest, one.pace), pace);
      if (pauseMs > 0) await reserve(redis, keys, pauseMs);
      await redis.hset(keepers, mirror, `${nowMs} ${pace.intervalMs} ${pace.slackMs}`);
      const gone = found.filter(({ ageMs }) => ageMs > GONE_MS).map(({ name }) => name);
      if (gone.length > 0) await redis.hdel(keepers, ...gone);
      return gone.filter((name) => name !== mirror);
    },
    /** Milliseconds that are left of the pause; 0 without one. */
    pauseMs: async (): Promise<number> => Math.max(0, await redis.pttl(pause)),
    endPause: async (): Promise<void> => {
      await redis.del(pause);
    },
    /** Withdraws what this keeper has stated. */
    end: async (): Promise<void> => {
      await redis.hdel(keepers, mirror);
    },
  };
}
