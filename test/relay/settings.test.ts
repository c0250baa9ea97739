import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { messageOf } from '@catchword/base/errors';
import { readSettings } from '@catchword/settings/config';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { describe, expect, it } from 'vitest';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { books, NEVER, type TestMirror, temporaryMirror } from './feeding.ts';

function config(url: string, secret?: string) {
  return sinkConfig({ env: 'CATCHWORD_SINK_X', name: 'x', url, secret });
}

describe('a configured sink', () => {
  it('takes its name from its variable', () => {
    const { sinks } = readSettings({
      CATCHWORD_SINK_MY_SHOP: 'jsonl:a',
      CATCHWORD_SINK_MY_SHOP_SECRET: 's',
      CATCHWORD_SINK_A: 'jsonl:b',
      CATCHWORD_SINK_EMPTY: '',
    }).values;
    expect(sinks).toMatchObject([
      { env: 'CATCHWORD_SINK_A', name: 'a', url: 'jsonl:b', secret: undefined },
      { env: 'CATCHWORD_SINK_MY_SHOP', name: 'my_shop', url: 'jsonl:a', secret: 's' },
    ]);
    const [unread] = readSettings({ CATCHWORD_SINK_A_FILE: '/nowhere' }).values.sinks;
    expect(unread?.problems).toMatchObject([
      { message: expect.stringContaining('CATCHWORD_SINK_A_FILE: cannot read') },
    ]);
  });

  it.each([
    ['jsonl:data/out.jsonl', 'jsonl', resolve('data/out.jsonl')],
    ['jsonl:/var/out%20put.jsonl', 'jsonl', '/var/out put.jsonl'],
    ['jsonl:100%.jsonl', 'jsonl', resolve('100%.jsonl')],
    ['webhook+https://h.example/secret/path?token=1#batch=3', 'webhook', 'https://h.example'],
    ['postgres://u:p%40%@db.example/shop?table=a.b', 'postgres', 'db.example:5432/shop a.b'],
    ['redis://:p@[::1]:7/2?stream=s', 'redis', '[::1]:7/2 s'],
    ['nats://u:p@n.example', 'nats', 'n.example:4222 catalog.products'],
    ['nats://n.example?subject=a.b&stream=S', 'nats', 'n.example:4222 S a.b'],
  ])('shows the address of %s without secrets', (url, kind, address) => {
    expect(config(url)).toMatchObject({ kind, address, refused: 'park' });
  });

  it.each(['', 'jsonl', 'jsonl:', 'module:', 'file:x', 'postgres:', 'webhook+ftp://x', 'https://x'])(
    'rejects %j, naming the variable',
    (url) => {
      expect(() => config(url)).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(/^CATCHWORD_SINK_X: /) }),
      );
    },
  );

  it.each([
    ['jsonl:x?rotate=big', 'the value of rotate is not valid'],
    ['jsonl:x?rotat=1MB', 'the address has an unknown option'],
    ['jsonl:x?keep=2', 'keep needs rotate'],
    ['mysql://u@h/d?table=a&table=b', 'the address has an option twice'],
    ['postgres://h/d?table=a;drop', 'the value of table is not valid'],
    ['postgres://h/d?tabel=books', 'the address has an unknown option'],
    ['redis://h?maxlen=0', 'the value of maxlen is not valid'],
    ['nats://h?subject=a.*', 'the value of subject is not valid'],
    ['module:./nowhere.mjs', 'cannot be used'],
    ['redis://127.0.0.1/shop', 'not a database number'],
    ['postgres://user:12345/Sl@host/db', 'cannot be parsed'],
    ['postgres://user:12345#Sl@host/db', 'cannot be parsed'],
    ['jsonl://data/changes.jsonl', 'contains a host or a #'],
    ['jsonl:data/a#b.jsonl', 'contains a host or a #'],
    ['webhook+http://shop.example/', 'private addresses only'],
    ['webhook+https://shop.example/#batc=3', 'the address has an unknown option'],
    ['webhook+https://shop.example/#batch=0', 'the value of batch is not valid'],
    ['webhook+https://u:p@shop.example/', 'contains a user name or password'],
    ['webhook+https://shop.example/', 'its secret is not', 'whsec_'],
  ])('rejects %s: %s', async (url, message, secret?: string) => {
    const error = await (async () => await config(url, secret).make())().catch(messageOf);
    expect(error).toMatch(/^CATCHWORD_SINK_X: /);
    expect(error).toContain(message);
    expect(error).not.toContain('12345');
  });
});

it.each([
  ['webhook+https://shop.example/#verify=7d', 'catchword cannot read what a receiver has stored'],
  ['jsonl:x?rotate=1MB&keep=2&verify=7d', 'keep drops events'],
  ['redis://h?maxlen=5&verify=7d', 'maxlen drops events'],
  ['nats://h?max_age=5d&verify=7d', 'max_age drops events'],
])('verify= of a store that cannot be compared is rejected when settings are read: %s', (url, reason) => {
  expect(() => config(url)).toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining(`its source: ${reason}`) }),
  );
  expect(() => config(url.replace(/[&#]verify=7d/, ''))).not.toThrow();
});

it('verify= of a module that has no list is rejected', async () => {
  const file = join(temporaryDirectory(), 'sink.mjs');
  const calls = 'async open() {}, async deliver() {}, async close() {}, async check() {}';
  writeFileSync(file, `export const createSink = () => ({ batch: { events: 1, chars: 1 }, ${calls} });`);
  await expect(config(`module:${file}?verify=7d`).make()).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: 'CATCHWORD_SINK_X: its store cannot be compared with its source: its module has no list',
  });
  await (await config(`module:${file}`).make()).close();
});

it('a module handles an address of any scheme, whose credentials and options nothing shows', async () => {
  const file = join(temporaryDirectory(), 'queue.mjs');
  const calls = 'async open() { throw new Error("no " + url.href); }, async deliver() {}, async close() {}';
  writeFileSync(
    file,
    `export const createSink = ({ url }) => ({ batch: { events: 1, chars: 1 }, ${calls}, check: async () => url.host });`,
  );
  const { values } = readSettings({
    CATCHWORD_SINK_BUS: 'queue://shop:hunter2@broker.example/topic?acks=all&token=s3cr3t',
    CATCHWORD_SINK_BUS_MODULE: file,
  });
  const [setting] = values.sinks;
  if (setting === undefined) throw new Error('the sink was not read');
  const bus = sinkConfig(setting);
  expect(bus).toMatchObject({ name: 'bus', kind: 'module', address: 'queue://broker.example/topic' });
  const other = { ...setting, url: setting.url.replace('hunter2', 'hunter3') };
  expect(sinkConfig(other).identity).toBe(bus.identity);
  expect(sinkConfig({ ...setting, url: setting.url.replace('all', 'one') }).identity).not.toBe(bus.identity);
  const sink = await bus.make();
  expect(await sink.check(NEVER)).toBe('broker.example');
  const mark = { incarnation: 'a', generation: 1, cursor: 0, at: 0, late: 0 };
  const error = await sink.open(mark, 0, NEVER).catch((thrown: unknown) => thrown);
  expect(bus.errorText(error)).toBe('no queue://shop:[secret]@broker.example/topic?acks=all&token=[secret]');
  await expect(
    sinkConfig({ ...setting, again: async () => undefined, module: 'no-such-package' }).make(),
  ).rejects.toMatchObject({
    message: expect.stringContaining(
      "queue://broker.example/topic cannot be used (Cannot find package 'no-such-package'",
    ),
  });
  expect(() => sinkConfig({ ...setting, module: undefined })).toThrow('not a valid sink address');
});

it('lists everything that is wrong with what a module declares', async () => {
  const directory = temporaryDirectory();
  let files = 0;
  const made = async (members: string) => {
    const file = join(directory, `sink${++files}.mjs`);
    writeFileSync(file, `export const createSink = () => (${members});`);
    return await config(`module:${file}`).make();
  };
  const calls = 'open: async () => null, deliver() {}, close() {}, check() {}';
  await expect(
    made('{ batch: { events: 0, chars: 1.5, bytes: 1 }, open: 7, fillEnd() {}, deliver() {}, close() {} }'),
  ).rejects.toThrow(
    expect.objectContaining({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(
        /CATCHWORD_SINK_X: .*batch\.events: .*>=1; batch\.chars: .*; batch: .*"bytes"; open: .*function; check: .*"fillEnd"/,
      ),
    }),
  );
  const batches = ['undefined', '7', '{}', '{ events: "5", chars: 5 }', '{ events: 5, chars: 1e9 }'];
  for (const batch of batches) await expect(made(`{ batch: ${batch}, ${calls} }`)).rejects.toThrow('batch');
  await expect(made('null')).rejects.toThrow('an invalid sink');
  expect(await made(`{ batch: { events: 5, chars: 5 }, ${calls} }`)).toMatchObject({ batch: { events: 5, chars: 5 } });
  const instance = `new (class { batch = { events: 5, chars: 5 }; db = 7;
    async open() { return this.db === 7 ? null : 0; } deliver() {} close() {} check() {} })()`;
  const mark = { incarnation: 'a', generation: 1, cursor: 0, at: 0, late: 0 };
  expect(await (await made(instance)).open(mark, 0, NEVER)).toBeNull();
  const shrinks = 'open() { this.batch.events = 0; return null; }';
  const shrinking = await made(`{ batch: { events: 5, chars: 5 }, ${calls}, ${shrinks} }`);
  await shrinking.open(mark, 0, NEVER);
  expect(shrinking.batch).toEqual({ events: 5, chars: 5 });
  const moody = `new (class { looks = 0; get batch() { return { events: this.looks++ ? 0 : 5, chars: 5 }; }
    async open() { return null; } deliver() {} close() {} check() {} })()`;
  expect(await made(moody)).toMatchObject({ batch: { events: 5, chars: 5 } });
});

it('redacts secrets of an address in every error', async () => {
  const directory = temporaryDirectory();
  const file = join(directory, 'talkative.mjs');
  writeFileSync(file, 'export const createSink = ({ url }) => { throw new Error("cannot use " + url.href); };');
  await expect(config(`module:${file}?shelf=4711&token=s3cr3t%2Fword`).make()).rejects.toThrow(
    /talkative\.mjs\?shelf=4711&token=\[secret\]\)$/,
  );
  const shouting = join(directory, 'shouting.mjs');
  writeFileSync(shouting, "export const createSink = ({ url }) => { throw 'no ' + url.searchParams.get('token'); };");
  await expect(config(`module:${shouting}?token=s3cr3t%2Fword`).make()).rejects.toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining('no [secret]') as string }),
  );
  await expect(config(`module:${file}?token=s3cr3t&go+on=4711&rest`).make()).rejects.toThrow(
    /talkative\.mjs\?token=\[secret\]\)$/,
  );
  expect(config('postgres://u@h/d?password=hunter2').errorText(new Error('no hunter2'))).toBe('no [secret]');
  await expect(config('postgres://u@h/d?removals=x&password=hunter2').make()).rejects.toThrow(
    'the value of removals is not valid',
  );
});

it('identifies a webhook by its path, not by its query or options', () => {
  const { identity, address } = config('webhook+https://h.example/a?key=1#batch=3');
  expect(config('webhook+https://h.example/a?key=1#batch=5')).toMatchObject({ identity, address });
  expect(config('webhook+https://h.example/b?key=1')).toMatchObject({
    identity: expect.not.stringMatching(identity),
    address,
  });
  expect(config('webhook+https://h.example/a?key=2')).toMatchObject({ identity, address });
  for (const other of ['http://h.example/a#allow=private', 'https://h.example:8443/a', 'https://g.example/a']) {
    expect(config(`webhook+${other}`).identity).not.toBe(identity);
  }
  expect(config('module:a.mjs?directory=x').identity).not.toBe(config('module:a.mjs?directory=y').identity);
  expect(config('postgres://u:old@h/d').identity).toBe(config('postgres://u:new@h/d').identity);
});

/** Configures sinks as a relay does when it starts. @param stores the identity of the store of each name */
function configure({ store }: TestMirror, stores: Readonly<Record<string, string>>): void {
  const named = Object.entries(stores).map(([name, identity]) => ({ name, identity, kind: 'jsonl', address: '' }));
  writeUnder(store.relayLease, Date.now(), ({ sinks }) => {
    sinks.configureOnly(named);
    for (const one of named) sinks.configure(one);
  });
}

it('restarts a sink at a new address, and keeps what the old store refused for that store', async () => {
  const harness = temporaryMirror();
  const { sinks } = harness.store;
  harness.change(books(3, 1));
  configure(harness, { x: 'old' });
  const { id = 0 } = sinks.get('x') ?? {};
  writeUnder(harness.store.relayLease, Date.now(), (writer) => writer.sinks.setPosition(id, 1, 3));
  harness.refuse(1, 'x');
  configure(harness, { x: 'old' });
  expect(sinks.get('x')).toMatchObject({ cursor: 3 });
  expect(sinks.parked(id)).toHaveLength(1);
  harness.store.request((writer) => writer.sinks.setState(id, 'paused'));
  configure(harness, { x: 'new' });
  const restarted = { cursor: 0, legs: [{ what: 'first', to: 3 }], generation: 0, state: 'paused' };
  expect(sinks.get('x')).toMatchObject({ ...restarted, identity: 'new' });
  // At once, before the new store can be opened.
  expect(sinks.parked(sinks.get('x')?.id ?? 0)).toEqual([]);
  expect(sinks.get('x-former')).toMatchObject({ id, configured: false, identity: 'old', cursor: 3 });
  expect(sinks.parked(id)).toMatchObject([{ seq: 1, state: 'refused' }]);
  // A store for which nothing is parked leaves no row.
  configure(harness, { x: 'third' });
  expect(sinks.get('x')).toMatchObject({ ...restarted, identity: 'third' });
  expect(sinks.list().map(({ name }) => name)).toEqual(['x', 'x-former']);
});

it('keeps what stores refused for these stores when their names change places', () => {
  const harness = temporaryMirror();
  const { sinks } = harness.store;
  harness.change(books(3, 1));
  const parkedFor = ({ id }: { id: number }) => sinks.parked(id).map(({ seq }) => seq);
  configure(harness, { a: 'shop', b: 'bus' });
  harness.refuse(1, 'a');
  harness.refuse(2, 'b');
  configure(harness, { a: 'bus', b: 'shop' });
  expect(sinks.list().map((sink) => [sink.name, sink.identity, sink.configured, parkedFor(sink)])).toEqual([
    ['a', 'bus', true, []],
    ['a-former', 'shop', false, [1]],
    ['b', 'shop', true, []],
    ['b-former', 'bus', false, [2]],
  ]);
});
