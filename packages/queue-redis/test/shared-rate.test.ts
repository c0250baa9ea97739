import { once } from 'node:events';
import { createLog } from '@catchword/base/log';
import { createPacer } from '@catchword/pace/pacer';
import { connectTurns, createFetcherTurns, createRedisTurns } from '@catchword/queue-redis/redis-pace';
import { createRedisTrouble } from '@catchword/queue-redis/redis-trouble';
import { collect } from '@catchword/testing/queue-contract';
import { redisAvailable } from '@catchword/testing/redis';
import { createScriptedSource, task } from '@catchword/testing/scripted-source';
import { freePort } from '@catchword/testing/server';
import { describe, expect, it } from 'vitest';
import { clock, openPlace, pages, useRedis } from './bull-place.ts';

const trouble = createRedisTrouble({ clock, log: createLog('silent') });

describe.skipIf(!redisAvailable)('with Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();
  const toKey = (source: string) => (part: string) => `catchword:fetch-${source}:${part}`;
  const keepersOf = (source: string) => toKey(source)('keepers');

  /** Milliseconds until the second of two requests that are asked for at once. */
  async function intervalOf(source: string): Promise<number> {
    await redis.admin().del(toKey(source)('next-request'));
    expect(await createRedisTurns(redis.admin(), source).take()).toMatchObject({ ms: 0 });
    const [seconds = 0, micros = 0] = (await redis.admin().time()).map(Number);
    const next = Number(await redis.admin().get(toKey(source)('next-request')));
    return next === 0 ? 0 : next - (seconds * 1_000 + micros / 1_000);
  }

  it('the rate of a source with several mirrors is the lowest of their keepers, also if another one knows no limit', async () => {
    const slow = await openPlace(redis.url(), { intervalMs: 600_000 });
    const others = [
      await openPlace(redis.url(), { source: slow.source, mirror: 'mirror-b' }),
      await openPlace(redis.url(), { source: slow.source, mirror: 'mirror-c', intervalMs: 300_000 }),
    ];
    for (const place of [slow, ...others]) await place.queue.add([]);
    expect(await intervalOf(slow.source)).toBeGreaterThan(300_000);
    // After a minute without a run.
    const [seconds = 0] = (await redis.admin().time()).map(Number);
    await redis.admin().hset(keepersOf(slow.source), 'mirror-a', `${(seconds - 61) * 1_000} 600000 0`);
    for (const place of others) await place.queue.add([]);
    const interval = await intervalOf(slow.source);
    expect([interval > 0, interval <= 300_000]).toEqual([true, true]);
  });

  it('the rate of a source with several mirrors is kept when Redis has lost it, and a keeper without a limit is the first to state its own', async () => {
    const slow = await openPlace(redis.url(), { intervalMs: 2_000 });
    const other = await openPlace(redis.url(), { source: slow.source, mirror: 'mirror-b' });
    for (const place of [slow, other]) await place.queue.add([]);
    await redis.admin().flushall();
    for (let times = 0; times < 2; times++) {
      await other.queue.add([]);
      expect(await redis.admin().hget(keepersOf(slow.source), 'mirror-b')).toMatch(/^\d+ 2000 0$/);
    }
  });

  it('the rate of a source with several mirrors is unknown to a Redis that was flushed, so no request is made until a keeper states it', async () => {
    const place = await openPlace(redis.url());
    const waits: number[] = [];
    const sleep = async (ms: number): Promise<void> => {
      waits.push(ms);
      await place.queue.add([]);
    };
    const turns = createFetcherTurns(redis.admin(), place.source, { clock: { ...clock, sleep }, trouble });
    await turns.acquire(new AbortController().signal);
    expect(waits).toEqual([500]);
  });

  it('the rate of a source is shared with commands, which take turns with the fetchers', async () => {
    const intervalMs = 40;
    const place = await openPlace(redis.url(), { intervalMs });
    const source = createScriptedSource(clock);
    await place.fetcher({ read: () => source.read });
    const { count } = await collect(place.queue);
    const command = connectTurns({ redisUrl: redis.url(), source: place.source }, () => {});
    // It knows no limit itself.
    const pacer = createPacer({ pace: null, clock, shared: () => command.take(null) });
    const since = clock.now();
    await place.queue.add(pages(8));
    const times: number[] = [];
    for (let request = 0; request < 6; request++) {
      await pacer.acquire(new AbortController().signal);
      times.push(clock.now());
    }
    await count(8);
    times.push(...source.requests.map(({ at }) => at));
    expect(times).toHaveLength(14);
    expect(Math.max(...times) - since).toBeGreaterThanOrEqual(13 * intervalMs - 1);
    command.close();
  });

  it('the rate of a source is kept by a command alone, without a keeper; the first error of Redis is named', async () => {
    const pace = { intervalMs: 60_000, slackMs: 0 };
    const said: string[] = [];
    const lone = connectTurns({ redisUrl: redis.url(), source: 'lone' }, (reason) => said.push(reason));
    expect(await lone.take(pace)).toMatchObject({ ms: 0 });
    expect((await lone.take(pace))?.ms).toBeGreaterThan(50_000);
    lone.pause(90_000);
    await expect.poll(() => lone.take(null)).toMatchObject({ reason: 'asked' });
    lone.close();
    const port = await freePort();
    const url = `redis://:hidden@127.0.0.1:${port}`;
    const gone = connectTurns({ redisUrl: url, source: 'lone' }, (reason) => said.push(reason));
    expect(await gone.take(pace)).toBeNull();
    expect(said).toEqual([`Redis at 127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}`]);
    gone.close();
  });

  it('turns are not put off by two queues of one mirror, as a keeper and a lookup of held products have', async () => {
    const one = await openPlace(redis.url(), { intervalMs: 60_000 });
    const other = await openPlace(redis.url(), { intervalMs: 60_000, source: one.source });
    for (const place of [one, other, one, other]) await place.queue.add([]);
    expect(await redis.admin().exists(toKey(one.source)('next-request'))).toBe(0);
  });

  it('turns are given in the order in which processes came, also to one that is far from Redis', async () => {
    const place = await openPlace(redis.url(), { intervalMs: 60 });
    await place.queue.add([]);
    const taken: string[] = [];
    async function takeTurns(name: string, lateMs: number): Promise<void> {
      const turns = createRedisTurns(redis.admin(), place.source);
      while (taken.length < 12) {
        const { ms } = await turns.take();
        if (ms === 0) taken.push(name);
        else await clock.sleep(ms + lateMs);
      }
    }
    await Promise.all([takeTurns('near', 0), takeTurns('far', 25)]);
    expect(taken.filter((name) => name === 'far').length).toBeGreaterThanOrEqual(4);
  });

  it('turns are given again when the clock of Redis was put back, and a pause does not become longer', async () => {
    const place = await openPlace(redis.url(), { intervalMs: 200 });
    await place.queue.add([]);
    const [key, turns] = [toKey(place.source), createRedisTurns(redis.admin(), place.source)];
    const ahead = clock.now() + 600_000;
    await redis.admin().set(key('next-request'), ahead);
    expect((await turns.take()).ms).toBeLessThanOrEqual(200);
    expect(Number(await redis.admin().get(key('next-request')))).toBeLessThan(ahead - 500_000);
    await redis.admin().set(key('pause'), `${ahead} 15000`);
    expect(await turns.take()).toEqual({ isLonger: false, ms: 15_000, reason: 'asked' });
    expect(Number((await redis.admin().get(key('pause')))?.split(' ')[0])).toBeLessThan(ahead - 500_000);
  });

  it('turns are given after a connection was lost only when a keeper has stated its pace since', async () => {
    const place = await openPlace(redis.url());
    await place.queue.add([]);
    const own = redis.admin().duplicate();
    const turns = createRedisTurns(own, place.source);
    expect(await turns.take()).toMatchObject({ ms: 0 });
    // Statements are compared by the second.
    await clock.sleep(1_100);
    const lost = once(own, 'close');
    own.disconnect(true);
    await lost;
    expect(await turns.take()).toMatchObject({ ms: 500 });
    await place.queue.add([]);
    expect(await turns.take()).toMatchObject({ ms: 0 });
    own.disconnect();
  });

  it('the rate of a source with several mirrors lets a whole interval pass after Redis has forgotten the last request', async () => {
    const place = await openPlace(redis.url(), { intervalMs: 600 });
    const source = createScriptedSource(clock);
    await place.fetcher({ read: () => source.read });
    const { count } = await collect(place.queue);
    await place.queue.add(pages(1));
    await count(1);
    const first = source.requests[0]?.at ?? 0;
    await redis.admin().flushall();
    await place.queue.add([task(2)]);
    await count(2);
    const second = source.requests[1]?.at ?? 0;
    expect(second - first).toBeGreaterThanOrEqual(599);
  });

  it('the rate of a source with several mirrors deletes the pages of a mirror for which none was asked for in a day', async () => {
    const place = await openPlace(redis.url());
    const killed = await openPlace(redis.url(), { source: place.source, mirror: 'mirror-b' });
    await killed.queue.add([{ ...task(1), mirror: 'mirror-b' }]);
    const source = createScriptedSource(clock);
    await place.fetcher({ read: () => source.read });
    const left = () => redis.admin().keys(`catchword:apply-${place.source}-mirror-b:*`);
    await expect.poll(async () => (await left()).some((key) => key.endsWith(':wait'))).toBe(true);
    await place.queue.add([]);
    expect(await left()).not.toEqual([]);
    const keepers = keepersOf(place.source);
    const [seconds = 0] = (await redis.admin().time()).map(Number);
    await redis.admin().hset(keepers, 'mirror-b', `${(seconds - 86_401) * 1_000} 0 0`);
    await place.queue.add([]);
    expect(await left()).toEqual([]);
    expect(await redis.admin().hkeys(keepers)).toEqual(['mirror-a']);
  });
});
