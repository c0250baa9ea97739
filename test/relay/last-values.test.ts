import { logOf } from '@catchword/testing/log-of';
import { natsAvailable } from '@catchword/testing/nats';
import { redisAvailable } from '@catchword/testing/redis';
import { useNats, useRedis } from '@catchword/testing/used-servers';
import { AckPolicy, DeliverPolicy, jetstream } from '@nats-io/jetstream';
import { createInbox } from '@nats-io/transport-node';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import { books, configAt, failsAgain, fed, fedBefore, feederAt, feeding } from './feeding.ts';
import { readableLog } from './readable-log.ts';
import { decodedKey, natsBucketTarget, redisKeysTarget } from './targets.ts';

/** Keys that stores with a collation, or with rules for names, take for one or refuse. */
const ODD_KEYS = [
  'a',
  'A',
  'a ',
  'é',
  'e\u0301',
  '📚',
  '.',
  'a.b..',
  '=2E',
  "*>%!~'()",
  'a/b',
  '"\\',
  '漢'.repeat(255),
];

const withKeys = (keys: readonly string[]) => keys.map((vbid) => ({ vbid, body: JSON.stringify({ vbid }) }));

describe.skipIf(!redisAvailable)('keys of Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();
  const target = () => redisKeysTarget(redis.server.port);

  it('hold one product each, whatever its key is', async () => {
    const { harness, target: store, config } = await feeding(target());
    harness.start(config);
    await harness.deliver(withKeys(ODD_KEYS));
    expect((await store.read()).products).toEqual(harness.living());
    expect(await redis.client.keys(`${store.prefix}:*`)).toHaveLength(ODD_KEYS.length + 1);
    expect(await redis.client.get(`${store.prefix}:a `)).toBe('{"vbid":"a "}');
    await harness.deliver([{ vbid: 'a', body: null }]);
    expect((await store.read()).products).toEqual(harness.living());
  });

  it('are filled again after a loss of the cursor alone', async () => {
    const { harness, target: store } = await fed(target(), 30);
    await redis.client.del(`${store.prefix}:`);
    // A product that the mirror does not have must be gone when the fill ends.
    await redis.client.set(`${store.prefix}:left`, '{}');
    harness.change([...books(1, 2), { vbid: 'P7', body: null }]);
    await until('the store equals the mirror', async () => (await store.read()).products.size === 29);
    expect((await store.read()).products).toEqual(harness.living());
    expect(await redis.client.exists(`${store.prefix}:\tleft`)).toBe(0);
  });

  it('are filled again after a loss of the cursor, also if the relay ends before the fill begins', async () => {
    const { harness, target: store, config } = await fedBefore(target(), 30);
    await redis.client.del(`${store.prefix}:`);
    const mark = { incarnation: feederAt(harness), generation: 1, cursor: 30, at: 0, late: 0 };
    for (const cursor of [30, 0]) {
      const sink = await config.make();
      expect(await sink.open({ ...mark, cursor }, 30, new AbortController().signal)).toMatchObject({ cursor: 0 });
      await sink.close();
    }
    await harness.resume(config, [...books(1, 2), { vbid: 'P7', body: null }]);
    await until('the store equals the mirror', async () => (await store.read()).products.size === 29);
    expect((await store.read()).products).toEqual(harness.living());
  });

  it('are not filled again at each opening because a view shows nothing', async () => {
    const { harness, target: store } = await feeding(target());
    const config = configAt(store.url, undefined, { where: "vbid = 'none'" });
    harness.start(config);
    await harness.deliver(books(30, 1));
    await until('the fill has ended', async () => (await redis.client.hget(`${store.prefix}:`, 'cursor')) === '30');
    await harness.stop();
    const mark = { incarnation: feederAt(harness), generation: 1, cursor: 30, at: 0, late: 0 };
    const sink = await config.make();
    onTestFinished(() => sink.close());
    expect(await sink.open(mark, 30, new AbortController().signal)).not.toHaveProperty('refill');
  });

  it('whose cursor is damaged say which key to delete, and are filled again then', async () => {
    const { harness, target: store } = await fed(target(), 3);
    await redis.client.hset(`${store.prefix}:`, 'cursor', 'x');
    harness.change(books(1, 2));
    await until('the sink says so', () => harness.sink().error?.includes(`${store.prefix}:: delete this key`) === true);
    await redis.client.del(`${store.prefix}:`);
    await harness.caughtUp();
    expect((await store.read()).products).toEqual(harness.living());
  });

  it('are not written under the prefix of another sink, which would remove them', async () => {
    const { target: outer } = await fed(target(), 1);
    const inner = await configAt(`${outer.url}:de`).make();
    onTestFinished(() => inner.close());
    const message = `Redis: another sink has keys under ${outer.prefix}:. Use another prefix: keys=PREFIX`;
    await expect(inner.check(new AbortController().signal)).rejects.toThrow(message);
  });

  it('of others are not touched', async () => {
    const { harness, target: store, config } = await feeding(target());
    await redis.client.mset(`${store.prefix}:cart`, 'theirs', `${store.prefix}x:1`, 'theirs', 'other', 'theirs');
    harness.change(books(3, 1));
    await harness.failed(config);
    expect(harness.sink().error).toBe(
      `Redis: this sink did not write the key ${store.prefix}:cart. Use another prefix: keys=PREFIX`,
    );
    await failsAgain(harness);
    await redis.client.del(`${store.prefix}:cart`);
    harness.takeOver();
    await harness.caughtUp();
    expect((await store.read()).products).toEqual(harness.living());
    expect(await redis.client.mget(`${store.prefix}x:1`, 'other')).toEqual(['theirs', 'theirs']);
  });

  it('are not written after another process moved the cursor', async () => {
    const { harness, target: store, config } = await feeding(target());
    const reasons: unknown[] = [];
    // The failure itself is over sooner than a test sees it.
    harness.start(config, {
      log: logOf(
        () =>
          ({ reason }) =>
            void reasons.push(reason),
      ),
    });
    await harness.deliver(books(3, 1));
    const earlier = await redis.client.hgetall(`${store.prefix}:`);
    // The end of the fill, which moves the cursor too, is over.
    await harness.deliver(books(1, 2));
    await redis.client.hset(`${store.prefix}:`, earlier);
    await harness.deliver(books(1, 3));
    expect(reasons).toContain(`Redis: another process changed the cursor in ${store.prefix}:`);
    expect((await store.read()).products).toEqual(harness.living());
  });

  it('are not for a server that drops them when its memory is full', async () => {
    const { target: store } = await feeding(target());
    await redis.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    onTestFinished(async () => void (await redis.client.config('SET', 'maxmemory-policy', 'noeviction')));
    const sink = await configAt(store.url).make();
    await expect(sink.check(new AbortController().signal)).rejects.toThrow('Use noeviction');
  });
});

describe.skipIf(!natsAvailable)('a bucket of NATS', { tags: ['stores'] }, () => {
  const nats = useNats();
  const target = () => natsBucketTarget(nats.server.port);

  /** Reads a bucket by the consumer that `kv.watch()` of the clients makes: everything now, then what follows. */
  async function watch(bucket: string) {
    const stream = `KV_${bucket}`;
    const deliver_subject = createInbox();
    const seen = new Map<string, unknown>();
    const messages = nats.connection.subscribe(deliver_subject, {
      callback: (_, message) => {
        const operation = message.headers?.get('KV-Operation');
        const key = decodedKey(message.subject.slice(`$KV.${bucket}.`.length));
        if (operation === 'DEL') seen.delete(key);
        else seen.set(key, message.json());
      },
    });
    const policy = { deliver_policy: DeliverPolicy.LastPerSubject, ack_policy: AckPolicy.None };
    await nats.manager.consumers.add(stream, { ...policy, deliver_subject, filter_subject: `$KV.${bucket}.>` });
    onTestFinished(() => messages.unsubscribe());
    return seen;
  }

  it('holds one product for each key, and shows a watcher everything now, then what changes', async () => {
    const { harness, target: store, config } = await feeding(target());
    harness.start(config);
    await harness.deliver([...withKeys(ODD_KEYS), ...books(20, 1)]);
    await harness.deliver([...books(10, 2), { vbid: 'P15', body: null }]);
    const seen = await watch(store.bucket);
    await until('the watcher has everything', () => seen.size === harness.living().size);
    expect(seen).toEqual(harness.living());
    await harness.deliver([...books(5, 3), { vbid: 'a', body: null }, { vbid: 'P16', body: null }]);
    await until('the watcher has seen the removals', () => seen.size === harness.living().size);
    expect(seen).toEqual(harness.living());
    expect((await store.read()).products).toEqual(harness.living());
  });

  it('is made as the clients of NATS make one', async () => {
    const { target: store } = await fed(target(), 3);
    const { config } = await nats.manager.streams.info(`KV_${store.bucket}`);
    expect(config).toMatchObject({
      subjects: [`$KV.${store.bucket}.>`],
      max_msgs_per_subject: 1,
      discard: 'new',
      allow_rollup_hdrs: true,
      deny_delete: true,
      allow_direct: true,
    });
  });

  it('is filled again after it was emptied', async () => {
    const { harness, target: store, config } = await fedBefore(target(), 30);
    await nats.manager.streams.purge(`KV_${store.bucket}`);
    await harness.resume(config, [...books(1, 2), { vbid: 'P7', body: null }]);
    expect((await store.read()).products).toEqual(harness.living());
  });

  it('is filled again only if it was emptied, not because its view shows nothing', async () => {
    const { harness, target: store } = await feeding(target());
    const config = configAt(store.url, undefined, { where: "vbid = 'P9'", fields: 'vbid' });
    const { streams } = nats.manager;
    const stream = `KV_${store.bucket}`;
    const { lines, log } = readableLog();
    for (const losses of [0, 0, 1]) {
      if (losses > 0) await streams.purge(stream);
      harness.change(books(3, 1 + harness.store.changes.lastSeq()));
      harness.start(config, { log });
      await harness.caughtUp();
      await until('the fill has ended', async () => (await streams.info(stream)).state.messages === 1);
      expect(lines.filter(({ code }) => code === 'SINK_REFILLED')).toHaveLength(losses);
      expect((await store.read()).products.size).toBe(0);
      await harness.stop();
    }
    harness.start(config);
    await harness.deliver(books(10, 9));
    expect([...(await store.read()).products.keys()]).toEqual(['P9']);
  });

  it('is not written after another client has written to it', async () => {
    const { harness, target: store } = await fed(target(), 3);
    await jetstream(nats.connection).publish(`$KV.${store.bucket}.theirs`, 'theirs');
    harness.change(books(3, 2));
    await until('the error is recorded', () => harness.sink().error !== null);
    expect(harness.sink()).toMatchObject({
      cursor: 3,
      error: expect.stringMatching(/wrong last|did not write the last message|is at message/),
    });
  });

  it.each([
    [{ max_age: 3.6e12 }, 'by their age: remove its TTL'],
    [{ max_bytes: 1e6 }, 'when it is full: let it discard new messages'],
    [{ max_msgs: 2 }, 'when it is full: let it discard new messages'],
  ])('with the limits %j, which drop keys, is refused', async (limits, advice) => {
    const { harness, target: store, config } = await feeding(target());
    const subjects = [`$KV.${store.bucket}.>`];
    await nats.manager.streams.add({ name: `KV_${store.bucket}`, subjects, ...limits });
    harness.change(books(3, 1));
    await harness.failed(config);
    expect(harness.sink().error).toBe(`NATS: bucket KV_${store.bucket} drops products ${advice}`);
  });
});

it.each([
  ['redis://h?keys=a&stream=b', 'the options keys and stream exclude each other'],
  ['redis://h?keys=a&maxlen=9', 'the options keys and maxlen exclude each other'],
  ['nats://h?kv=a&stream=b', 'the options kv and stream exclude each other'],
  ['nats://h?kv=a&subject=b', 'the options kv and subject exclude each other'],
  ['nats://h?kv=a&max_age=9d', 'the options kv and max_age exclude each other'],
  ['nats://h?kv=a.b', 'the value of kv is not valid'],
])('the address %s of a store of last values is an error', async (url, message) => {
  await expect(configAt(url).make()).rejects.toThrow(message);
});
