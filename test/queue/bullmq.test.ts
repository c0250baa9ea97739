import { createServer } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { taskId } from '../../src/catalog/page.ts';
import { type Clock, type Pause, systemClock } from '../../src/clock.ts';
import { CatchwordError } from '../../src/errors.ts';
import { createLog } from '../../src/log.ts';
import type { LearnedLimit } from '../../src/pace/learned-rate.ts';
import { checkRedis } from '../../src/queue/bullmq/check-redis.ts';
import { type FetcherOptions, startFetcher } from '../../src/queue/bullmq/fetcher.ts';
import { limiterOf } from '../../src/queue/bullmq/jobs.ts';
import { type BullQueue, createBullQueue } from '../../src/queue/bullmq/queue.ts';
import { listen } from '../support/listen.ts';
import { PRIMARY, type RedisServer, redisAvailable, startRedis, startSentinel } from '../support/redis.ts';
import { freePort } from '../support/server.ts';
import { collect, idOf, itKeepsTheContract } from './contract.ts';
import { createGate, createScriptedSource, task, untilAborted } from './scripted-source.ts';

const log = createLog('silent');
/** Retries without a delay. */
const clock: Clock = { ...systemClock, random: () => 0 };

let server: RedisServer;
let admin: Redis;
let names = 0;

/** When jobs became active, as noted by Redis: up to a millisecond after the time that its limiter used. */
async function activeTimes(source: string): Promise<number[]> {
  const events = await admin.xrange(`catchword:fetch-${source}:events`, '-', '+');
  return events.filter(([, fields]) => fields[1] === 'active').map(([id]) => Number(id.split('-')[0]));
}

interface Place {
  readonly queue: BullQueue;
  readonly source: string;
  fetcher(options: Pick<FetcherOptions, 'read'> & Partial<FetcherOptions>): Promise<void>;
  readonly close: () => Promise<void>;
}

interface KeeperOptions {
  readonly onRateLimited?: (pause: Pause) => void;
  readonly learned?: LearnedLimit;
  readonly intervalMs?: number | null;
}

/** Opens a keeper's queue with a source id of its own; fetchers can be added. */
async function openPlace(
  redisUrl = server.url,
  { onRateLimited, learned, intervalMs = null }: KeeperOptions = {},
): Promise<Place> {
  const source = `test${++names}`;
  const queue = await createBullQueue({
    redisUrl,
    source,
    mirror: 'mirror-a',
    clock,
    log,
    pace: () => learned?.pace() ?? (intervalMs === null ? null : { intervalMs, slackMs: 0 }),
    learned,
    ...(onRateLimited !== undefined && { onRateLimited }),
  });
  const closers = [() => queue.close()];
  return {
    queue,
    source,
    fetcher: async (options) => {
      const fetcher = await startFetcher({
        redisUrl,
        source,
        concurrency: 2,
        clock,
        log,
        ...options,
      });
      closers.push(() => fetcher.close());
    },
    close: async () => {
      await Promise.all(closers.map((close) => close()));
    },
  };
}

/** Starts a fetcher, and waits until it reads a page, which ends only when it is stopped. */
async function beginReading(place: Place): Promise<void> {
  const asked = createGate();
  const source = createScriptedSource(clock, async (_, __, aborted) => {
    asked.open();
    await untilAborted(aborted);
  });
  await place.fetcher({ read: source.read });
  await collect(place.queue);
  await place.queue.add(pages(3));
  await asked.passed;
}

const pages = (count: number) => Array.from({ length: count }, (_, index) => task(index + 1));

describe.skipIf(!redisAvailable)('BullMQ queue', () => {
  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url, { maxRetriesPerRequest: null });
    admin.on('error', () => {});
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });

  itKeepsTheContract(clock, async ({ read, concurrency, intervalMs }) => {
    const place = await openPlace(server.url, { intervalMs });
    await place.fetcher({ read, concurrency });
    return {
      queue: place.queue,
      lose: async () => {
        await admin.flushall();
      },
      requestTimes: () => activeTimes(place.source),
      close: place.close,
    };
  });

  it('deletes finished jobs', async () => {
    const place = await openPlace();
    const source = createScriptedSource(clock);
    await place.fetcher({ read: source.read });
    const { count } = await collect(place.queue);
    await place.queue.add(pages(20));
    await count(20);
    await place.close();
    const left = await admin.keys(`catchword:*-${place.source}*:mirror-a_r*`);
    expect(left).toEqual([]);
  });

  it('shares one rate limit among fetchers', async () => {
    const intervalMs = 30;
    const place = await openPlace(server.url, { intervalMs });
    const source = createScriptedSource(clock);
    await place.fetcher({ read: source.read });
    await place.fetcher({ read: source.read });
    const { count } = await collect(place.queue);
    await place.queue.add(pages(16));
    await count(16);
    const times = await activeTimes(place.source);
    expect(times).toHaveLength(16);
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(intervalMs - 1);
    await place.close();
  });

  it('reads deltas before the pages of a list that wait longer', async () => {
    const place = await openPlace();
    const source = createScriptedSource(clock);
    const first = [task(1, { runId: 2, from: 0 }), task(2, { runId: 2, from: 0 })];
    await place.queue.add(pages(20));
    await place.queue.add(first);
    const { count } = await collect(place.queue);
    await place.fetcher({ read: source.read, concurrency: 1 });
    await count(22);
    expect(source.requests.map(({ id }) => id)).toEqual([...first, ...pages(20)].map(taskId));
    await place.close();
  });

  it('tells the keeper of refusals, with and without a pause, and keeps the limit that it learns', async () => {
    const refusals: number[] = [];
    const learned = {
      pace: () => (refusals.length === 0 ? null : { intervalMs: 40, slackMs: 0 }),
      used: () => {},
      refused: (perMinute: number) => void refusals.push(perMinute),
    };
    const place = await openPlace(server.url, { learned });
    let pausing = true;
    const source = createScriptedSource(clock, (_, nth) => {
      if (nth > 1) return;
      throw new CatchwordError('SOURCE_RATE_LIMITED', '429', pausing ? { retryAfterMs: 1 } : {});
    });
    await place.fetcher({ read: source.read });
    const { count } = await collect(place.queue);
    await place.queue.add(pages(1));
    await count(1);
    expect(refusals).toHaveLength(1);
    await place.queue.add([task(2)]);
    await count(2);
    // It is of the same moment.
    expect(refusals).toHaveLength(1);
    pausing = false;
    await place.queue.add(pages(8).slice(2));
    await count(8);
    const times = (await activeTimes(place.source)).slice(4);
    expect(times.length).toBeGreaterThanOrEqual(12);
    expect(Math.min(...times.slice(1).map((at, index) => at - (times[index] ?? 0)))).toBeGreaterThanOrEqual(39);
    await place.close();
  });

  it('reports a pause to the keeper before it delivers the failed attempt', async () => {
    const pauses: Pause[] = [];
    const place = await openPlace(server.url, { onRateLimited: (pause) => pauses.push(pause) });
    const source = createScriptedSource(clock, () => {
      throw new CatchwordError('SOURCE_RATE_LIMITED', 'the source answers 429', { retryAfterMs: 7_200_000 });
    });
    await place.fetcher({ read: source.read, concurrency: 1 });
    const known: number[] = [];
    const { count } = await collect(place.queue, async () => {
      known.push(pauses.length);
    });
    const asked = clock.now();
    await place.queue.add([task(1)]);
    await count(1);
    expect(known).toEqual([1]);
    const [{ since, until } = { since: 0, until: 0 }] = pauses;
    expect(since).toBeGreaterThanOrEqual(asked);
    expect(until - since).toBeLessThanOrEqual(7_200_000);
    expect(until - since).toBeGreaterThan(7_100_000);
    await place.close();
  });

  it('reports only the remaining pause to a keeper that was stopped', async () => {
    const pauses: Pause[] = [];
    const place = await openPlace(server.url, { onRateLimited: (pause) => pauses.push(pause) });
    const refused = createGate();
    const source = createScriptedSource(clock, () => {
      refused.open();
      throw new CatchwordError('SOURCE_RATE_LIMITED', 'the source answers 429', { retryAfterMs: 7_200_000 });
    });
    await place.fetcher({ read: source.read, concurrency: 1 });
    await place.queue.add([task(1)]);
    await refused.passed;
    const limiter = `catchword:fetch-${place.source}:limiter`;
    await expect.poll(() => admin.pttl(limiter)).toBeGreaterThan(7_000_000);
    await expect.poll(() => admin.llen(`catchword:apply-${place.source}-mirror-a:wait`)).toBe(2);
    await admin.pexpire(limiter, 60_000);
    const { count } = await collect(place.queue);
    await count(1);
    expect(pauses).toHaveLength(1);
    const [{ since, until } = { since: 0, until: 0 }] = pauses;
    expect(until - since).toBeLessThanOrEqual(60_000);
    await place.close();
  });

  it('forgets a pause, also in the fetcher that noted it and for a delayed retry', async () => {
    const place = await openPlace();
    const refused = createGate();
    const source = createScriptedSource(clock, (_, nth) => {
      if (nth > 1) return;
      refused.open();
      throw new CatchwordError('SOURCE_RATE_LIMITED', 'the source answers 429', { retryAfterMs: 1_800_000 });
    });
    const { outcomes, count } = await collect(place.queue);
    await place.fetcher({ read: source.read, concurrency: 1 });
    await place.queue.add([task(1)]);
    await refused.passed;
    await expect.poll(() => admin.zcard(`catchword:fetch-${place.source}:delayed`)).toBe(1);
    await place.queue.forgetPause();
    await count(1);
    expect(outcomes[0]).toMatchObject({ kind: 'captured' });
    await place.close();
  });

  it('forgets a pause, so that another fetcher makes requests at once', async () => {
    const place = await openPlace();
    const source = createScriptedSource(clock, ({ window }) => {
      if (window.page > 1) return;
      throw new CatchwordError('SOURCE_RATE_LIMITED', 'the source answers 429', { retryAfterMs: 7_200_000 });
    });
    const { outcomes, count } = await collect(place.queue);
    const asked = await startFetcher({
      redisUrl: server.url,
      source: place.source,
      read: source.read,
      concurrency: 1,
      clock,
      log,
    });
    await place.queue.add([task(1)]);
    await count(1);
    expect(outcomes[0]).toMatchObject({ kind: 'failed' });
    await asked.close();
    await place.fetcher({ read: source.read });
    await place.queue.forgetPause();
    await place.queue.add([task(2)]);
    await count(2);
    expect(outcomes[1]).toMatchObject({ kind: 'captured' });
    await place.close();
  });

  it('does not affect other sources in the same Redis', async () => {
    const [one, other] = [await openPlace(), await openPlace()];
    const source = createScriptedSource(clock);
    await other.fetcher({ read: source.read });
    const collected = await collect(one.queue);
    const { count } = await collect(other.queue);
    await other.queue.add([task(1)]);
    await count(1);
    expect(collected.outcomes).toEqual([]);
    await Promise.all([one.close(), other.close()]);
  });

  it('gives the page of a stopped fetcher to another one', async () => {
    const place = await openPlace();
    const asked = createGate();
    const slow = createScriptedSource(clock, async (_, __, signal) => {
      asked.open();
      await untilAborted(signal);
    });
    const leaving = await startFetcher({
      redisUrl: server.url,
      source: place.source,
      read: slow.read,
      concurrency: 1,
      clock,
      log,
    });
    const { outcomes, count } = await collect(place.queue);
    await place.queue.add([task(1)]);
    await asked.passed;
    await leaving.close();
    await place.fetcher({ read: createScriptedSource(clock).read });
    await count(1);
    expect(outcomes).toMatchObject([{ kind: 'captured', captured: { requests: 1 } }]);
    await place.close();
  });

  it('keeps a page that was read during a Redis outage and delivers it afterwards', async () => {
    const own = await startRedis();
    const place = await openPlace(own.url);
    const gate = createGate();
    const asked = createGate();
    const source = createScriptedSource(clock, async ({ window }) => {
      asked.open();
      if (window.page === 1) await gate.passed;
    });
    await place.fetcher({ read: source.read, concurrency: 1 });
    const { outcomes, count } = await collect(place.queue);
    await place.queue.add(pages(3));
    await asked.passed;
    await own.kill('SIGKILL');
    gate.open();
    await place.queue.add(pages(3));
    await place.queue.drop(1);
    await own.restart();
    await count(1);
    expect(outcomes.map(idOf)).toEqual([taskId(task(1))]);
    while (outcomes.length < 3) {
      await place.queue.add(pages(3).slice(1));
      await turn();
    }
    await place.close();
    await own.stop();
  });

  it.each(['SIGKILL', 'SIGSTOP'] as const)('closes while Redis is gone (%s)', async (signal) => {
    const own = await startRedis();
    const place = await openPlace(own.url);
    await beginReading(place);
    await own.kill(signal);
    await place.close();
    await own.stop();
  });

  it('closes while Redis and its sentinel are gone', async () => {
    const own = await startRedis();
    const sentinel = await startSentinel({ primary: own.port, quorum: 1 });
    const place = await openPlace(`redis+sentinel://127.0.0.1:${sentinel.port}/${PRIMARY}`);
    await beginReading(place);
    await Promise.all([own.kill('SIGKILL'), sentinel.kill('SIGKILL')]);
    await place.close();
    await Promise.all([own.stop(), sentinel.stop()]);
  });

  it('takes few round trips to add many tasks', async () => {
    const place = await openPlace();
    const reads = async () => Number(/total_reads_processed:(\d+)/.exec(await admin.info('stats'))?.[1]);
    await place.queue.add(pages(1));
    const before = await reads();
    await place.queue.add(pages(64));
    // Includes the two reads of this test; a large write may arrive in several parts.
    expect((await reads()) - before).toBeLessThan(10);
    await place.close();
  });
});

describe('limiter', () => {
  it.each([
    [1_212, [1, 1_212]],
    [101.2, [1, 102]],
    [12.5, [1, 13]],
    [4, [5, 20]],
    [0.3, [66, 20]],
  ])('spaces requests %s ms apart', (intervalMs, limiter) => {
    expect(limiterOf(intervalMs)).toEqual(limiter);
  });
});

describe.skipIf(!redisAvailable)('checkRedis', () => {
  async function checkWith(args: readonly string[]): Promise<unknown> {
    const own = await startRedis({ args });
    try {
      return await checkRedis(own.url).then(
        () => 'accepted',
        (error: unknown) => error,
      );
    } finally {
      await own.stop();
    }
  }

  it('accepts a Redis that does not evict keys', async () => {
    expect(await checkWith([])).toBe('accepted');
  });

  it('accepts a Redis that forbids CONFIG', async () => {
    expect(await checkWith(['--rename-command', 'CONFIG', ''])).toBe('accepted');
  });

  it('rejects a Redis that may evict jobs', async () => {
    expect(await checkWith(['--maxmemory-policy', 'allkeys-lru'])).toMatchObject({
      code: 'QUEUE_MISCONFIGURED',
      message: expect.stringContaining('allkeys-lru'),
      hint: expect.stringContaining('noeviction'),
    });
  });

  it('rejects a Redis that requires a password', async () => {
    expect(await checkWith(['--requirepass', 'x'])).toMatchObject({ code: 'QUEUE_MISCONFIGURED' });
  });
});

describe('an unreachable Redis', () => {
  it('is named in the error, without the password', async () => {
    const port = await freePort();
    const error = await checkRedis(`redis://user:hidden@127.0.0.1:${port}`).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      message: expect.stringContaining(`127.0.0.1:${port}`),
    });
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('hidden');
  });

  it('is detected if the server accepts connections but does not respond', async () => {
    const port = await listen(createServer());
    await expect(checkRedis(`redis://127.0.0.1:${port}`)).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
  });
});
