import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { openWorkbench } from '../../src/relay/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { writeUnder } from '../../src/store/hold-lease.ts';
import { books } from './feeding.ts';

function config(url: string) {
  return sinkConfig({ env: 'CATCHWORD_SINK_X', name: 'x', url, secret: undefined });
}

describe('a sink of the settings', () => {
  it('has its name from its variable, and may come from a file', () => {
    const { sinks } = loadConfig({
      CATCHWORD_SINK_MY_SHOP: 'jsonl:a',
      CATCHWORD_SINK_MY_SHOP_SECRET: 's',
      CATCHWORD_SINK_A: 'jsonl:b',
      CATCHWORD_SINK_EMPTY: '',
    });
    expect(sinks).toEqual([
      { env: 'CATCHWORD_SINK_A', name: 'a', url: 'jsonl:b', secret: undefined },
      { env: 'CATCHWORD_SINK_MY_SHOP', name: 'my_shop', url: 'jsonl:a', secret: 's' },
    ]);
    expect(() => loadConfig({ CATCHWORD_SINK_A_FILE: '/nowhere' })).toThrow('CATCHWORD_SINK_A_FILE: cannot read');
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
  ])('%s is shown without what is secret', (url, kind, address) => {
    expect(config(url)).toMatchObject({ kind, address, refused: 'park' });
  });

  it.each(['', 'jsonl', 'jsonl:', 'module:', 'file:x', 'postgres:', 'webhook+ftp://x', 'https://x'])(
    '%j is refused, by the name of its variable',
    (url) => {
      expect(() => config(url)).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(/^CATCHWORD_SINK_X: /) }),
      );
    },
  );

  it.each([
    ['jsonl:x?rotate=big', 'rotate has a value that cannot be used'],
    ['jsonl:x?rotat=1MB', 'its address has an option that is not known'],
    ['postgres://h/d?table=a;drop', 'table has a value that cannot be used'],
    ['postgres://h/d?tabel=books', 'its address has an option that is not known'],
    ['redis://h?maxlen=0', 'maxlen has a value that cannot be used'],
    ['nats://h?subject=a.*', 'subject has a value that cannot be used'],
    ['module:./nowhere.mjs', 'cannot be used'],
  ])('%s: %s', async (url, message) => {
    await expect(config(url).make()).rejects.toThrow(`CATCHWORD_SINK_X: `);
    await expect(config(url).make()).rejects.toThrow(message);
  });
});

it('what is secret in the address of any sink is shown in no error', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-settings-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'talkative.mjs');
  writeFileSync(file, 'export const createSink = ({ url }) => { throw new Error("cannot use " + url.href); };');
  await expect(config(`module:${file}?shelf=4711&token=s3cr3t%2Fword`).make()).rejects.toThrow(
    /talkative\.mjs\?shelf=4711&token=\[secret\]\)$/,
  );
  await expect(config(`module:${file}?token=s3cr3t&go+on=4711&rest`).make()).rejects.toThrow(
    /talkative\.mjs\?token=\[secret\]\)$/,
  );
  expect(config('postgres://u@h/d?password=hunter2').secrets).toContain('hunter2');
  await expect(config('postgres://u@h/d?removals=x&password=hunter2').make()).rejects.toThrow(
    'removals has a value that cannot be used',
  );
});

it('another path of a receiver is another receiver; another query or option of catchword is not', () => {
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

it('a sink that moves to another address begins anew there, and what the old one refused does not count', async () => {
  const bench = openWorkbench();
  onTestFinished(() => bench.close());
  const { sinks } = bench.store;
  bench.change(books(3, 1));
  writeUnder(bench.store.relayLease, Date.now(), (writer) => {
    writer.sinks.configure({ name: 'x', kind: 'jsonl', address: 'old', identity: 'old' });
    writer.sinks.reconcile(1, 1, 3);
    const [change] = bench.events();
    if (change === undefined) throw new Error('no event');
    writer.sinks.park(1, { seq: 1, reason: 'poison', at: 0, change });
    writer.sinks.configure({ name: 'x', kind: 'jsonl', address: 'old', identity: 'old' });
  });
  expect(sinks.get('x')).toMatchObject({ cursor: 3 });
  expect(sinks.parked(1)).toHaveLength(1);
  writeUnder(bench.store.relayLease, Date.now(), (writer) =>
    writer.sinks.configure({ name: 'x', kind: 'jsonl', address: 'new', identity: 'new' }),
  );
  expect(sinks.get('x')).toMatchObject({ cursor: 0, backfillTo: 3 });
  // It turns out, when it is opened, that it is not the same store.
  writeUnder(bench.store.relayLease, Date.now(), (writer) => writer.sinks.reconcile(1, 1, 0));
  expect(sinks.parked(1)).toEqual([]);
});

it('a receiver that an earlier version knew by its query as well is not filled again', () => {
  const bench = openWorkbench();
  onTestFinished(() => bench.close());
  const { sinks } = bench.store;
  const known = config('webhook+https://h.example/a?key=1');
  bench.change(books(3, 1));
  writeUnder(bench.store.relayLease, Date.now(), (writer) => {
    writer.sinks.configure({ ...known, identity: known.formerIdentity ?? '' });
    writer.sinks.reconcile(1, 1, 3);
    writer.sinks.configure(known);
    writer.sinks.configure(config('webhook+https://h.example/a?key=2'));
  });
  expect(sinks.get('x')).toMatchObject({ cursor: 3, identity: known.identity });
});
