import { cpSync, renameSync, rmSync } from 'node:fs';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/relay/contract/harness.ts';
import { type NatsServer, natsAvailable, startNats } from '../support/nats.ts';
import { books, fed, feeding } from './feeding.ts';
import { natsTarget } from './targets.ts';

describe.skipIf(!natsAvailable)('nats', () => {
  let server: NatsServer;
  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server.stop());

  async function manager() {
    const connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
    onTestFinished(() => connection.close());
    return await jetstreamManager(connection);
  }

  it('goes back to where the server is that lost its tail', async () => {
    const { bench, target } = await fed(natsTarget(server.port), 27);
    // As a server starts that had not written its last messages to the disk when the power went.
    await server.kill('SIGTERM');
    cpSync(server.directory, `${server.directory}.copy`, { recursive: true });
    await server.restart();
    bench.change(books(3, 2));
    await bench.caughtUp();
    await server.kill('SIGKILL');
    rmSync(server.directory, { recursive: true });
    renameSync(`${server.directory}.copy`, server.directory);
    await server.restart();
    expect((await target.read()).seqs).toHaveLength(27);
    bench.change(books(1, 3));
    await until('all is there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).seqs).toEqual(Array.from({ length: 31 }, (_, index) => index + 1));
  });

  it('goes back behind messages that were deleted', async () => {
    const { bench, target, config } = await fed(natsTarget(server.port), 30);
    await bench.stop();
    const { streams } = await manager();
    for (const seq of [28, 29, 30]) await streams.deleteMessage(target.stream, seq);
    bench.change(books(1, 2));
    bench.start(config);
    await until('all is there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).seqs).toEqual(Array.from({ length: 31 }, (_, index) => index + 1));
  });

  it('is fed anew where the stream was deleted', async () => {
    const { bench, target } = await fed(natsTarget(server.port), 30);
    const { streams } = await manager();
    await streams.delete(target.stream);
    bench.change(books(1, 2));
    await until('all is there', async () => (await target.read().catch(() => null))?.seqs?.length === 31);
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('is fed anew where the stream was made anew, by somebody else', async () => {
    const { bench, target } = await fed(natsTarget(server.port), 30);
    const { streams } = await manager();
    await streams.delete(target.stream);
    await streams.add({ name: target.stream, subjects: [`${target.stream}.products`] });
    bench.change(books(1, 2));
    await until('all is there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('loses nothing where somebody else writes into its stream', async () => {
    const { bench, target } = await fed(natsTarget(server.port), 3);
    const connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
    onTestFinished(() => connection.close());
    await jetstream(connection).publish(`${target.stream}.products`, 'theirs');
    bench.change(books(3, 2));
    await until('it is told', () => bench.sink().error !== null);
    expect(bench.sink()).toMatchObject({ cursor: 3, error: expect.stringMatching(/wrong last|not of this sink/) });
    const { streams } = await manager();
    await streams.deleteMessage(target.stream, 4);
    bench.store.request(({ sinks }) => sinks.setState(bench.sink().id, 'running'));
    await bench.caughtUp();
    expect((await target.read()).seqs).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('parks what is larger than the stream takes', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    const { streams } = await manager();
    await streams.add({ name: target.stream, subjects: [`${target.stream}.products`], max_msg_size: 3_000 });
    bench.start(config);
    bench.change(books(3, 1));
    bench.change([{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(3_000) }) }]);
    bench.change(books(2, 2));
    await bench.caughtUp();
    expect((await target.read()).seqs).toEqual([1, 2, 3, 5, 6]);
  });

  it('parks what is larger than the server takes', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.start(config);
    bench.change(books(3, 1));
    bench.change([{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(1_100_000) }) }]);
    bench.change(books(2, 2));
    await bench.caughtUp();
    expect(bench.store.sinks.parked(bench.sink().id)).toMatchObject([
      { vbid: 'L', state: 'refused', reason: expect.stringContaining('that the server takes') },
    ]);
    expect((await target.read()).seqs).toEqual([1, 2, 3, 5, 6]);
  });

  it('takes no stream that holds other subjects', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    const { streams } = await manager();
    await streams.add({ name: target.stream, subjects: [`${target.stream}.>`] });
    bench.change(books(3, 1));
    bench.start(config);
    await until('the failure is noted', () => bench.store.sinks.get('contract')?.error != null);
    expect(bench.sink().error).toContain('it must be for');
  });

  it('survives that the server is killed while it is fed', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.start(config);
    for (let round = 1; round <= 5; round++) {
      bench.change(books(200, round));
      await until('it moves', () => bench.sink().cursor > (round - 1) * 200);
      await server.kill('SIGKILL');
      await server.restart();
    }
    await bench.caughtUp();
    await until('all is there', async () => (await target.read().catch(() => null))?.seqs?.length === 1_000);
    expect((await target.read()).seqs).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1));
  });
});
