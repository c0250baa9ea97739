import { describe, expect, it } from 'vitest';
import { redisAvailable } from '../support/redis.ts';
import { clock, openPlace, pages, useRedis } from './bull-place.ts';
import { collect } from './contract.ts';
import { createScriptedSource, task } from './scripted-source.ts';

describe.skipIf(!redisAvailable)('the rate of a source with several mirrors', () => {
  const redis = useRedis();
  const limitOf = (source: string) => redis.admin().hmget(`catchword:fetch-${source}:meta`, 'max', 'duration');

  it('is the lowest of their keepers, also if another one knows no limit', async () => {
    const slow = await openPlace(redis.url(), { intervalMs: 2_000 });
    const others = [
      await openPlace(redis.url(), { source: slow.source, mirror: 'mirror-b' }),
      await openPlace(redis.url(), { source: slow.source, mirror: 'mirror-c', intervalMs: 900 }),
    ];
    for (const place of [slow, ...others]) await place.queue.add([]);
    expect(await limitOf(slow.source)).toEqual(['1', '2000']);
    // After a minute without a run.
    const [seconds = 0] = (await redis.admin().time()).map(Number);
    await redis
      .admin()
      .hset(`catchword:fetch-${slow.source}:keepers`, 'mirror-a', `${(seconds - 61) * 1_000} 2000 1 2000`);
    for (const place of others) await place.queue.add([]);
    expect(await limitOf(slow.source)).toEqual(['1', '900']);
    for (const place of [slow, ...others]) await place.close();
  });

  it('is kept when Redis has lost it, and a keeper without a limit is the first to set its own', async () => {
    const slow = await openPlace(redis.url(), { intervalMs: 2_000 });
    const other = await openPlace(redis.url(), { source: slow.source, mirror: 'mirror-b' });
    for (const place of [slow, other]) await place.queue.add([]);
    await redis.admin().flushall();
    for (let times = 0; times < 2; times++) {
      await other.queue.add([]);
      expect(await limitOf(slow.source)).toEqual(['1', '2000']);
    }
    expect(await redis.admin().pttl(`catchword:fetch-${slow.source}:limiter`)).toBeGreaterThan(1_000);
    for (const place of [slow, other]) await place.close();
  });

  it('lets a whole interval pass after Redis has forgotten the last request', async () => {
    const place = await openPlace(redis.url(), { intervalMs: 600 });
    const source = createScriptedSource(clock);
    await place.fetcher({ read: () => source.read });
    const { count } = await collect(place.queue);
    await place.queue.add(pages(1));
    await count(1);
    const [first = 0] = await redis.activeTimes(place.source);
    await redis.admin().flushall();
    await place.queue.add([task(2)]);
    await count(2);
    const [second = 0] = await redis.activeTimes(place.source);
    expect(second - first).toBeGreaterThanOrEqual(599);
    await place.close();
  });

  it('deletes the pages of a mirror for which none was asked for in a day', async () => {
    const place = await openPlace(redis.url());
    const killed = await openPlace(redis.url(), { source: place.source, mirror: 'mirror-b' });
    await killed.queue.add([{ ...task(1), mirror: 'mirror-b' }]);
    const source = createScriptedSource(clock);
    await place.fetcher({ read: () => source.read });
    const left = () => redis.admin().keys(`catchword:apply-${place.source}-mirror-b:*`);
    await expect.poll(async () => (await left()).some((key) => key.endsWith(':wait'))).toBe(true);
    await place.queue.add([]);
    expect(await left()).not.toEqual([]);
    const keepers = `catchword:fetch-${place.source}:keepers`;
    const [seconds = 0] = (await redis.admin().time()).map(Number);
    await redis.admin().hset(keepers, 'mirror-b', `${(seconds - 86_401) * 1_000} 0 1000000000 1`);
    await place.queue.add([]);
    expect(await left()).toEqual([]);
    expect(await redis.admin().hkeys(keepers)).toEqual(['mirror-a']);
    for (const one of [place, killed]) await one.close();
  });
});
