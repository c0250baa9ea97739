import { execute } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { serve, serveHarness } from '../http/place.ts';
import { get, getJson } from '../http/reader.ts';
import { runHere } from '../support/in-process.ts';
import { filled } from '../support/place.ts';

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
  expect(await found('runs?after=0&kind=full')).toEqual([1, 3]);
  expect(await found('decisions?after=1&limit=1')).toEqual([2]);
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

it('problems that are over are listed with what each channel got and what it gave up', async () => {
  const { store, html, page } = await serveHarness();
  const at = Date.parse('2026-11-20T02:00:00Z');
  writeUnder(store.daemonLease, at, ({ episodes }) => {
    episodes.begin('runs', 'Runs fail.\nLook.', at, ['team', 'mail']);
    const [notice] = episodes.waiting('team');
    if (notice === undefined) throw new Error('no message waits');
    episodes.failed({ ...notice, channel: 'team', error: 'HTTP 500', firstTriedAt: at, nextTryAtMs: 0 });
    episodes.delivered({ ...notice, channel: 'mail', atMs: at + 1_000 });
    episodes.end(notice.episodeId, at + 60_000, ['mail']);
    for (let n = 0; n < 60; n++) episodes.begin(`sink:s${n}`, `Sink s${n} fails.`, at + n, []);
  });
  const text = await html('/problems?state=ended');
  expect(text).toMatch(/Runs fail\. Look\..*over.*2026-11-20 02:00:00 UTC.*2026-11-20 02:01:00 UTC/s);
  expect(text).toMatch(
    /mail: delivered.*02:00:01 UTC.*team: given up after 1 try: HTTP 500.*mail: that it is over, waiting/s,
  );
  const all = await html('/problems');
  expect([all.includes('Sink s59 fails'), all.includes('href="/problems?before=12"')]).toEqual([true, true]);
  expect(await html('/problems?topic=sink:s3')).toMatch(/Sink s3 fails.*gone, watched/s);
  const ended = JSON.parse((await page('/api/problems?state=ended')).text) as Things;
  const sent = {
    channel: 'team',
    phase: 'began',
    state: 'given up',
    attempts: 1,
    delivered_at: null,
    error: 'HTTP 500',
  };
  expect(ended).toMatchObject([{ id: 1, topic: 'runs', ended_at: '2026-11-20T02:01:00.000Z' }]);
  expect(ended[0]?.messages).toContainEqual(sent);
  const open = JSON.parse((await page('/api/problems?after=2&limit=2')).text) as Things;
  expect(open.map(({ topic }) => topic)).toEqual(['sink:s1', 'sink:s2']);
});

it('parked events and rejected items are listed over HTTP and on pages, with the same filters', async () => {
  const { db, settings } = await filled({ items: 3 });
  execute(
    db,
    `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 60)
       INSERT INTO rejected (run_id, pass, page, per_page, position, reason, body)
       SELECT 1 + n / 60, 0, 1, 1000, n, 'the key of item ' || n || ' is empty', '{"n":' || n || '}' FROM n;
     INSERT INTO sinks (id, name, kind, address, identity) VALUES (1, 'shop', 'webhook', 'https://shop.example', 'i');
     WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 60)
       INSERT INTO parked (sink_id, seq, vbid, state, reason, at, change)
       SELECT 1, n, 'V' || (n % 2), iif(n % 3, 'refused', 'waiting'), 'too long', 1, '{"op":"updated"}' FROM n`,
  );
  const { web } = await serve(db);
  const found = async (path: string, key: string) =>
    (await getJson<Things>(`${web.url}/api/${path}`)).map((one) => one[key]);
  const html = async (path: string) => (await get(`${web.url}${path}`)).text;
  expect(await found('rejected?limit=2', 'id')).toEqual([60, 59]);
  expect(await found('rejected?after=0&limit=2', 'position')).toEqual([1, 2]);
  expect(await found('rejected?run=2', 'body')).toEqual(['{"n":60}']);
  expect(await found('rejected?reason=ITEM%207%20', 'id')).toEqual([7]);
  execute(
    db,
    'INSERT INTO rejected (rowid, run_id, pass, page, per_page, position, reason, body) VALUES (60000, 3, 0, 1, 9, 0, 1, 2)',
  );
  expect(await found('rejected', 'id')).toEqual([60_000]);
  expect(await found('rejected?run=2', 'id')).toEqual([60]);
  execute(db, 'DELETE FROM rejected WHERE rowid = 60000');
  expect(await found('sinks/shop/parked?state=waiting&vbid=V1&limit=2&after=3', 'seq')).toEqual([9, 15]);
  expect((await get(`${web.url}/api/sinks/none/parked`)).status).toBe(404);
  const { stdout } = await runHere(['sink', 'parked', 'shop', '--json'], settings, temporaryDirectory());
  expect(JSON.parse(stdout)).toEqual(await getJson(`${web.url}/api/sinks/shop/parked?limit=100`));

  const all = await html('/rejected');
  expect(all).toMatch(/run 2<.*page=1, per_page=1000.*the key of item 60 is empty.*&quot;n&quot;:60/s);
  expect(all).toContain('href="/rejected?before=11"');
  expect(await html('/rejected?run=1&reason=item+7+')).toMatch(/value="item 7".*the key of item 7 is empty/s);
  const waiting = await html('/sinks/shop?state=waiting&vbid=');
  expect(waiting.match(/waits for an earlier event/g)).toHaveLength(20);
  expect(waiting).toContain('<option value="waiting" selected>waiting</option>');
  for (const [path, labels] of [
    ['/runs', ['Kind', 'State', 'Proof']],
    ['/changes', ['What', 'Fields']],
    ['/actions', ['Decision', 'About', 'State']],
    ['/sinks/shop', ['State', 'Key']],
    ['/rejected', ['Run', 'Reason']],
    ['/problems', ['Topic', 'State']],
  ] as const) {
    const found = [...(await html(path)).matchAll(/<label for="filter-\w+">(.*?)</g)].map(([, label]) => label);
    expect(found, path).toEqual(labels);
  }
  expect(await html('/changes?op=created,updated')).toContain('selected>created,updated</option>');
  expect(await html('/sinks/shop?state=refused&vbid=V0')).not.toContain('waits for an earlier event');
  const more = await html('/sinks/shop?vbid=');
  expect(more).toContain('href="/sinks/shop?after=50#parked"');
  expect(await html('/runs?kind=delta')).toContain('No such runs exist.');
  expect(await html('/runs?kind=full&state=complete')).toContain('href="/runs/1"');
  expect(await html('/actions?action=pause')).toContain('No such decision.');
});
