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
    const { harness, target, config } = await feeding(redisTarget(server.port, '&maxlen=100'));
    harness.start(config);
    for (let round = 1; round <= 5; round++) harness.change(books(200, round));
    await harness.caughtUp();
    const newest = await redis.xrevrange(target.stream, '+', '-', 'COUNT', 1);
    expect(newest[0]?.[0]).toBe('1-1000');
    expect(await redis.xlen(target.stream)).toBeLessThan(400);
    expect(await redis.hgetall(`{${target.stream}}:catchword`)).toEqual({
      incarnation: harness.store.incarnation,
      generation: '1',
      cursor: '1000',
      late: '0',
      at: String(harness.events(999)[0]?.at),
    });
  });

  it('redelivers everything after a flush', async () => {
    const { harness, target } = await fed(redisTarget(server.port), 30);
    await redis.flushall();
    harness.change(books(1, 2));
    await until('all events are there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).products).toEqual(harness.living());
  });

  it('redelivers everything if the stream was deleted', async () => {
    const { harness, target } = await fed(redisTarget(server.port), 30);
    await redis.del(target.stream);
    harness.change(books(1, 2));
    await until('all events are there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).products).toEqual(harness.living());
  });

  it('does not write to a stream with foreign entries', async () => {
    const { harness, target, config } = await feeding(redisTarget(server.port));
    await redis.xadd(target.stream, '*', 'theirs', '1');
    harness.change(books(3, 1));
    harness.start(config);
    await until('the failure is recorded', () => harness.store.sinks.get('contract')?.error != null);
    expect(harness.sink().error).toContain('this sink did not write entry');
    expect(await redis.xlen(target.stream)).toBe(1);
  });
});
