import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { natsAvailable } from '@catchword/testing/nats';
import { redisAvailable } from '@catchword/testing/redis';
import { useNats, useRedis } from '@catchword/testing/used-servers';
import { jetstream } from '@nats-io/jetstream';
import { describe, expect, it } from 'vitest';
import type { SinkConfig } from '../../src/relay/sink-config.ts';
import { books, configAt, failsAgain, fedBefore, feeding, NEVER, type TestMirror } from './feeding.ts';
import { jsonlTarget, natsTarget, redisTarget } from './targets.ts';

/** Feeds a store of another application, and does what the hints of a stopped sink say. */
async function feedAndReplay(harness: TestMirror, config: SinkConfig): Promise<void> {
  harness.change(books(3, 1));
  await harness.failed(config);
  expect(harness.sink().error).not.toContain('another mirror');
  await failsAgain(harness);
  await harness.stop();
}

const foreignEvent = JSON.stringify({
  specversion: '1.0',
  id: 'orders:7',
  source: '/orders',
  type: 'com.example.order.created',
  time: '2026-01-01T00:00:00.000Z',
  sequence: '00000000000000000007',
});

describe('a file of another application', () => {
  it.each([
    ['that begins with zeros', `\0\0\0\u0018ftypmp42${'frames'.repeat(100)}`],
    ['that has one event without a line break', foreignEvent],
    ['that has events of another kind', `${foreignEvent}\n`],
    ['that has one bracket', '{'],
    ['that has lines of text', 'shopping list\neggs\n'],
    ['that has other JSON', '{"other":1}\n{"another'],
  ])('%s stays as it is', async (_, content) => {
    const { harness, target, config } = await feeding(jsonlTarget('?rotate=1kB&keep=1'));
    mkdirSync(dirname(target.file), { recursive: true });
    writeFileSync(target.file, content);
    await feedAndReplay(harness, config);
    expect(harness.sink().error).toContain('does not end with an event of catchword');
    expect(readFileSync(target.file, 'utf8')).toBe(content);
    await expect((await config.make()).check(NEVER)).rejects.toThrow('does not end with an event');
  });

  it('a file whose first line a crash left incomplete is fed', async () => {
    const { harness, target, config } = await fedBefore(jsonlTarget(), 1);
    writeFileSync(target.file, readFileSync(target.file, 'utf8').slice(0, 90));
    await harness.resume(config, books(2, 2));
    expect((await target.read()).products).toEqual(harness.living());
  });
});

describe.skipIf(!redisAvailable)('a stream of another application in Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();

  it('stays as it is, also if its ids are small', async () => {
    const { harness, target, config } = await feeding(redisTarget(redis.server.port, '&maxlen=1'));
    for (let entry = 1; entry <= 300; entry++) await redis.client.xadd(target.stream, `0-${entry}`, 'order', '7');
    await feedAndReplay(harness, config);
    expect(harness.sink().error).toContain('this sink did not write entry 0-300');
    expect(await redis.client.xlen(target.stream)).toBe(300);
    await expect((await config.make()).check(NEVER)).rejects.toThrow('did not write entry');
  });

  it('a stream whose cursor was deleted is fed', async () => {
    const { harness, target, config } = await fedBefore(redisTarget(redis.server.port), 5);
    await redis.client.del(`{${target.stream}}:catchword`);
    await harness.resume(config, books(2, 2));
    expect((await target.read()).products).toEqual(harness.living());
  });
});

describe.skipIf(!natsAvailable)('a stream of another application in NATS', { tags: ['stores'] }, () => {
  const nats = useNats();

  it('keeps its messages and its limits', async () => {
    const { harness, target } = await feeding(natsTarget(nats.server.port));
    const { stream } = target;
    const { streams } = nats.manager;
    await streams.add({ name: stream, subjects: [`${stream}.products`] });
    await jetstream(nats.connection).publish(`${stream}.products`, 'theirs');
    const url = `${target.url}&max_age=1h`;
    await feedAndReplay(harness, configAt(url));
    expect(harness.sink().error).toContain('did not write the last message');
    const { config, state } = await streams.info(stream);
    expect([config.max_age, state.messages]).toEqual([0, 1]);
  });
});
