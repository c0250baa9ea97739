// @module-tag slow
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SinkSetting } from '@catchword/settings/config';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import { sinkConfigs } from '../../src/relay/sink-config.ts';
import { runHere } from '../support/in-process.ts';
import { books, numbers, temporaryMirror } from './feeding.ts';
import { jsonlTarget } from './targets.ts';
import { startWatchedRelay } from './watched-relay.ts';

type Wrong = Readonly<Record<string, readonly [Record<string, string>, RegExp]>>;

/** Each wrong sink: its variables, by what follows CATCHWORD_SINK_, and its error. */
function wrongSinks(directory: string): Wrong {
  const moduleOf = (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, text);
    return `module:${path}`;
  };
  return {
    rowid: [{ rowid: 'jsonl:rowid.jsonl', rowid_where: 'rowid = 1' }, /CATCHWORD_SINK_ROWID_WHERE: /],
    torn: [{ torn: 'jsonl:torn.jsonl', torn_fields: 'json_object(' }, /CATCHWORD_SINK_TORN_FIELDS: /],
    scheme: [
      { scheme: 'ftp://shop:topsecret@db.example' },
      /CATCHWORD_SINK_SCHEME: its value is not a valid sink address/,
    ],
    option: [{ option: 'jsonl:option.jsonl?rotate=big' }, /CATCHWORD_SINK_OPTION: the value of rotate is not valid/],
    secret: [
      { secret: 'webhook+https://shop.example/hook', secret_secret: 'short' },
      /CATCHWORD_SINK_SECRET: its secret is not a Standard Webhooks secret/,
    ],
    quoted: [{ quoted: '"jsonl:quoted.jsonl"' }, /CATCHWORD_SINK_QUOTED: the value is in quotes/],
    unread: [{ unread_file: join(directory, 'nowhere') }, /CATCHWORD_SINK_UNREAD_FILE: cannot read/],
    unreadview: [
      { unreadview: 'jsonl:unreadview.jsonl', unreadview_where_file: join(directory, 'nowhere') },
      /CATCHWORD_SINK_UNREADVIEW_WHERE_FILE: cannot read/,
    ],
    thrown: [
      { thrown: moduleOf('thrown.mjs', "throw new Error('no license')") },
      /CATCHWORD_SINK_THROWN: .*no license/,
    ],
    shapeless: [
      { shapeless: moduleOf('shapeless.mjs', 'export const createSink = () => ({})') },
      /CATCHWORD_SINK_SHAPELESS: .*createSink returned an invalid sink/,
    ],
    twin_b: [
      { twin_a: 'jsonl:twin.jsonl', twin_b: 'jsonl:twin.jsonl' },
      /the sinks twin_a and twin_b have one store: /,
    ],
  };
}

describe('a relay with wrong settings of sinks', { tags: ['slow'] }, () => {
  it('feeds the other sinks, and commands name each wrong one', async () => {
    const wrongs = wrongSinks(temporaryDirectory());
    const settings = Object.assign({}, ...Object.values(wrongs).map(([variables]) => variables));
    const watched = startWatchedRelay(settings as Record<string, string>);
    onTestFinished(async () => void (await watched.stop()));
    for (const [name, [, error]] of Object.entries(wrongs)) expect(await watched.failureOf(name)).toMatch(error);
    watched.change();
    await watched.healthyGoesOn();
    await until('the other twin goes on', () => watched.store.sinks.get('twin_a')?.cursor === 25);
    const wrong = watched.store.sinks.list().filter(({ name }) => Object.hasOwn(wrongs, name));
    for (const row of wrong) expect(row).toMatchObject({ state: 'running', cursor: 0, delivered: 0 });
    const show = (verb: string, env = watched.env) => runHere(verb.split(' '), env, watched.directory);
    // No relay has fed this mirror, and noted the errors.
    const unfed = { ...watched.env, CATCHWORD_DB: temporaryMirror().store.path };
    for (const verb of ['sink list', 'status', 'doctor']) {
      for (const env of [watched.env, unfed]) {
        const { code, stdout } = await show(verb, env);
        expect(code).toBe(verb === 'doctor' ? 1 : 0);
        // Only making the sink finds these.
        const known = Object.entries(wrongs).filter(
          ([name]) => env !== unfed || verb === 'doctor' || !['option', 'secret', 'thrown', 'shapeless'].includes(name),
        );
        for (const [, [, error]] of known) expect(stdout).toMatch(error);
        expect(stdout).not.toContain('topsecret');
      }
    }
    const { stdout, stderr } = await watched.stop();
    expect(`${stdout}${stderr}`).not.toContain('topsecret');
  });
});

const setting = (url: string, more: Partial<SinkSetting> = {}): SinkSetting => {
  return { env: 'CATCHWORD_SINK_CONTRACT', name: 'contract', url, secret: undefined, ...more };
};

describe('a sink whose setting is corrected', () => {
  it.each([
    ['a view', (url: string) => setting(url, { where: 'rowid = 1' })],
    ['an address', () => setting('ftp://nowhere')],
    ['an option', (url: string) => setting(`${url}?rotate=big`)],
  ])('goes on where it was: %s', async (_what, wrong) => {
    const target = await jsonlTarget();
    onTestFinished(() => target.remove());
    const { store, sink, change, start, stop, failed, caughtUp } = temporaryMirror();
    const startWith = (given: SinkSetting): void => {
      const sinks = sinkConfigs([given], store.sinks.hasFed);
      for (const config of sinks) start(config);
    };
    change(books(10, 1));
    startWith(setting(target.url));
    await caughtUp();
    await stop();
    const before = sink();
    change(books(10, 2));
    startWith(wrong(target.url));
    await failed();
    await stop();
    const { error: _error, errorAt: _at, retryAt: _retryAt, ...row } = sink();
    expect(before).toMatchObject(row);
    startWith(setting(target.url));
    store.request(({ sinks }) => sinks.setState(sink().id, 'running'));
    await caughtUp();
    expect((await target.read()).seqs).toEqual(numbers(1, 20));
  });

  it('is filled if no address was valid before', async () => {
    const target = await jsonlTarget();
    onTestFinished(() => target.remove());
    const { store, sink, change, start, stop, failed, caughtUp } = temporaryMirror();
    change(books(10, 1));
    for (const config of sinkConfigs([setting('ftp://nowhere')])) start(config);
    await failed();
    expect(sink()).toMatchObject({ kind: 'unknown', identity: '', configured: true });
    await stop();
    for (const config of sinkConfigs([setting(target.url)])) start(config);
    await caughtUp();
    expect(store.sinks.list().map(({ kind }) => kind)).toEqual(['jsonl']);
    expect((await target.read()).seqs).toEqual(numbers(1, 10));
  });
});
