import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SinkTarget } from '../../src/relay/contract/checks.ts';
import { until } from '../../src/relay/contract/harness.ts';
import { natsAvailable, startNats } from '../support/nats.ts';
import { redisAvailable, startRedis } from '../support/redis.ts';
import { books, feeding, movable } from './feeding.ts';
import { jsonlTarget, natsTarget, redisTarget } from './targets.ts';

/** Loses what a store holds while the relay runs and nothing changes; a look some minutes later finds it. */
async function isFoundLater<T extends SinkTarget>(prepared: Promise<T>, lose: (target: T) => unknown): Promise<void> {
  const { bench, target, config } = await feeding(prepared);
  const { clock, advance } = movable();
  bench.change(books(30, 1));
  bench.start(config, { clock });
  await bench.caughtUp();
  await lose(target);
  advance(301_000);
  await until('all is there again', async () => (await target.read().catch(() => null))?.products.size === 30);
  expect((await target.read()).products).toEqual(bench.living());
  expect((await target.read()).seqs).toHaveLength(30);
  bench.change(books(1, 2));
  await bench.caughtUp();
  expect((await target.read()).products).toEqual(bench.living());
}

describe('a store that loses its events while nothing changes is sent them again', () => {
  it('a file that was cut off', () =>
    isFoundLater(jsonlTarget(), ({ directory }) => truncateSync(join(directory, 'changes.jsonl'), 2_000)));

  it.skipIf(!redisAvailable)('a Redis stream that was removed', async () => {
    const server = await startRedis();
    const redis = new Redis(server.port, '127.0.0.1');
    onTestFinished(async () => {
      redis.disconnect();
      await server.stop();
    });
    await isFoundLater(redisTarget(server.port), ({ stream }) => redis.del(stream));
  });

  it.skipIf(!redisAvailable)('a Redis that was flushed', async () => {
    const server = await startRedis();
    const redis = new Redis(server.port, '127.0.0.1');
    onTestFinished(async () => {
      redis.disconnect();
      await server.stop();
    });
    await isFoundLater(redisTarget(server.port), () => redis.flushall());
  });

  it.skipIf(!natsAvailable)('a JetStream stream that was deleted', async () => {
    const server = await startNats();
    const connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
    onTestFinished(async () => {
      await connection.close();
      await server.stop();
    });
    const { streams } = await jetstreamManager(connection);
    await isFoundLater(natsTarget(server.port), ({ stream }) => streams.delete(stream));
  });
});

it('a file that was emptied continues where it was, as one that was moved away does', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change(books(20, 1));
  bench.start(config);
  await bench.caughtUp();
  // As logrotate does with copytruncate.
  writeFileSync(join(target.directory, 'changes.jsonl'), '');
  bench.change(books(5, 2));
  await bench.caughtUp();
  expect((await target.read()).seqs).toEqual([21, 22, 23, 24, 25]);
});

describe.skipIf(!natsAvailable)('a JetStream stream', () => {
  it('that was purged continues where it was', async () => {
    const server = await startNats();
    const connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
    onTestFinished(async () => {
      await connection.close();
      await server.stop();
    });
    const { streams } = await jetstreamManager(connection);
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.change(books(20, 1));
    bench.start(config);
    await bench.caughtUp();
    await streams.purge(target.stream);
    bench.change(books(5, 2));
    await bench.caughtUp();
    expect((await target.read()).seqs).toEqual([21, 22, 23, 24, 25]);
  });

  it('drops messages older than max_age, also where it was made before', async () => {
    const server = await startNats();
    const connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
    onTestFinished(async () => {
      await connection.close();
      await server.stop();
    });
    const { streams } = await jetstreamManager(connection);
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.change(books(3, 1));
    bench.start(config);
    await bench.caughtUp();
    await bench.stop();
    const sink = await config.make();
    const signal = new AbortController().signal;
    expect(await sink.size?.(signal)).toMatchObject({ limit: null, option: 'max_age=30d' });
    const limited = await feeding(Promise.resolve({ ...target, url: `${target.url}&max_age=30d` }));
    bench.start(limited.config);
    bench.change(books(1, 2));
    await bench.caughtUp();
    expect((await streams.info(target.stream)).config.max_age).toBe(30 * 86_400 * 1e9);
    expect(await sink.size?.(signal)).toMatchObject({ text: expect.stringMatching(/^4 messages, /), limit: 'max_age' });
  });
});
