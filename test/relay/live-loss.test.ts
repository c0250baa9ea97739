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

async function redisServer() {
  const server = await startRedis();
  const redis = new Redis(server.port, '127.0.0.1');
  onTestFinished(async () => {
    redis.disconnect();
    await server.stop();
  });
  return { port: server.port, redis };
}

async function natsServer() {
  const server = await startNats();
  const connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
  onTestFinished(async () => {
    await connection.close();
    await server.stop();
  });
  return { port: server.port, streams: (await jetstreamManager(connection)).streams };
}

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
  harness.change(books(1, 2));
  await harness.caughtUp();
  expect((await target.read()).products).toEqual(harness.living());
}

describe('redelivers, while nothing changes, to', () => {
  it('a file that was truncated', () =>
    expectRedelivery(jsonlTarget(), ({ directory }) => truncateSync(join(directory, 'changes.jsonl'), 2_000)));

  it.skipIf(!redisAvailable)('a Redis stream that was removed', async () => {
    const { port, redis } = await redisServer();
    await expectRedelivery(redisTarget(port), ({ stream }) => redis.del(stream));
  });

  it.skipIf(!redisAvailable)('a Redis that was flushed', async () => {
    const { port, redis } = await redisServer();
    await expectRedelivery(redisTarget(port), () => redis.flushall());
  });

  it.skipIf(!natsAvailable)('a JetStream stream that was deleted', async () => {
    const { port, streams } = await natsServer();
    await expectRedelivery(natsTarget(port), ({ stream }) => streams.delete(stream));
  });
});

it('continues at the same place in a file that was emptied', async () => {
  const { harness, target, config } = await feeding(jsonlTarget());
  harness.change(books(20, 1));
  harness.start(config);
  await harness.caughtUp();
  // As logrotate does with `copytruncate`.
  writeFileSync(join(target.directory, 'changes.jsonl'), '');
  harness.change(books(5, 2));
  await harness.caughtUp();
  expect((await target.read()).seqs).toEqual([21, 22, 23, 24, 25]);
});

describe.skipIf(!natsAvailable)('a JetStream stream', () => {
  it('continues at the same place after a purge', async () => {
    const { port, streams } = await natsServer();
    const { harness, target, config } = await feeding(natsTarget(port));
    harness.change(books(20, 1));
    harness.start(config);
    await harness.caughtUp();
    await streams.purge(target.stream);
    harness.change(books(5, 2));
    await harness.caughtUp();
    expect((await target.read()).seqs).toEqual([21, 22, 23, 24, 25]);
  });

  it('applies max_age to an existing stream', async () => {
    const { port, streams } = await natsServer();
    const { harness, target, config } = await feeding(natsTarget(port));
    harness.change(books(3, 1));
    harness.start(config);
    await harness.caughtUp();
    await harness.stop();
    const sink = await config.make();
    const signal = new AbortController().signal;
    expect(await sink.size?.(signal)).toMatchObject({ limit: null, option: 'max_age=30d' });
    const limited = await feeding(Promise.resolve({ ...target, url: `${target.url}&max_age=30d` }));
    harness.start(limited.config);
    harness.change(books(1, 2));
    await harness.caughtUp();
    expect((await streams.info(target.stream)).config.max_age).toBe(30 * 86_400 * 1e9);
    expect(await sink.size?.(signal)).toMatchObject({ text: expect.stringMatching(/^4 messages, /), limit: 'max_age' });
  });
});
