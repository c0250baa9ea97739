import { cpSync, renameSync, rmSync } from 'node:fs';
import { natsAvailable } from '@catchword/testing/nats';
import { useNats } from '@catchword/testing/used-servers';
import { jetstream } from '@nats-io/jetstream';
import { describe, expect, it } from 'vitest';
import { until } from '../../../src/contract/harness.ts';
import { arrived, books, fed, fedBefore, feeding, numbers } from '../../../test/relay/feeding.ts';
import { natsTarget } from '../../../test/relay/targets.ts';

describe.skipIf(!natsAvailable)('nats', { tags: ['stores'] }, () => {
  const nats = useNats();

  it('redelivers deleted messages', async () => {
    const { harness, target, config } = await fedBefore(natsTarget(nats.server.port), 30);
    const { streams } = nats.manager;
    for (const seq of [28, 29, 30]) await streams.deleteMessage(target.stream, seq);
    harness.change(books(1, 2));
    harness.start(config);
    await arrived(target, numbers(1, 31));
  });

  it('redelivers everything if the stream was deleted and created again', async () => {
    const { harness, target } = await fed(natsTarget(nats.server.port), 30);
    const { streams } = nats.manager;
    await streams.delete(target.stream);
    await streams.add({ name: target.stream, subjects: [`${target.stream}.products`] });
    harness.change(books(1, 2));
    await arrived(target, 31);
    expect((await target.read()).products).toEqual(harness.living());
  });

  it('loses nothing if another client publishes to its stream', async () => {
    const { harness, target } = await fed(natsTarget(nats.server.port), 3);
    await jetstream(nats.connection).publish(`${target.stream}.products`, 'theirs');
    harness.change(books(3, 2));
    await until('the error is recorded', () => harness.sink().error !== null);
    expect(harness.sink()).toMatchObject({
      cursor: 3,
      error: expect.stringMatching(/wrong last|did not write the last message/),
    });
    const { streams } = nats.manager;
    await streams.deleteMessage(target.stream, 4);
    harness.store.request(({ sinks }) => sinks.setState(harness.sink().id, 'running'));
    await harness.caughtUp();
    expect((await target.read()).seqs).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('parks an event larger than the limit of the stream', async () => {
    const { harness, target, config } = await feeding(natsTarget(nats.server.port));
    const { streams } = nats.manager;
    await streams.add({ name: target.stream, subjects: [`${target.stream}.products`], max_msg_size: 3_000 });
    harness.start(config);
    harness.change(books(3, 1));
    harness.change([{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(3_000) }) }]);
    await harness.deliver(books(2, 2));
    expect((await target.read()).seqs).toEqual([1, 2, 3, 5, 6]);
  });

  it('parks an event larger than the limit of the server', async () => {
    const { harness, target, config } = await feeding(natsTarget(nats.server.port));
    harness.start(config);
    harness.change(books(3, 1));
    harness.change([{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(1_100_000) }) }]);
    await harness.deliver(books(2, 2));
    expect(harness.parked()).toMatchObject([
      { vbid: 'L', state: 'refused', reason: expect.stringContaining("the server's limit") },
    ]);
    expect((await target.read()).seqs).toEqual([1, 2, 3, 5, 6]);
  });

  it('rejects a stream with other subjects', async () => {
    const { harness, target, config } = await feeding(natsTarget(nats.server.port));
    const { streams } = nats.manager;
    await streams.add({ name: target.stream, subjects: [`${target.stream}.>`] });
    harness.change(books(3, 1));
    await harness.failed(config);
    expect(harness.sink().error).toContain('it must have');
  });

  it('redelivers the newest messages if the server lost them', async () => {
    const { harness, target } = await fed(natsTarget(nats.server.port), 27);
    // As after a power failure, before the server wrote its newest messages to the disk.
    await nats.server.kill('SIGTERM');
    cpSync(nats.server.directory, `${nats.server.directory}.copy`, { recursive: true });
    await nats.server.restart();
    await harness.deliver(books(3, 2));
    await nats.server.kill('SIGKILL');
    rmSync(nats.server.directory, { recursive: true });
    renameSync(`${nats.server.directory}.copy`, nats.server.directory);
    await nats.server.restart();
    expect((await target.read()).seqs).toHaveLength(27);
    harness.change(books(1, 3));
    await arrived(target, numbers(1, 31));
  });

  it('survives kills of the server during delivery', { tags: ['slow'] }, async () => {
    const { harness, target, config } = await feeding(natsTarget(nats.server.port));
    harness.start(config);
    for (let round = 1; round <= 5; round++) {
      harness.change(books(200, round));
      await until('it moves', () => harness.sink().cursor > (round - 1) * 200);
      await nats.server.kill('SIGKILL');
      await nats.server.restart();
    }
    await harness.caughtUp();
    await arrived(target, numbers(1, 1_000));
  });
});
