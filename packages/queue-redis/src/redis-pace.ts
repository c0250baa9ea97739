import { createHash, randomUUID } from 'node:crypto';
import { type Clock, createPauses } from '@catchword/base/clock';
import { messageOf } from '@catchword/base/errors';
import { hostUrls } from '@catchword/base/host-urls';
import { reasonOf, redisPlace } from '@catchword/base/redis-place';
import type { Pace } from '@catchword/pace/pace';
import { createWaitingLine, type Wait } from '@catchword/pace/waiting-line';
import type { Redis } from 'ioredis';
import { PREFIX, type QueuePlace, queueNames } from './jobs.ts';
import { type ConnectionOptions, ONE_TRY, ONE_TRY_MS } from './redis-connection.ts';

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
/** How long a process waits if no keeper has stated its pace, or Redis does not answer; milliseconds. */
const RETRY_MS = 500;
/** A process that waits for a turn asks every second. One that has not asked for so long is gone; milliseconds. */
const LEFT_MS = 3_000;

/**
 * The keys of a source, in the order in which the script gets them: what each keeper stated (hash), when the next request
 * may be made, the pause (its end and its length), and the processes that wait for a turn: in which order (sorted set), and
 * when each asked last (hash).
 */
function keysOf(source: string) {
  const key = (part: string): string => `${PREFIX}:${queueNames({ source }).fetch}:${part}`;
  const [keepers, next, pause] = [key('keepers'), key('next-request'), key('pause')];
  return { keepers, next, pause, waiting: key('waiting'), asked: key('asked') };
}

/**
 * Begins a pause of ARGV[1] ms, unless the current one ends later; then takes a turn, unless there is a pause.
 * - ARGV[2], ARGV[3]: interval and slack of a process that has a pace of its own, 0 for no limit; '' for fetchers
 * - ARGV[4]: names the process. Processes take turns in the order in which they came: the nearest one would otherwise get all
 * - ARGV[5]: statements that are older do not count
 *
 * Redis's clock may be put back: then neither a pause nor the time to the next request becomes longer than it was.
 *
 * Returns whether the pause begun is the longest, the milliseconds to wait, with 0 for a turn, and for what.
 */
const TAKE = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + time[2] / 1000
  local pauseEnd, length = string.match(redis.call('GET', KEYS[3]) or '', '^(%S+) (%S+)$')
  local known = pauseEnd and math.max(0, math.min(pauseEnd - now, tonumber(length))) or 0
  local left = math.max(known, tonumber(ARGV[1]))
  if left > known or (pauseEnd and pauseEnd - now > left) then
    redis.call('SET', KEYS[3], string.format('%.0f %.0f', now + left, left), 'PX', math.ceil(left))
  end
  if left > 0 then return {left > known and 1 or 0, tostring(left), 'asked'} end

  local since = tonumber(ARGV[5])
  if since > now then since = 0 end
  local isStated, slowest, slack = ARGV[2] ~= '', tonumber(ARGV[2]) or 0, tonumber(ARGV[3]) or 0
  local keepers = redis.call('HGETALL', KEYS[1])
  for index = 2, #keepers, 2 do
    local at, interval, late = string.match(keepers[index], '^(%S+) (%S+) (%S+)$')
    if at and tonumber(at) >= since and now - at < ${IN_USE_MS} then
      isStated = true
      if tonumber(interval) > slowest then slowest, slack = tonumber(interval), tonumber(late) end
    end
  end
  if not isStated then return {0, '${RETRY_MS}', 'pace'} end
  if slowest == 0 then return {0, '0', 'pace'} end

  local last = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2] or 0
  redis.call('ZADD', KEYS[4], 'NX', last + 1, ARGV[4])
  redis.call('HSET', KEYS[5], ARGV[4], now)
  redis.call('PEXPIRE', KEYS[4], ${IN_USE_MS})
  redis.call('PEXPIRE', KEYS[5], ${IN_USE_MS})
  local ahead = 0
  for _, name in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
    if name == ARGV[4] then break end
    if math.abs(now - (redis.call('HGET', KEYS[5], name) or 0)) < ${LEFT_MS} then
      ahead = ahead + 1
    else
      redis.call('ZREM', KEYS[4], name)
      redis.call('HDEL', KEYS[5], name)
    end
  end
  local noted = tonumber(redis.call('GET', KEYS[2]) or 0)
  local next = math.min(noted, now + slowest)
  local taken = next <= now and ahead == 0
  if taken then next = (now - next <= slack and next or now) + slowest end
  if next ~= noted then
    redis.call('SET', KEYS[2], string.format('%.3f', next), 'PX', math.ceil(slowest) + ${LOST_MS})
  end
  if not taken then return {0, tostring(math.max(1, next - now) + ahead * slowest), 'pace'} end
  redis.call('ZREM', KEYS[4], ARGV[4])
  redis.call('HDEL', KEYS[5], ARGV[4])
  return {0, '0', 'pace'}`;

const TAKE_SHA = createHash('sha1').update(TAKE).digest('hex');

/** Takes turns with all processes of the source. @param own the pace of a command, null for no limit; not for a fetcher */
export function createRedisTurns(redis: Redis, source: string, own?: () => Pace | null) {
  const keys = Object.values(keysOf(source));
  const name = randomUUID();
  let isReconnected = false;
  /** When the connection was made again, by Redis's clock: it may have come back with an old state. */
  let since = 0;
  redis.on('close', () => {
    isReconnected = true;
  });

  async function call(pauseMs: number) {
    if (isReconnected) {
      const [seconds = 0] = (await redis.time()).map(Number);
      since = seconds * 1_000;
      isReconnected = false;
    }
    const pace = own === undefined ? ['', ''] : [own()?.intervalMs ?? 0, own()?.slackMs ?? 0];
    const given = [keys.length, ...keys, Math.ceil(pauseMs), ...pace, name, since] as const;
    // Redis may not have the script yet, or any more. To send all of it each time costs more than the turn.
    const answer = await redis.evalsha(TAKE_SHA, ...given).catch((error: unknown) => {
      if (messageOf(error).startsWith('NOSCRIPT')) return redis.eval(TAKE, ...given);
      throw error;
    });
    const [isLonger, waitMs, reason] = answer as [number, string, Wait['reason']];
    return { isLonger: isLonger === 1, ms: Number(waitMs), reason };
  }

  return {
    /** @throws the error of Redis */
    take: (): Promise<Omit<Wait, 'until'>> => call(0),
    /** Pauses all processes. @returns whether this pause ends later than the one already known; throws as `take` */
    pause: async (pauseMs: number): Promise<boolean> => (await call(pauseMs)).isLonger,
  };
}

/** Turns of a fetcher. It waits while Redis does not answer. */
export function createFetcherTurns(redis: Redis, source: string, { clock, trouble }: Omit<ConnectionOptions, 'log'>) {
  const turns = createRedisTurns(redis, source);
  /** Pauses that Redis does not know yet. */
  const unsaid = createPauses();
  return {
    acquire: createWaitingLine({
      clock,
      take: async (nowMs) => {
        const pause = unsaid.current(nowMs);
        if (pause !== null) return { ms: pause.until - nowMs, reason: 'asked' };
        try {
          return await turns.take();
        } catch (error) {
          trouble.failed('take a turn', reasonOf(error));
          return { ms: RETRY_MS, reason: 'pace' };
        }
      },
    }),
    /**
     * Pauses this process at once, and all fetchers when Redis answers.
     * @param insist calls a function until it does not throw
     * @returns whether this pause ends later than the one already known
     */
    pause: async (pauseMs: number, insist: <T>(work: () => Promise<T>) => Promise<T>): Promise<boolean> => {
      const since = clock.now();
      const until = since + pauseMs;
      unsaid.note({ since, until });
      const isLonger = await insist(() => turns.pause(Math.max(1, until - clock.now())));
      // A longer one may have been asked for meanwhile.
      if (unsaid.current(clock.now())?.until === until) unsaid.forget();
      return isLonger;
    },
  };
}

function slower(one: Pace, other: Pace): Pace {
  return other.intervalMs > one.intervalMs ? other : one;
}

/** The keeper's part: it states its pace and its pause. */
export function createStatedPace(redis: Redis, source: string, mirror: string, clock: Clock) {
  const { keepers, next, pause } = keysOf(source);
  const turns = createRedisTurns(redis, source);
  /** When this keeper stated its pace last, by Redis's clock. */
  let statedAt = 0;
  /** The slowest pace since the last statement; null before the first. */
  let known: Pace | null = null;
  /** What this keeper states for other keepers until they can do so. */
  let lost = { pace: UNLIMITED, until: 0 };

  async function others() {
    const [seconds = 0, micros = 0] = (await redis.time()).map(Number);
    const nowMs = seconds * 1_000 + Math.floor(micros / 1_000);
    const found = Object.entries(await redis.hgetall(keepers)).map(([name, statement]) => {
      const [at = 0, intervalMs = 0, slackMs = 0] = statement.split(' ').map(Number);
      return { name, at, ageMs: nowMs - at, pace: { intervalMs, slackMs } };
    });
    return { nowMs, found };
  }

  return {
    /**
     * @param own null for no limit
     * @param pauseMs the rest of the pause that the mirror notes; 0 without one
     * @returns incarnations of mirrors for which no pages were asked for in a day
     */
    state: async (own: Pace | null, pauseMs: number): Promise<readonly string[]> => {
      const { nowMs, found } = await others();
      // Redis was flushed, or has come back with an old state. A lookup of held products states the pace of its mirror, too.
      if (known !== null && !found.some(({ name, at }) => name === mirror && at >= statedAt)) {
        lost = { pace: known, until: clock.now() + LOST_MS };
        // Redis has forgotten when the last request was, too.
        await redis.set(next, nowMs + known.intervalMs, 'PX', Math.ceil(known.intervalMs) + LOST_MS);
      }
      const pace = clock.now() < lost.until ? slower(own ?? UNLIMITED, lost.pace) : (own ?? UNLIMITED);
      const inUse = found.filter(({ name, ageMs }) => name !== mirror && ageMs < IN_USE_MS);
      known = inUse.reduce((slowest, one) => slower(slowest, one.pace), pace);
      if (pauseMs > 0) await turns.pause(pauseMs);
      await redis.hset(keepers, mirror, `${nowMs} ${pace.intervalMs} ${pace.slackMs}`);
      statedAt = nowMs;
      await redis.pexpire(keepers, GONE_MS);
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

/** The turns of a command, which connects for the first one. @param onGone gets the first error, which ends the turns */
export function connectTurns({ redisUrl, source }: QueuePlace, onGone: (reason: string) => void) {
  const { label, open } = redisPlace(hostUrls(redisUrl));
  const redis = open({ ...ONE_TRY, commandTimeout: ONE_TRY_MS });
  let lost: unknown;
  redis.on('error', (error) => {
    lost ??= error;
  });
  let own: Pace | null = null;
  const turns = createRedisTurns(redis, source, () => own);
  return {
    take: async (pace: Pace | null) => {
      own = pace;
      try {
        return await turns.take();
      } catch (error) {
        // The error of the connection says more than the error of the command.
        onGone(`Redis at ${label}: ${reasonOf(lost ?? error)}`);
        return null;
      }
    },
    pause: (pauseMs: number): void => void turns.pause(pauseMs).catch(() => {}),
    close: (): void => redis.disconnect(),
  };
}
