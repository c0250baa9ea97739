import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../src/relay/contract/harness.ts';
import { type RedisServer, redisAvailable, startRedis } from '../support/redis.ts';
import { books, fed, feeding } from './feeding.ts';
import { redisTarget } from './targets.ts';

describe.skipIf(!redisAvailable)('redis', () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.port, '127.0.0.1');
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  it('names entries by generation and seq, and keeps about maxlen of them', async () => {
    const { bench, target, config } = await feeding(redisTarget(server.port, '&maxlen=100'));
    bench.start(config);
    for (let round = 1; round <= 5; round++) bench.change(books(200, round));
    await bench.caughtUp();
    const newest = await redis.xrevrange(target.stream, '+', '-', 'COUNT', 1);
    expect(newest[0]?.[0]).toBe('1-1000');
    expect(await redis.xlen(target.stream)).toBeLessThan(400);
    expect(await redis.hgetall(`{${target.stream}}:catchword`)).toEqual({
      incarnation: bench.store.incarnation,
      generation: '1',
      cursor: '1000',
      late: '0',
      at: String(bench.events(999)[0]?.at),
    });
  });

  it('is fed anew when it was flushed', async () => {
    const { bench, target } = await fed(redisTarget(server.port), 30);
    await redis.flushall();
    bench.change(books(1, 2));
    await until('all is there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('is fed anew when its stream was removed', async () => {
    const { bench, target } = await fed(redisTarget(server.port), 30);
    await redis.del(target.stream);
    bench.change(books(1, 2));
    await until('all is there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('does not write between the entries of somebody else', async () => {
    const { bench, target, config } = await feeding(redisTarget(server.port));
    await redis.xadd(target.stream, '*', 'theirs', '1');
    bench.change(books(3, 1));
    bench.start(config);
    await until('the failure is noted', () => bench.store.sinks.get('contract')?.error != null);
    expect(bench.sink().error).toContain('which is not of this sink');
    expect(await redis.xlen(target.stream)).toBe(1);
  });
});
