import { createServer } from 'node:net';
import { hostname } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';
import { taskId } from '@catchword/catalog/page-types';
import { checkRedis } from '@catchword/queue-redis/check-redis';
import { listFetchers } from '@catchword/queue-redis/list-fetchers';
import { listen } from '@catchword/testing/listen';
import { collect, idOf, itKeepsTheContract } from '@catchword/testing/queue-contract';
import { PRIMARY, type RedisServer, redisAvailable, startRedis, startSentinel } from '@catchword/testing/redis';
import { createGate, createScriptedSource, heldAnswer, task, untilAborted } from '@catchword/testing/scripted-source';
import { freePort } from '@catchword/testing/server';
import pino from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { clock, openPlace, type Place, pages, useRedis } from './bull-place.ts';

/** Starts a Redis that the test may kill. */
async function startedRedis(args: readonly string[] = []): Promise<RedisServer> {
  const redis = await startRedis({ args });
  onTestFinished(() => redis.stop());
  return redis;
}

/** Starts a fetcher, and waits until it reads a page, which ends only when it is stopped. */
async function beginReading(place: Place): Promise<void> {
  const asked = createGate();
  const source = createScriptedSource(clock, async (_, __, aborted) => {
    asked.open();
    await untilAborted(aborted);
  });
  await place.fetcher({ read: () => source.read });
  await collect(place.queue);
  await place.queue.add(pages(3));
  await asked.passed;
}

describe.skipIf(!redisAvailable)('with Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();

  describe.each([
    { name: 'another process', isNear: false },
    { name: 'the process of the keeper', isNear: true },
  ])('the BullMQ queue with a fetcher in $name', ({ isNear }) => {
    itKeepsTheContract(clock, async ({ read, concurrency, intervalMs }) => {
      const place = await openPlace(redis.url(), { intervalMs });
      await place.fetcher({ read: () => read, concurrency, ...(isNear && { keeper: place.queue }) });
      return {
        queue: place.queue,
        lose: async () => {
          await redis.admin().flushall();
        },
        close: place.close,
      };
    });
  });

  it('Redis names the fetchers of a catalog, and one that is gone answers nothing', async () => {
    const place = await openPlace(redis.url());
    const other = await openPlace(redis.url());
    const read = { read: () => createScriptedSource(clock, async () => {}).read };
    await place.fetcher(read);
    await other.fetcher(read);
    const list = (redisUrl: string) => listFetchers({ redisUrl, source: place.source }, clock);
    const named = { pid: process.pid, host: hostname(), since: expect.any(Number) as number };
    expect(await list(redis.url())).toEqual({ redis: new URL(redis.url()).host, problem: null, fetchers: [named] });
    const nowhere = `127.0.0.1:${await freePort()}`;
    const refused = { redis: nowhere, problem: expect.stringContaining('ECONNREFUSED') as string, fetchers: [] };
    expect(await list(`redis://${nowhere}`)).toEqual(refused);
  });

  describe('with a fetcher in the process of the keeper', () => {
    /** Ids of the jobs that went through the apply queue of `mirror`. */
    async function sent({ source }: Place, mirror: string): Promise<string[]> {
      const events = await redis.admin().xrange(`catchword:apply-${source}-${mirror}:events`, '-', '+');
      return events.filter(([, fields]) => fields[1] === 'added').map(([, fields]) => fields[3] ?? '');
    }

    it('the BullMQ queue does not ask again for a page that is delivered while Redis says which pages have a job', async () => {
      const place = await openPlace(redis.url());
      const { outcomes } = await collect(place.queue);
      await place.queue.add([]);
      const delivered = place.queue.add(pages(2));
      const error = { code: 'NOT_FOUND', message: 'gone', retryable: false } as const;
      await place.queue.handOver({ kind: 'failed', task: task(1), error, requests: 1 });
      await delivered;
      expect(outcomes.map(idOf)).toEqual([taskId(task(1))]);
      const waiting = await redis.admin().keys(`catchword:fetch-${place.source}:*_r1*`);
      expect(waiting).toEqual([expect.stringContaining(taskId(task(2)))]);
    });

    it('the BullMQ queue sends no page through Redis', async () => {
      const place = await openPlace(redis.url());
      await place.fetcher({ read: () => createScriptedSource(clock).read, keeper: place.queue });
      const { outcomes, count } = await collect(place.queue);
      await place.queue.add(pages(5));
      await count(5);
      await place.close();
      expect(outcomes.map(idOf).sort()).toEqual(pages(5).map(taskId).sort());
      expect(await sent(place, 'mirror-a')).toEqual([]);
    });

    it('the BullMQ queue sends pages of other mirrors, and pages for which its keeper has not asked', async () => {
      const place = await openPlace(redis.url());
      const { source } = place;
      const far = await openPlace(redis.url(), { source, mirror: 'mirror-b' });
      const twin = await openPlace(redis.url(), { source });
      const atFar = await collect(far.queue);
      const atTwin = await collect(twin.queue);
      await place.fetcher({ read: () => createScriptedSource(clock).read, keeper: place.queue });
      await place.queue.add([task(1)]);
      await far.queue.add([task(2, { mirror: 'mirror-b' })]);
      await twin.queue.add([task(3, { runId: 2 })]);
      await Promise.all([atFar.count(1), atTwin.count(2)]);
      expect(await sent(place, 'mirror-b')).toEqual(['mirror-b_r1-p0-2x10']);
      expect((await sent(place, 'mirror-a')).sort()).toEqual(['mirror-a_r1-p0-1x10', 'mirror-a_r2-p0-3x10']);
    });

    it('the BullMQ queue sends pages while the keeper rests', async () => {
      const place = await openPlace(redis.url());
      const { asked, gate, answer } = heldAnswer();
      await place.fetcher({ read: () => createScriptedSource(clock, answer).read, keeper: place.queue });
      const before = await collect(place.queue);
      await place.queue.add([task(1)]);
      await asked.passed;
      await place.queue.rest();
      gate.open();
      await expect.poll(() => sent(place, 'mirror-a')).toHaveLength(1);
      const after = await collect(place.queue);
      await after.count(1);
      expect([before.outcomes.length, after.outcomes.map(idOf)]).toEqual([0, [taskId(task(1))]]);
    });
  });

  it('the BullMQ queue deletes finished jobs', async () => {
    const place = await openPlace(redis.url());
    const source = createScriptedSource(clock);
    await place.fetcher({ read: () => source.read });
    const { count } = await collect(place.queue);
    await place.queue.add(pages(20));
    await count(20);
    await place.close();
    const left = await redis.admin().keys(`catchword:*-${place.source}*:mirror-a_r*`);
    expect(left).toEqual([]);
  });

  it('the BullMQ queue reads deltas before the pages of a list that wait longer', async () => {
    const place = await openPlace(redis.url());
    const source = createScriptedSource(clock);
    const first = [task(1, { runId: 2, from: 0 }), task(2, { runId: 2, from: 0 })];
    await place.queue.add(pages(20));
    await place.queue.add(first);
    const { count } = await collect(place.queue);
    await place.fetcher({ read: () => source.read, concurrency: 1 });
    await count(22);
    expect(source.requests.map(({ id }) => id)).toEqual([...first, ...pages(20)].map(taskId));
  });

  it('the BullMQ queue does not affect other sources in the same Redis', async () => {
    const [one, other] = [await openPlace(redis.url()), await openPlace(redis.url())];
    const source = createScriptedSource(clock);
    await other.fetcher({ read: () => source.read });
    const collected = await collect(one.queue);
    const { count } = await collect(other.queue);
    await other.queue.add([task(1)]);
    await count(1);
    expect(collected.outcomes).toEqual([]);
  });

  it('the BullMQ queue gives the page of a stopped fetcher to another one', async () => {
    const place = await openPlace(redis.url());
    const asked = createGate();
    const slow = createScriptedSource(clock, async (_, __, signal) => {
      asked.open();
      await untilAborted(signal);
    });
    const stop = await place.fetcher({ read: () => slow.read, concurrency: 1 });
    const { outcomes, count } = await collect(place.queue);
    await place.queue.add([task(1)]);
    await asked.passed;
    await stop();
    await place.fetcher({ read: () => createScriptedSource(clock).read });
    await count(1);
    expect(outcomes).toMatchObject([{ kind: 'captured', requests: 1 }]);
  });

  it('the BullMQ queue keeps a page that was read during a Redis outage and delivers it afterwards', async () => {
    const own = await startedRedis();
    const place = await openPlace(own.url);
    const { asked, gate, answer } = heldAnswer(1);
    await place.fetcher({ read: () => createScriptedSource(clock, answer).read, concurrency: 1 });
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
  });

  it.each(['SIGKILL', 'SIGSTOP'] as const)('the BullMQ queue closes while Redis is gone (%s)', async (signal) => {
    const own = await startedRedis();
    const place = await openPlace(own.url);
    await beginReading(place);
    await own.kill(signal);
    await place.close();
  });

  it('the BullMQ queue closes while Redis and its sentinel are gone', async () => {
    const own = await startedRedis();
    const sentinel = await startSentinel({ primary: own.port, quorum: 1 });
    onTestFinished(() => sentinel.stop());
    const place = await openPlace(`redis+sentinel://127.0.0.1:${sentinel.port}/${PRIMARY}`);
    await beginReading(place);
    await Promise.all([own.kill('SIGKILL'), sentinel.kill('SIGKILL')]);
    await place.close();
  });

  it('the BullMQ queue says when no fetcher reads the pages of this keeper, and when one does again', async () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(line) });
    const place = await openPlace(redis.url(), { log });
    const other = await openPlace(redis.url());
    await other.fetcher({ read: () => createScriptedSource(clock).read });
    for (let times = 0; times < 3; times++) await place.queue.add(pages(2));
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      'no fetcher reads the pages of this keeper',
    ]);
    await place.fetcher({
      read: () => createScriptedSource(clock, (_task, _nth, signal) => untilAborted(signal)).read,
    });
    await place.queue.add(pages(2));
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain('a fetcher reads the pages of this keeper again');
  });

  it('the BullMQ queue leaves nothing of a temporary mirror in Redis', async () => {
    const place = await openPlace(redis.url(), { isTemporary: true });
    await place.fetcher({ read: () => createScriptedSource(clock).read });
    const { count } = await collect(place.queue);
    await place.queue.add(pages(20));
    await count(20);
    await place.close();
    expect(await redis.admin().keys(`catchword:apply-${place.source}*`)).toEqual([]);
  });

  it('the BullMQ queue takes few round trips to add many tasks', async () => {
    const place = await openPlace(redis.url());
    const reads = async () => Number(/total_reads_processed:(\d+)/.exec(await redis.admin().info('stats'))?.[1]);
    await place.queue.add(pages(1));
    const before = await reads();
    await place.queue.add(pages(64));
    // Includes the two reads of this test; a large write may arrive in several parts.
    expect((await reads()) - before).toBeLessThan(10);
  });
});

describe.skipIf(!redisAvailable)('a check of Redis', { tags: ['stores'] }, () => {
  it.each([
    ['does not evict keys', []],
    ['forbids CONFIG', ['--rename-command', 'CONFIG', '']],
  ])('checkRedis accepts a Redis that %s', async (_what, args) => {
    expect(await checkRedis((await startedRedis(args)).url)).toMatchObject({ silent: [] });
  });

  it.each([
    ['may evict jobs', ['--maxmemory-policy', 'allkeys-lru'], { message: /allkeys-lru/, hint: /noeviction/ }],
    ['requires a password', ['--requirepass', 'x'], { message: /NOAUTH/, hint: /./ }],
  ])('checkRedis rejects a Redis that %s', async (_what, args, { message, hint }) => {
    await expect(checkRedis((await startedRedis(args)).url)).rejects.toMatchObject({
      code: 'QUEUE_MISCONFIGURED',
      message: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    });
  });
});

it('an unreachable Redis is named in the error, without the password', async () => {
  const port = await freePort();
  const error = await checkRedis(`redis://user:hidden@127.0.0.1:${port}`).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    code: 'QUEUE_UNAVAILABLE',
    message: expect.stringContaining(`127.0.0.1:${port}`),
  });
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('hidden');
});

it('an unreachable Redis is detected if the server accepts connections but does not respond', async () => {
  const port = await listen(createServer());
  await expect(checkRedis(`redis://127.0.0.1:${port}`)).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
});
