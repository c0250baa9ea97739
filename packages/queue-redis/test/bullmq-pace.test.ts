import type { Pause } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import type { FetcherOptions } from '@catchword/queue-redis/fetcher';
import { collect } from '@catchword/testing/queue-contract';
import { redisAvailable } from '@catchword/testing/redis';
import { type BeforeResponse, createGate, createScriptedSource, task } from '@catchword/testing/scripted-source';
import { describe, expect, it } from 'vitest';
import { clock, openPlace, pages, useRedis } from './bull-place.ts';
import { startOwn } from './own-redis.ts';

/** Refuses the first requests for each page. */
function refusals(retryAfterMs: number, times = Number.POSITIVE_INFINITY) {
  const refused = createGate();
  const answer: BeforeResponse = (_, nth) => {
    if (nth > times) return;
    refused.open();
    throw new CatchwordError('SOURCE_RATE_LIMITED', 'the source answers 429', { retryAfterMs });
  };
  return { refused, answer };
}

describe.skipIf(!redisAvailable)('with Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();

  it('a pause that Redis cannot take now is kept by the fetcher, and told to the keeper later', async () => {
    const own = await startOwn();
    const pauses: Pause[] = [];
    const place = await openPlace(own.url, { onRateLimited: (pause) => pauses.push(pause) });
    let refusedAt = 0;
    const source = createScriptedSource(clock, async (_, nth) => {
      if (nth > 1) return;
      await own.admin.config('SET', 'maxmemory', '1');
      refusedAt = clock.now();
      throw new CatchwordError('SOURCE_RATE_LIMITED', 'the source answers 429', { retryAfterMs: 1_800_000 });
    });
    await place.fetcher({ read: () => source.read, concurrency: 1 });
    const { count } = await collect(place.queue);
    await place.queue.add([task(1)]);
    await expect.poll(() => refusedAt).toBeGreaterThan(0);
    await clock.sleep(1_000);
    await own.admin.config('SET', 'maxmemory', '0');
    await expect.poll(() => pauses.length).toBe(1);
    expect(pauses[0]?.until).toBeGreaterThan(refusedAt + 1_700_000);
    expect(source.requests).toHaveLength(1);
    await place.queue.forgetPause();
    await count(1);
    expect(pauses).toHaveLength(1);
  });

  it('the pace of several fetchers is one', async () => {
    const intervalMs = 30;
    const place = await openPlace(redis.url(), { intervalMs });
    const source = createScriptedSource(clock);
    await place.fetcher({ read: () => source.read });
    await place.fetcher({ read: () => source.read });
    const { count } = await collect(place.queue);
    const since = clock.now();
    await place.queue.add(pages(16));
    await count(16);
    expect(Math.max(...source.requests.map(({ at }) => at)) - since).toBeGreaterThanOrEqual(15 * intervalMs - 1);
  });

  it('the pace of fetchers tells the keeper of refusals, with and without a pause, and keeps the limit that it learns', async () => {
    const told: number[] = [];
    const learned = {
      pace: () => (told.length === 0 ? null : { intervalMs: 40, slackMs: 0 }),
      used: () => {},
      refused: (perMinute: number) => void told.push(perMinute),
    };
    const place = await openPlace(redis.url(), { learned });
    let pausing = true;
    const source = createScriptedSource(clock, ({ window }, nth) => {
      if (nth > 1 || window.page === 1) return;
      throw new CatchwordError('SOURCE_RATE_LIMITED', '429', pausing ? { retryAfterMs: 1 } : {});
    });
    await place.fetcher({ read: () => source.read });
    const { count } = await collect(place.queue);
    await place.queue.add(pages(1));
    await count(1);
    await place.queue.add([task(2)]);
    await count(2);
    expect(told).toHaveLength(1);
    await place.queue.add([task(3)]);
    await count(3);
    // It is of the same moment.
    expect(told).toHaveLength(1);
    pausing = false;
    const since = clock.now();
    await place.queue.add(pages(9).slice(3));
    await count(9);
    expect(source.requests.length).toBeGreaterThanOrEqual(17);
    expect(Math.max(...source.requests.map(({ at }) => at)) - since).toBeGreaterThanOrEqual(11 * 40 - 1);
  });

  it('the pace of fetchers reports a pause to the keeper before it delivers the failed attempt', async () => {
    const pauses: Pause[] = [];
    const place = await openPlace(redis.url(), { onRateLimited: (pause) => pauses.push(pause) });
    const { answer } = refusals(7_200_000);
    await place.fetcher({ read: () => createScriptedSource(clock, answer).read, concurrency: 1 });
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
  });

  it('the pace of fetchers reports only the remaining pause to a keeper that was stopped', async () => {
    const pauses: Pause[] = [];
    const place = await openPlace(redis.url(), { onRateLimited: (pause) => pauses.push(pause) });
    const { refused, answer } = refusals(7_200_000);
    await place.fetcher({ read: () => createScriptedSource(clock, answer).read, concurrency: 1 });
    await place.queue.add([task(1)]);
    await refused.passed;
    const pause = `catchword:fetch-${place.source}:pause`;
    await expect.poll(() => redis.admin().pttl(pause)).toBeGreaterThan(7_000_000);
    await expect.poll(() => redis.admin().llen(`catchword:apply-${place.source}-mirror-a:wait`)).toBe(2);
    await redis.admin().pexpire(pause, 60_000);
    const { count } = await collect(place.queue);
    await count(1);
    expect(pauses).toHaveLength(1);
    const [{ since, until } = { since: 0, until: 0 }] = pauses;
    expect(until - since).toBeLessThanOrEqual(60_000);
  });

  it('the pace of fetchers goes on when a pause is forgotten, also in the fetcher that noted it and for its retry', async () => {
    const place = await openPlace(redis.url());
    const { refused, answer } = refusals(1_800_000, 1);
    const { outcomes, count } = await collect(place.queue);
    await place.fetcher({ read: () => createScriptedSource(clock, answer).read, concurrency: 1 });
    await place.queue.add([task(1)]);
    await refused.passed;
    await expect.poll(() => redis.admin().pttl(`catchword:fetch-${place.source}:pause`)).toBeGreaterThan(0);
    await place.queue.forgetPause();
    await count(1);
    expect(outcomes[0]).toMatchObject({ kind: 'captured' });
  });

  it('the pace of fetchers counts requests that no job makes, such as the renewal of a token, in the same limit', async () => {
    const intervalMs = 40;
    const place = await openPlace(redis.url(), { intervalMs });
    let requests = 0;
    const read: FetcherOptions['read'] = (pacer) => {
      const source = createScriptedSource(clock, async (_task, _nth, signal) => {
        requests++;
        await pacer.acquire(signal);
        requests++;
      });
      return source.read;
    };
    const { count } = await collect(place.queue);
    await place.queue.add([]);
    const since = performance.now();
    await place.fetcher({ read });
    await place.fetcher({ read });
    await place.queue.add(pages(10));
    await count(10);
    expect(requests).toBe(20);
    expect(performance.now() - since).toBeGreaterThanOrEqual((requests - 1) * (intervalMs - 1));
  });

  it('the pace of fetchers keeps a learned limit while all tasks are in the queue', async () => {
    let intervalMs: number | null = null;
    const learned = {
      pace: () => (intervalMs === null ? null : { intervalMs, slackMs: 0 }),
      used: () => {},
      refused: () => {},
    };
    const place = await openPlace(redis.url(), { learned });
    await place.queue.add(pages(5));
    intervalMs = 50;
    const since = clock.now();
    await place.queue.add(pages(5));
    const source = createScriptedSource(clock);
    const { count } = await collect(place.queue);
    await place.fetcher({ read: () => source.read });
    await count(5);
    expect(Math.max(...source.requests.map(({ at }) => at)) - since).toBeGreaterThanOrEqual(4 * intervalMs - 1);
  });

  it('the pace of fetchers waits for the pause that the mirror notes, although Redis does not know it', async () => {
    let until = clock.now() + 3_600_000;
    const place = await openPlace(redis.url(), { pause: () => ({ since: 0, until }) });
    const source = createScriptedSource(clock);
    await place.fetcher({ read: () => source.read });
    const { count } = await collect(place.queue);
    await place.queue.add(pages(1));
    const pause = `catchword:fetch-${place.source}:pause`;
    expect(await redis.admin().pttl(pause)).toBeGreaterThan(3_500_000);
    await redis.admin().flushall();
    await place.queue.add(pages(1));
    expect(await redis.admin().pttl(pause)).toBeGreaterThan(3_500_000);
    expect(source.requests).toEqual([]);
    until = 0;
    await place.queue.forgetPause();
    await count(1);
    // A fetcher had the task already when Redis was flushed, so it may be read twice.
    expect(source.requests).not.toEqual([]);
  });
});
