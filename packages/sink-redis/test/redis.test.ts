import { redisAvailable } from '@catchword/testing/redis';
import { useRedis } from '@catchword/testing/used-servers';
import { describe, expect, it } from 'vitest';
import { arrived, books, configAt, fed, feederAt, feeding } from '../../../test/relay/feeding.ts';
import { redisTarget } from '../../../test/relay/targets.ts';

describe.skipIf(!redisAvailable)('redis', { tags: ['stores'] }, () => {
  const redis = useRedis();

  it('names entries by generation and seq, and keeps about maxlen of them', async () => {
    const { harness, target, config } = await feeding(redisTarget(redis.server.port, '&maxlen=100'));
    harness.start(config);
    for (let round = 1; round <= 5; round++) await harness.deliver(books(200, round));
    const newest = await redis.client.xrevrange(target.stream, '+', '-', 'COUNT', 1);
    expect(newest[0]?.[0]).toBe('1-1000');
    expect(await redis.client.xlen(target.stream)).toBeLessThan(400);
    expect(await redis.client.hgetall(`{${target.stream}}:catchword`)).toEqual({
      incarnation: feederAt(harness),
      generation: '1',
      cursor: '1000',
      late: '0',
      at: String(harness.events(999)[0]?.at),
    });
  });

  it('redelivers everything after its stream was deleted, though not its cursor', async () => {
    const { harness, target } = await fed(redisTarget(redis.server.port), 30);
    await redis.client.del(target.stream);
    harness.change(books(1, 2));
    await arrived(target, 31);
    expect((await target.read()).products).toEqual(harness.living());
  });

  it.each([0, 3])('writes nothing while its user may not write the mark, after %s events', async (written) => {
    const { harness, target } = await feeding(redisTarget(redis.server.port));
    const allow = (right: string) => redis.client.call('ACL', 'SETUSER', 'shop', 'on', '>pw', '~*', '+@all', right);
    await allow(written === 0 ? '-hset' : '+hset');
    harness.change(books(written, 1));
    harness.start(configAt(target.url.replace('redis://', 'redis://shop:pw@')));
    if (written > 0) await harness.caughtUp();
    await allow('-hset');
    harness.change(books(5, 2));
    await harness.failed();
    expect(harness.sink().error).toMatch(/^Redis: (NOPERM|ERR The user executing the script)/);
    expect(await redis.client.xlen(target.stream)).toBe(written);
    await allow('+hset');
    await harness.caughtUp();
    const { seqs, products } = await target.read();
    expect(products).toEqual(harness.living());
    expect(seqs).toEqual(harness.events().map(({ seq }) => seq));
  });
});
