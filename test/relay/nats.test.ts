import { cpSync, renameSync, rmSync } from 'node:fs';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/relay/contract/harness.ts';
import { natsAvailable, startNats } from '../support/nats.ts';
import type { ServerProcess } from '../support/server.ts';
import { books, fed, feeding } from './feeding.ts';
import { natsTarget } from './targets.ts';

describe.skipIf(!natsAvailable)('nats', () => {
  let server: ServerProcess;
  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server.stop());

  async function manager() {
    const connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
    onTestFinished(() => connection.close());
    return await jetstreamManager(connection);
  }

  it('redelivers the newest messages if the server lost them', async () => {
    const { harness, target } = await fed(natsTarget(server.port), 27);
    // As after a power failure, before the server wrote its newest messages to the disk.
    await server.kill('SIGTERM');
    cpSync(server.directory, `${server.directory}.copy`, { recursive: true });
    await server.restart();
    harness.change(books(3, 2));
    await harness.caughtUp();
    await server.kill('SIGKILL');
    rmSync(server.directory, { recursive: true });
    renameSync(`${server.directory}.copy`, server.directory);
    await server.restart();
    expect((await target.read()).seqs).toHaveLength(27);
    harness.change(books(1, 3));
    await until('all events are there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).seqs).toEqual(Array.from({ length: 31 }, (_, index) => index + 1));
  });

  it('redelivers deleted messages', async () => {
    const { harness, target, config } = await fed(natsTarget(server.port), 30);
    await harness.stop();
    const { streams } = await manager();
    for (const seq of [28, 29, 30]) await streams.deleteMessage(target.stream, seq);
    harness.change(books(1, 2));
    harness.start(config);
    await until('all events are there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).seqs).toEqual(Array.from({ length: 31 }, (_, index) => index + 1));
  });

  it('redelivers everything if the stream was deleted', async () => {
    const { harness, target } = await fed(natsTarget(server.port), 30);
    const { streams } = await manager();
    await streams.delete(target.stream);
    harness.change(books(1, 2));
    await until('all events are there', async () => (await target.read().catch(() => null))?.seqs?.length === 31);
    expect((await target.read()).products).toEqual(harness.living());
  });

  it('redelivers everything if another client recreated the stream', async () => {
    const { harness, target } = await fed(natsTarget(server.port), 30);
    const { streams } = await manager();
    await streams.delete(target.stream);
    await streams.add({ name: target.stream, subjects: [`${target.stream}.products`] });
    harness.change(books(1, 2));
    await until('all events are there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).products).toEqual(harness.living());
  });

  it('loses nothing if another client publishes to its stream', async () => {
    const { harness, target } = await fed(natsTarget(server.port), 3);
    const connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
    onTestFinished(() => connection.close());
    await jetstream(connection).publish(`${target.stream}.products`, 'theirs');
    harness.change(books(3, 2));
    await until('the error is recorded', () => harness.sink().error !== null);
    expect(harness.sink()).toMatchObject({
      cursor: 3,
      error: expect.stringMatching(/wrong last|did not write the last message/),
    });
    const { streams } = await manager();
    await streams.deleteMessage(target.stream, 4);
    harness.store.request(({ sinks }) => sinks.setState(harness.sink().id, 'running'));
    await harness.caughtUp();
    expect((await target.read()).seqs).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('parks an event larger than the limit of the stream', async () => {
    const { harness, target, config } = await feeding(natsTarget(server.port));
    const { streams } = await manager();
    await streams.add({ name: target.stream, subjects: [`${target.stream}.products`], max_msg_size: 3_000 });
    harness.start(config);
    harness.change(books(3, 1));
    harness.change([{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(3_000) }) }]);
    harness.change(books(2, 2));
    await harness.caughtUp();
    expect((await target.read()).seqs).toEqual([1, 2, 3, 5, 6]);
  });

  it('parks an event larger than the limit of the server', async () => {
    const { harness, target, config } = await feeding(natsTarget(server.port));
    harness.start(config);
    harness.change(books(3, 1));
    harness.change([{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(1_100_000) }) }]);
    harness.change(books(2, 2));
    await harness.caughtUp();
    expect(harness.store.sinks.parked(harness.sink().id)).toMatchObject([
      { vbid: 'L', state: 'refused', reason: expect.stringContaining("the server's limit") },
    ]);
    expect((await target.read()).seqs).toEqual([1, 2, 3, 5, 6]);
  });

  it('rejects a stream with other subjects', async () => {
    const { harness, target, config } = await feeding(natsTarget(server.port));
    const { streams } = await manager();
    await streams.add({ name: target.stream, subjects: [`${target.stream}.>`] });
    harness.change(books(3, 1));
    harness.start(config);
    await until('the failure is recorded', () => harness.store.sinks.get('contract')?.error != null);
    expect(harness.sink().error).toContain('it must have');
  });

  it('survives kills of the server during delivery', async () => {
    const { harness, target, config } = await feeding(natsTarget(server.port));
    harness.start(config);
    for (let round = 1; round <= 5; round++) {
      harness.change(books(200, round));
      await until('it moves', () => harness.sink().cursor > (round - 1) * 200);
      await server.kill('SIGKILL');
      await server.restart();
    }
    await harness.caughtUp();
    await until('all events are there', async () => (await target.read().catch(() => null))?.seqs?.length === 1_000);
    expect((await target.read()).seqs).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1));
  });
});
