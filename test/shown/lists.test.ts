import { expect, it } from 'vitest';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { serve, serveHarness } from '../http/place.ts';
import { get, getJson } from '../http/reader.ts';
import { runHere } from '../support/in-process.ts';
import { temporaryDirectory } from '../support/mirror.ts';

type Things = readonly Readonly<Record<string, unknown>>[];

it('lists over HTTP have filters and cursors, and answer as the commands do', async () => {
  const { store, web } = await serveHarness();
  const now = Date.now();
  writeUnder(store.relayLease, now, ({ sinks }) => {
    for (const name of ['a', 'b', 'c']) sinks.configure({ name, kind: 'webhook', address: name, identity: name });
    sinks.stop(sinks.get('b')?.id ?? 0, 'the receiver answered 410', now, null);
  });
  writeUnder(store.keeperLease, now, ({ runs }) => {
    for (const kind of ['full', 'delta', 'full'] as const) {
      const id = runs.create({ kind, from: null, startedAt: now, tick: null, selection: '{}' });
      const [state, proof] = id === 1 ? (['complete', 'open'] as const) : (['failed', null] as const);
      runs.end(id, { state, proof, finishedAt: now, counts: runs.counts(id), reasons: [], error: null });
    }
  });
  store.request(({ actions }) => {
    const decision = { at: now, who: 'eve', action: 'pause', argument: null, outcome: null, endedAt: null } as const;
    for (const target of ['a', 'b', 'a']) actions.add({ ...decision, target, state: 'done' });
  });
  const found = async (path: string, key = 'id') =>
    (await getJson<Things>(`${web.url}/api/${path}`)).map((one) => one[key]);
  expect(await found('sinks', 'name')).toEqual(['a', 'b', 'c']);
  expect(await found('sinks?after=a&limit=1', 'name')).toEqual(['b']);
  expect(await found('sinks?state=stopped', 'name')).toEqual(['b']);
  expect(await found('runs?kind=full')).toEqual([3, 1]);
  expect(await found('runs?state=failed&before=3')).toEqual([2]);
  expect(await found('runs?proof=open')).toEqual([1]);
  expect(await found('decisions?target=a&before=3')).toEqual([1]);
  expect(await found('decisions?state=asked')).toEqual([]);
  expect((await get(`${web.url}/api/sinks?state=odd`)).status).toBe(400);
  for (const [path, ...args] of [
    ['decisions', 'decisions'],
    ['runs', 'runs'],
    ['sinks', 'sink', 'list'],
  ] as const) {
    const settings = { CATCHWORD_DB: store.path, CATCHWORD_BASE_URL: 'http://127.0.0.1:1' };
    const { stdout } = await runHere([...args, '--json'], settings, temporaryDirectory());
    expect(JSON.parse(stdout), path).toEqual(await getJson(`${web.url}/api/${path}`));
  }
});

it('a channel that gave up a message is named by the overview, status and /api/status', async () => {
  const { store } = await serveHarness();
  const now = Date.now();
  writeUnder(store.daemonLease, now, ({ episodes }) => {
    episodes.begin('runs', 'Runs fail.\nLook.', now, ['team']);
    const [notice] = episodes.waiting('team');
    if (notice === undefined) throw new Error('no message waits');
    episodes.failed({ ...notice, channel: 'team', error: 'HTTP 500', firstTriedAt: now, nextTryAtMs: 0 });
  });
  const channels = [{ name: 'team', kind: 'webhook', address: 'https://hook.example' }];
  const { web } = await serve(store.path, { channels });
  const { text } = await get(web.url);
  expect(text).toContain('The channel team does not take its messages: 1 message given up.');
  expect(text).toMatch(/Given up<.*HTTP 500/s);
  const gaveUp = { channels: [{ name: 'team', given_up: 1, error: 'HTTP 500' }], episodes: [{ topic: 'runs' }] };
  expect(await getJson(`${web.url}/api/status`)).toMatchObject(gaveUp);
  expect(await getJson(`${web.url}/api/problems?topic=runs`)).toMatchObject([{ topic: 'runs', gone: true }]);
  expect(await getJson(`${web.url}/api/problems?topic=held`)).toEqual([]);
  const settings = {
    CATCHWORD_DB: store.path,
    CATCHWORD_BASE_URL: 'http://127.0.0.1:1',
    CATCHWORD_NOTIFY_TEAM: 'webhook+https://hook.example/secret',
  };
  const { stdout } = await runHere(['status'], settings, temporaryDirectory());
  expect(stdout).toContain('team: webhook, no message so far, 1 message given up: HTTP 500');
});
