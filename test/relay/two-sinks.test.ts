import { mariadbAvailable, useMariadb } from '@catchword/testing/mariadb';
import { natsAvailable } from '@catchword/testing/nats';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { redisAvailable } from '@catchword/testing/redis';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { useNats, useRedis } from '@catchword/testing/used-servers';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SinkTarget } from '../../src/contract/checks.ts';
import { SINK_NAME, until } from '../../src/contract/harness.ts';
import { sinkConfig, sinkConfigs } from '../../src/relay/sink-config.ts';
import type { SinkRow } from '../../src/store/rows/sink-rows.ts';
import { runHere } from '../support/in-process.ts';
import { books, temporaryMirror } from './feeding.ts';
import { jsonlTarget, mysqlTarget, natsBucketTarget, postgresTarget, redisKeysTarget, redisTarget } from './targets.ts';

const settingAt = (name: string, url: string) => {
  return { env: `CATCHWORD_SINK_${name.toUpperCase()}`, name, url, secret: undefined };
};
const sinkAt = (name: string, url: string) => sinkConfig(settingAt(name, url));

/** Feeds a store by one sink; then a second one, at another spelling of the address, must stop and leave it alone. */
async function expectOneSink(prepared: Promise<SinkTarget>, spell: (url: string) => string): Promise<void> {
  const target = await prepared;
  onTestFinished(() => target.remove());
  const { store, change, start, stop } = temporaryMirror();
  const sinks = [sinkAt('second', spell(target.url)), sinkAt('first', target.url)];
  const [second, first] = sinks;
  if (first === undefined || second === undefined) throw new Error('unreachable');
  const settings = [settingAt('second', spell(target.url)), settingAt('first', target.url)];
  expect(sinkConfigs(settings).flatMap(({ problems = [] }) => problems)).toEqual([]);
  const isFed = () => store.sinks.get('first')?.cursor === store.changes.lastSeq();
  change(books(50, 1));
  start(first);
  await until('the first sink has filled the store', isFed);
  await stop();
  change(books(5, 2));
  start(first, { sinks });
  await until('the second sink stops', () => store.sinks.get('second')?.state === 'stopped');
  await until('the first sink goes on', isFed);
  const { error } = store.sinks.get('second') ?? {};
  expect(error).toMatch(/: the sink first writes here\. Let second have another .*Do not replay second/);
  // The advice for another conflict does not help either.
  store.request((writer) => {
    const second = store.sinks.get('second');
    if (second === undefined) throw new Error('the mirror does not have the second sink');
    writer.sinks.replay(second, null);
    writer.sinks.setState(second.id, 'running');
  });
  await until('the second sink stops again', () => store.sinks.get('second')?.state === 'stopped');
  change(books(7, 3));
  await until('the first sink still goes on', isFed);
  await stop();
  const { products } = await target.read();
  expect(products.size).toBe(50);
  expect(products.get('P0')).toEqual({ vbid: 'P0', version: 3 });
}

describe.skipIf(!postgresAvailable)('two sinks of one table in PostgreSQL', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  it.each([
    ['with its schema', (url: string) => url.replace('table=', 'table=public.')],
    ['on a host with another name', (url: string) => url.replace('127.0.0.1', 'localhost')],
  ])('are one too many: %s', async (_what, spell) => {
    await expectOneSink(postgresTarget(postgres.port), spell);
  });
});

describe.skipIf(!mariadbAvailable)('two sinks of one table in MariaDB', { tags: ['stores'] }, () => {
  const mariadb = useMariadb({ settings: ['--lower-case-table-names=1'] });

  it.each([
    [
      'under its other scheme and host',
      (url: string) => url.replace('mysql://root@127.0.0.1', 'mariadb://root@localhost'),
    ],
    ['with its database', (url: string) => url.replace('table=', 'table=shop.')],
    [
      'in capitals, where the server folds them',
      (url: string) => url.replace(/table=(\w+)/, (text) => text.toUpperCase().replace('TABLE', 'table')),
    ],
  ])('are a mistake: %s', async (_what, spell) => {
    await expectOneSink(mysqlTarget(mariadb.server.port), spell);
  });
});

describe.skipIf(!redisAvailable || !natsAvailable)('two sinks of one store of values', { tags: ['stores'] }, () => {
  const redis = useRedis();
  const nats = useNats();
  const spell = (url: string): string => url.replace('127.0.0.1', 'localhost');

  it('are refused by a stream of Redis', () => expectOneSink(redisTarget(redis.server.port), spell));
  it('are refused by keys of Redis', () => expectOneSink(redisKeysTarget(redis.server.port), spell));
  it('are refused by a bucket of NATS', () => expectOneSink(natsBucketTarget(nats.server.port), spell));

  it('are refused if the keys of one begin like those of the other, in whichever order they began', async () => {
    const outer = await redisKeysTarget(redis.server.port);
    onTestFinished(() => outer.remove());
    const { store, change, start, stop } = temporaryMirror();
    const sinks = [sinkAt('inner', `${spell(outer.url)}:books`), sinkAt('outer', outer.url)];
    const isRefused = () => (store.sinks.get('inner')?.error ?? null) !== null;
    const are = (one: (sink: SinkRow) => boolean) => store.sinks.list().filter(one).length === 2;
    // Mostly both begin with an empty store. If the outer one was faster, the inner one is refused at once.
    start(sinks[0] as (typeof sinks)[0], { sinks });
    await until('both are open', () => isRefused() || are(({ generation }) => generation > 0));
    change(books(20, 1));
    await until('both are filled', () => isRefused() || are(({ cursor }) => cursor === 20));
    await stop();
    start(sinks[0] as (typeof sinks)[0], { sinks });
    await until('the inner one fails', isRefused);
    expect(store.sinks.get('inner')?.error).toContain('Redis: another sink has keys under');
  });
});

describe('the settings of two sinks', () => {
  it.each([
    ['jsonl:a.jsonl', 'jsonl:a.jsonl?rotate=1MB'],
    ['postgres://u@h/shop?table=books', 'postgresql://other@h:5432/shop?table=books'],
    ['mysql://u@h/shop', 'mariadb://u@h:3306/shop?table=products'],
    ['redis://h/0?keys=shop', 'redis://h/0?keys=shop:books'],
    ['redis://h/0?keys=shop:books', 'redis://h/0?keys=shop'],
    ['webhook+https://h/hook?shop=1', 'webhook+https://h/hook?shop=1#batch=10'],
    ['webhook+https://h/~a%2Fb', 'webhook+https://H:443/x/../%7ea%2fb'],
    ['module:sinks/mine.mjs?a=1&b=2', 'module:./sinks/../sinks/mine.mjs?b=2&a=1'],
  ])('let one of them get nothing if they have one store: %s and %s', (one, other) => {
    const settings = [settingAt('one', one), settingAt('other', other)];
    const problemsOf = (sinks: ReturnType<typeof sinkConfigs>) => sinks.map(({ problems }) => problems?.[0]?.message);
    const message = expect.stringMatching(/^the sinks one and other have one store: /);
    expect(problemsOf(sinkConfigs(settings))).toEqual([undefined, message]);
    const others = expect.stringMatching(/^the sinks other and one have one store: /);
    expect(problemsOf(sinkConfigs(settings, ({ name }) => name === 'other'))).toEqual([others, undefined]);
  });

  it.each([
    ['webhook+https://h/hook?shop=1', 'webhook+https://h/hook?shop=2'],
    ['webhook+https://h/a%2Fb', 'webhook+https://h/a/b'],
    ['module:mine.mjs?index=a', 'module:mine.mjs?index=b'],
    ['redis://h/0?keys=shop', 'redis://h/0?keys=shop2'],
    ['redis://h/0?stream=shop', 'redis://h/0?keys=shop'],
    ['postgres://u@h/shop?table=books', 'postgres://u@h/shop?table=films'],
  ])('are accepted if each has its own store: %s and %s', (one, other) => {
    const sinks = sinkConfigs([settingAt('one', one), settingAt('other', other)]);
    expect(sinks.map(({ problems }) => problems)).toEqual([undefined, undefined]);
  });

  it('keep the store for the sink that has fed it, whatever the new one is called', async () => {
    const target = await jsonlTarget();
    onTestFinished(() => target.remove());
    const { store, change, start, stop } = temporaryMirror();
    const settings = ['newcomer', 'veteran'].map((name) => settingAt(name, target.url));
    const veteran = sinkAt('veteran', target.url);
    change(books(20, 1));
    start(veteran);
    await until('the veteran has filled the store', () => store.sinks.get('veteran')?.cursor === 20);
    await stop();
    change(books(20, 2));
    start(veteran, { sinks: sinkConfigs(settings, store.sinks.hasFed) });
    await until('the veteran goes on', () => store.sinks.get('veteran')?.cursor === 40);
    await until('the newcomer has failed', () => (store.sinks.get('newcomer')?.error ?? null) !== null);
    expect(store.sinks.get('newcomer')).toMatchObject({
      cursor: 0,
      error: expect.stringMatching(/^the sinks veteran and newcomer have one store: .*Let newcomer have another/),
    });
    expect((await target.read()).seqs).toHaveLength(40);
  });

  it('are judged alike by doctor, settings and sink list: one is wrong, the newcomer', async () => {
    const target = await jsonlTarget();
    onTestFinished(() => target.remove());
    const { store, start, deliver, stop } = temporaryMirror();
    start(sinkAt(SINK_NAME, target.url));
    await deliver(books(2, 1));
    await stop();
    const [mine, newcomer] = [`CATCHWORD_SINK_${SINK_NAME.toUpperCase()}`, 'CATCHWORD_SINK_A'];
    const settings = { CATCHWORD_DB: store.path, [mine]: target.url, [newcomer]: target.url };
    for (const verb of ['doctor', 'settings', 'sink list']) {
      const { stdout, stderr } = await runHere(verb.split(' '), settings, temporaryDirectory());
      const said = stdout + stderr;
      expect([verb, /the sinks \w+ and \w+ have one store/.exec(said)?.[0]]).toEqual([
        verb,
        `the sinks ${SINK_NAME} and a have one store`,
      ]);
    }
  });

  it('are named by doctor', async () => {
    const settings = { CATCHWORD_SINK_ONE: 'jsonl:a.jsonl', CATCHWORD_SINK_OTHER: 'jsonl:a.jsonl' };
    expect((await runHere(['doctor'], settings, temporaryDirectory())).stdout).toContain(
      'the sinks one and other have one store: ',
    );
  });
});
