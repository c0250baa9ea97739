import { truncateSync, writeFileSync } from 'node:fs';
import { natsAvailable } from '@catchword/testing/nats';
import { redisAvailable } from '@catchword/testing/redis';
import { useNats, useRedis } from '@catchword/testing/used-servers';
import { describe, expect, it } from 'vitest';
import type { SinkTarget } from '../../src/contract/checks.ts';
import { until } from '../../src/contract/harness.ts';
import { books, fed, fedBefore, feeding, movable, NEVER, numbers } from './feeding.ts';
import { jsonlTarget, natsTarget, redisTarget } from './targets.ts';

/** Makes a store lose events while nothing changes; a check some minutes later redelivers them. */
async function expectRedelivery<T extends SinkTarget>(
  prepared: Promise<T>,
  lose: (target: T) => unknown,
): Promise<void> {
  const { harness, target, config } = await feeding(prepared);
  const { clock, advance } = movable();
  harness.change(books(30, 1));
  harness.start(config, { clock });
  await harness.caughtUp();
  await lose(target);
  advance(301_000);
  await until('all events are there again', async () => (await target.read().catch(() => null))?.products.size === 30);
  expect((await target.read()).products).toEqual(harness.living());
  expect((await target.read()).seqs).toHaveLength(30);
  await harness.deliver(books(1, 2));
  expect((await target.read()).products).toEqual(harness.living());
}

it('redelivers, while nothing changes, to a file that was truncated', () =>
  expectRedelivery(jsonlTarget(), ({ file }) => truncateSync(file, 2_000)));

it('continues at the same place in a file that was emptied', async () => {
  const { harness, target } = await fed(jsonlTarget(), 20);
  // As logrotate does with `copytruncate`.
  writeFileSync(target.file, '');
  await harness.deliver(books(5, 2));
  expect((await target.read()).seqs).toEqual(numbers(21, 25));
});

describe.skipIf(!redisAvailable)('redelivers, while nothing changes, to', { tags: ['stores'] }, () => {
  const redis = useRedis();
  const prepare = () => redisTarget(redis.server.port);
  it('a Redis stream that was removed', () => expectRedelivery(prepare(), ({ stream }) => redis.client.del(stream)));
  it('a Redis that was flushed', () => expectRedelivery(prepare(), () => redis.client.flushall()));
});

describe.skipIf(!natsAvailable)('a JetStream stream', { tags: ['stores'] }, () => {
  const nats = useNats();

  it('gets its events again, while nothing changes, if it was deleted', () =>
    expectRedelivery(natsTarget(nats.server.port), ({ stream }) => nats.manager.streams.delete(stream)));

  it('continues at the same place after a purge', async () => {
    const { harness, target } = await fed(natsTarget(nats.server.port), 20);
    await nats.manager.streams.purge(target.stream);
    await harness.deliver(books(5, 2));
    expect((await target.read()).seqs).toEqual(numbers(21, 25));
  });

  it('applies max_age to an existing stream', async () => {
    const { harness, target, config } = await fedBefore(natsTarget(nats.server.port), 3);
    const sink = await config.make();
    const signal = NEVER;
    expect(await sink.size?.(signal)).toMatchObject({ limit: null, option: 'max_age=30d' });
    const limited = await feeding(Promise.resolve({ ...target, url: `${target.url}&max_age=30d` }));
    harness.start(limited.config);
    await harness.deliver(books(1, 2));
    expect((await nats.manager.streams.info(target.stream)).config.max_age).toBe(30 * 86_400 * 1e9);
    expect(await sink.size?.(signal)).toMatchObject({ text: expect.stringMatching(/^4 messages, /), limit: 'max_age' });
  });
});
