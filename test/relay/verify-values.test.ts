import { createHash } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SinkEvent } from '@catchword/sink-kit/sink';
import { digestOfJson } from '@catchword/sink-kit/store-digest';
import { natsAvailable } from '@catchword/testing/nats';
import { redisAvailable } from '@catchword/testing/redis';
import { useNats, useRedis } from '@catchword/testing/used-servers';
import { jetstream } from '@nats-io/jetstream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkText } from '../../src/relay/check-text.ts';
import type { SinkConfig } from '../../src/relay/sink-config.ts';
import { compared } from './compared.ts';
import { books, configAt, fed, fedBefore, feederAt, NEVER, type TestMirror } from './feeding.ts';
import { filesTarget, jsonlTarget, natsBucketTarget, natsTarget, redisKeysTarget, redisTarget } from './targets.ts';

const eventOf = (vbid: string, body: string | null): SinkEvent => ({
  id: `test:${vbid}`,
  seq: 1,
  at: 0,
  op: body === null ? 'removed' : 'updated',
  vbid,
  body,
  text: '',
});

const WHOLE = { whole: true, positions: true };
const EQUAL = { differing: [], missing: [], extra: [] };

/** Opens the sink of a relay that has stopped, as the relay does before it compares. */
async function opened({ store, sink: row }: TestMirror, config: SinkConfig) {
  const sink = await config.make();
  onTestFinished(() => sink.close());
  const { generation, cursor } = row();
  const believed = { incarnation: feederAt({ store, sink: row }), generation, cursor, at: 0, late: 0 };
  const mark = await sink.open(believed, cursor, NEVER);
  if (mark === null || sink.list === undefined) throw new Error('the sink keeps no mark');

  return {
    repair: async (events: readonly SinkEvent[], extra: readonly string[]) =>
      await sink.apply?.(events, extra, mark, NEVER),
    /** What differs from the mirror's products. @param wanted only of these */
    compared: async (view = config.view, buckets: ReadonlySet<number> | null = null) => {
      const has = new Map<string, string>();
      for await (const some of sink.list?.(WHOLE, buckets, mark, NEVER) ?? []) {
        for (const { vbid, body = '', digest = digestOfJson(body) } of some) has.set(vbid, digest);
      }
      const should = new Map<string, string>();
      for (const { vbid, body } of store.products.all()) {
        const seen = view === null ? body : view.of(vbid, body);
        if (seen !== null) should.set(vbid, digestOfJson(seen));
      }
      return {
        differing: [...has].flatMap(([vbid, digest]) => ((should.get(vbid) ?? digest) === digest ? [] : vbid)),
        missing: [...should.keys()].filter((vbid) => !has.has(vbid)),
        extra: [...has.keys()].filter((vbid) => !should.has(vbid)),
      };
    },
  };
}

const bodyOf = ({ store }: TestMirror, vbid: string): string =>
  [...store.products.all()].find((product) => product.vbid === vbid)?.body ?? '';

describe.skipIf(!redisAvailable)('verifying keys of Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();

  it('finds and repairs tampered, missing and extra keys', async () => {
    const { harness, target, config } = await fedBefore(redisKeysTarget(redis.server.port), 2_500);
    const { prefix } = target;
    const { compared, repair } = await opened(harness, config);
    expect(await compared()).toEqual(EQUAL);
    // Another order of members is not a difference.
    await redis.client.set(`${prefix}:P1`, '{ "version": 1.0, "vbid": "P1" }');
    await redis.client.set(`${prefix}:P2`, '{"vbid":"P2","version":2}');
    await redis.client.set(`${prefix}:P3`, 'not JSON');
    await redis.client.del(`${prefix}:P4`, `${prefix}:P5`);
    await redis.client.lpush(`${prefix}:P5`, 'a list');
    await redis.client.set(`${prefix}:E`, '{}');
    // It is right, and gone in a day.
    await redis.client.expire(`${prefix}:P6`, 86_400);
    expect(await compared()).toEqual({
      differing: expect.toSatisfy(isOf('P2', 'P3', 'P5', 'P6')),
      missing: ['P4'],
      extra: ['E'],
    });
    const bucket = Number.parseInt(createHash('md5').update('P2').digest('hex').slice(0, 3), 16);
    expect(await compared(null, new Set([bucket]))).toMatchObject({ differing: ['P2'], extra: [] });
    await repair(
      ['P2', 'P3', 'P4', 'P5', 'P6'].map((vbid) => eventOf(vbid, bodyOf(harness, vbid))),
      ['E'],
    );
    expect(await compared()).toEqual(EQUAL);
    await harness.resume(config, books(3, 2));
    expect((await target.read()).products).toEqual(harness.living());
  });

  it('removes keys that are not UTF-8, in a repair and at the end of a fill', async () => {
    const { harness, target, config } = await fedBefore(redisKeysTarget(redis.server.port), 3);
    const { compared, repair } = await opened(harness, config);
    const tamper = async () => {
      for (const end of ['P1\xff', 'P1\xfe', 'P1\t']) {
        await redis.client.set(Buffer.from(`${target.prefix}:${end}`, 'latin1'), '{}');
      }
    };
    await tamper();
    const { extra } = await compared();
    expect(extra).toHaveLength(3);
    await repair([], extra);
    expect(await compared()).toEqual(EQUAL);
    await tamper();
    harness.replay(0, true);
    await harness.resume(config, books(1, 2));
    await expect.poll(() => redis.client.keys(`${target.prefix}:P*`)).toHaveLength(3);
    expect((await target.read()).products).toEqual(harness.living());
  });

  it('fails when another process has moved the cursor', async () => {
    const { harness, target, config } = await fedBefore(redisKeysTarget(redis.server.port), 3);
    const { compared, repair } = await opened(harness, config);
    await redis.client.hset(`${target.prefix}:`, 'cursor', '2');
    await expect(compared()).rejects.toThrow('another process changed the cursor');
    await expect(repair([], ['P1'])).rejects.toThrow();
  });

  it('compares what a view shows', async () => {
    const { harness, target } = await fedBefore(redisKeysTarget(redis.server.port), 3);
    const config = configAt(target.url, undefined, { where: "vbid <> 'P1'", fields: 'version' });
    await harness.resume(config, books(2, 2));
    await harness.stop();
    const { compared } = await opened(harness, config);
    expect(await compared()).toEqual(EQUAL);
    expect(await compared(null)).toMatchObject({ missing: ['P1'] });
  });
});

const isOf =
  (...expected: readonly string[]) =>
  (found: readonly string[]): boolean =>
    found.toSorted().join() === expected.toSorted().join();

describe.skipIf(!natsAvailable)('verifying a bucket of NATS', { tags: ['stores'] }, () => {
  const nats = useNats();

  it('finds a missing value, and fails when another client has written to it', async () => {
    const { harness, target, config } = await fedBefore(natsBucketTarget(nats.server.port), 1_200);
    await harness.resume(config, [...books(3, 2), { vbid: 'P9', body: null }]);
    await harness.stop();
    const { compared } = await opened(harness, config);
    expect(await compared()).toEqual(EQUAL);
    // A purge of one key does not move the number of the last message.
    await nats.manager.streams.purge(`KV_${target.bucket}`, { filter: `$KV.${target.bucket}.P7` });
    expect(await compared()).toEqual({ ...EQUAL, missing: ['P7'] });
    await jetstream(nats.connection).publish(`$KV.${target.bucket}.theirs`, 'theirs');
    await expect(compared()).rejects.toThrow('is at message');
  });
});

it('the example with a file for each product finds and repairs what another program has changed', async () => {
  const { harness, target } = await fed(filesTarget(), 20);
  const fileOf = (vbid: string): string => join(target.directory, `${vbid}.json`);
  writeFileSync(fileOf('P1'), '{}');
  rmSync(fileOf('P2'));
  writeFileSync(fileOf('EXTRA'), '{}');
  expect(await compared(harness, { repair: true })).toMatchObject({ differing: 1, missing: 1, extra: 1, repaired: 3 });
  expect((await target.read()).products).toEqual(harness.living());
});

it('the example with a file for each product takes long keys, and removes files of others', async () => {
  const { harness, target } = await fed(filesTarget(), 3);
  const keys = ['x'.repeat(255), 'Ω'.repeat(255), 'a/b', '..', '100%'];
  await harness.deliver(keys.map((vbid) => ({ vbid, body: JSON.stringify({ vbid }) })));
  for (const name of ['100%', 'copy']) writeFileSync(join(target.directory, `${name}.json`), '{"vbid":"P1"}');
  writeFileSync(join(target.directory, '5.json'), '{"vbid":5}');
  expect(await compared(harness, { repair: true })).toMatchObject({ extra: 3, repaired: 3, same: 8, error: null });
  expect((await target.read()).products).toEqual(harness.living());
});

describe('verifying a file of events', () => {
  it('goes on after the file was moved away, and finds what is missing then', async () => {
    const { harness, target } = await fed(jsonlTarget(), 3);
    rmSync(target.file);
    expect(await compared(harness)).toMatchObject({ error: expect.stringContaining('has replaced') });
    expect(await compared(harness)).toMatchObject({ missing: 3, error: null });
  });

  it('advises a replay, because events cannot be repaired', async () => {
    const { harness, target } = await fed(jsonlTarget(), 3);
    writeFileSync(target.file, readFileSync(target.file, 'utf8').replace('"version":1', '"version":2'));
    const check = await compared(harness);
    expect(check).toMatchObject({ differing: 1, allows: 'comparison' });
    expect(checkText(harness.sink(), check).advice).toBe(
      'It cannot be repaired: events are only added to it. To send every product again: npx catchword sink replay contract --from beginning',
    );
  });

  it('finds what its last events say otherwise, over rotated files', async () => {
    const { harness, target, config } = await fedBefore(jsonlTarget('?rotate=20kB'), 300);
    await harness.resume(config, [...books(50, 2), { vbid: 'P9', body: null }]);
    await harness.stop();
    const { compared } = await opened(harness, config);
    expect(await compared()).toEqual(EQUAL);
    const tampered = readFileSync(target.file, 'utf8').replace('"vbid":"P49","version":2', '"vbid":"P49","version":3');
    writeFileSync(target.file, tampered);
    expect(await compared()).toEqual({ ...EQUAL, differing: ['P49'] });
  });

  it('fails when old files are dropped', async () => {
    const { harness, config } = await fedBefore(jsonlTarget('?rotate=20kB&keep=2'), 10);
    const { compared } = await opened(harness, config);
    await expect(compared()).rejects.toThrow('no longer has every event');
  });
});

describe.skipIf(!redisAvailable)('verifying a stream of Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();

  it('finds what its last events say otherwise, unless it was trimmed', async () => {
    const { harness, target, config } = await fedBefore(redisTarget(redis.server.port), 1_500);
    await harness.resume(config, [...books(3, 2), { vbid: 'P9', body: null }]);
    await harness.stop();
    const { compared } = await opened(harness, config);
    expect(await compared()).toEqual(EQUAL);
    const event = (await redis.client.xrevrange(target.stream, '+', '-', 'COUNT', 1))[0]?.[1][1] ?? '';
    await redis.client.xadd(target.stream, '1-9999', 'event', event.replaceAll('"P9"', '"P8"'));
    expect(await compared()).toEqual({ ...EQUAL, missing: ['P8'] });
    await redis.client.xtrim(target.stream, 'MAXLEN', 100);
    await expect(compared()).rejects.toThrow(`stream ${target.stream} no longer has every event`);
  });
});

describe.skipIf(!natsAvailable)('verifying a stream of NATS', { tags: ['stores'] }, () => {
  const nats = useNats();

  it('compares what its last events say, unless old ones were dropped', async () => {
    const { harness, target, config } = await fedBefore(natsTarget(nats.server.port), 1_200);
    await harness.resume(config, [...books(3, 2), { vbid: 'P9', body: null }]);
    await harness.stop();
    const { compared } = await opened(harness, config);
    expect(await compared()).toEqual(EQUAL);
    harness.change([{ vbid: 'P8', body: null }, { vbid: 'N', body: '{"vbid":"N"}' }, ...books(1, 7)]);
    expect(await compared()).toEqual({ differing: ['P0'], missing: ['N'], extra: ['P8'] });
    await nats.manager.streams.deleteMessage(target.stream, 5);
    await expect(compared()).rejects.toThrow(`stream ${target.stream} no longer has every event`);
  });
});
