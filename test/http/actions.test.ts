import { CatchwordError } from '@catchword/base/errors';
import { createLog } from '@catchword/base/log';
import { expect, it } from 'vitest';
import { createApp } from '../../src/http/app.ts';
import { holdNumber } from '../../src/report/sink-report.ts';
import type { NewAction } from '../../src/store/rows/decision-rows.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { openStore } from '../../src/store/store.ts';
import { post, reading } from '../operate/daemon.ts';
import { emptyMirror, serve, serveFilled, serveHarness } from './place.ts';
import { get, getJson } from './reader.ts';

it('a form is rejected with every field that is wrong, and then nothing is recorded', async () => {
  const { db, web } = await serveFilled({ items: 1 });
  const wrong: [Record<string, string>, RegExp][] = [
    [{}, /^action: choose one of approve, reject, check, undo, cancel, start, pause/],
    [{ action: 'drop' }, /^action: choose one of/],
    [{ action: 'approve' }, /^target: /],
    [{ action: 'approve', target: '0' }, /^target: is not a whole number of 1 or more/],
    [{ action: 'approve', target: '1e3' }, /^target: is not a whole number/],
    [{ action: 'cancel', target: '9'.repeat(16) }, /^target: is not a whole number/],
    [{ action: 'approve', target: '1', argument: '2' }, /^argument: is not used by this action/],
    [{ action: 'start', target: 'half' }, /^target: is not a kind of run: full or delta/],
    [{ action: 'pause', target: '' }, /^target: names no sink/],
    [{ action: 'pause', target: 'x'.repeat(201) }, /^target: is longer than/],
    [{ action: 'replay', target: 'a', argument: 'beginning' }, /^argument: /],
    [{ action: 'skip', target: 'a' }, /^argument: /],
    [{ action: 'skip', target: 'a', argument: '0' }, /^argument: is not a whole number of 1 or more/],
    [{ action: 'pause', target: 'a', now: '1' }, /^now: not a field of pause/],
    [{ verdict: 'approve', of: 'run:1', now: '1' }, /^now: not a field of approve/],
    [{ action: 'start', target: 'half', argument: '1', x: 'y' }, /target: .*; argument: .*; x: not a field of start/],
  ];
  for (const [fields, message] of wrong) {
    const response = await post(web.url, fields);
    const body = (await response.json()) as { error: { code: string; message: string; hint: string } };
    expect(response.status, JSON.stringify(fields)).toBe(400);
    expect(body.error).toMatchObject({ code: 'USAGE', hint: expect.stringContaining('Go back') as string });
    expect(body.error.message, JSON.stringify(fields)).toMatch(message);
  }
  expect(reading(db).actions.list(1)).toEqual([]);
});

it('a form is rejected if it is too long, or not a form', async () => {
  const { db, web } = await serveFilled({ items: 1 });
  const long = await post(web.url, { action: 'pause', target: 'x'.repeat(20_000) });
  expect([long.status, await long.text()]).toEqual([413, expect.stringContaining('body is too large')]);
  const headers = { origin: web.url, 'content-type': 'text/plain' };
  const text = await fetch(`${web.url}/actions`, { method: 'POST', body: 'action=pause', headers });
  expect(text.status).toBe(400);
  expect(reading(db).actions.list(1)).toEqual([]);
});

it('a form is answered with the reason if the mirror cannot be written', async () => {
  const app = createApp(createLog('silent'), 'a hint');
  app.post('/actions', async () => {
    throw new CatchwordError('MIRROR_BUSY', 'another process keeps the mirror locked', { hint: 'Find it.' });
  });
  const response = await app.inject({ method: 'POST', url: '/actions' });
  expect(response.statusCode).toBe(503);
  expect(response.json()).toEqual({
    error: { code: 'MIRROR_BUSY', message: 'another process keeps the mirror locked', hint: 'Find it.' },
  });
});

it('one form decides about several runs and sinks, names what is not possible any more, and goes on with the others', async () => {
  const { store, html, web } = await serveHarness();
  const forecast = { has: 300, matching: 1, created: 0, updated: 0, removed: 299, failed: 0 };
  writeUnder(store.relayLease, Date.now(), ({ sinks }) => {
    for (const name of ['a', 'b', 'c']) {
      sinks.configure({ name, kind: 'webhook', address: name, identity: name });
      const held = { why: 'view', where: '0', fields: null, forecast, isApproved: false } as const;
      sinks.hold(sinks.get(name)?.id ?? 0, held);
    }
  });
  const before = await html('/actions');
  expect(before).toMatch(/<strong>Sink a<\/strong>.*remove 299 of the 300.*Approve what is ticked/s);
  expect(await html('/')).toContain('href="/actions#several"');
  const problems = (await getJson<{ problems: string[] }>(`${web.url}/api/status`)).problems.length;
  expect(problems).toBeGreaterThanOrEqual(3);
  expect(before).toContain(`<title>(${problems}) Decisions – catchword</title>`);

  const tick = (name: string, more = 0) => {
    const row = store.sinks.get(name);
    return ['of', `sink:${name}:${row === undefined ? 0 : holdNumber(row) + more}`] as [string, string];
  };
  const wrong: [[string, string][], string][] = [
    [[['verdict', 'approve']], 'of: nothing is ticked'],
    [[['verdict', 'maybe'], tick('a')], 'verdict: is neither approve nor reject'],
    [[['verdict', 'reject'], ['of', 'run:1'], tick('a')], 'of: sink a cannot be rejected'],
    [[['verdict', 'approve'], tick('a'), ['of', 'all']], 'of.1: is neither a run nor a sink'],
  ];
  for (const [fields, message] of wrong)
    expect(await (await post(web.url, fields)).json(), message).toMatchObject({ error: { code: 'USAGE', message } });
  expect(store.actions.list(1)).toEqual([]);

  // What holds b is not what the person saw, and the run was decided meanwhile.
  const ticked = [tick('a'), tick('b', 1), ['of', 'run:1'] as [string, string], tick('c')];
  const response = await post(web.url, [['verdict', 'approve'], ...ticked]);
  expect([response.status, response.headers.get('location')]).toEqual([303, '/runs/2?all#decision-4']);
  expect(store.actions.list(9).map(({ action, target, state }) => [action, target, state])).toEqual([
    ['release', 'c', 'done'],
    ['approve', '1', 'failed'],
    ['release', 'b', 'failed'],
    ['release', 'a', 'done'],
  ]);
  const after = await html('/actions');
  expect(after).toMatch(/<strong>Sink b<\/strong>/);
  expect(after).not.toMatch(/<strong>Sink [ac]<\/strong>/);
  expect(after).toMatch(/approve the removals of run 1.*run 1 .*let sink b go on.*failed.*let sink a go on.*done/s);
});

it('a form leads back to the page of this server that it was on, where the decision is listed', async () => {
  const { web } = await serveFilled({ items: 1 });
  const backs: [string | undefined, string][] = [
    [`${web.url}/sinks/shop?parked=1#top`, '/sinks/shop?parked=1'],
    [`${web.url}/`, '/'],
    ['https://elsewhere.example/sinks', '/actions'],
    [`${web.url}//elsewhere.example/`, '/actions'],
    [`${web.url}/\\elsewhere.example/`, '/actions'],
    ['about:client', '/actions'],
    ['', '/actions'],
  ];
  for (const [at, [referer = '', path]] of backs.entries()) {
    const response = await post(web.url, { action: 'pause', target: 'shop' }, { referer });
    expect(response.status, referer).toBe(303);
    expect(response.headers.get('location'), referer).toBe(`${path}#decision-${at + 1}`);
  }
});

it('the list of decisions shows who decided what and when, and what came of it, 50 on a page, and escapes everything', async () => {
  const { db, web } = await serveFilled({ items: 1 });
  const writer = openStore(db);
  const row: NewAction = {
    at: Date.parse('2026-11-20T10:00:00Z'),
    who: '<b>eve</b> at 127.0.0.1',
    action: 'pause',
    target: 'shop',
    argument: null,
    state: 'failed',
    outcome: '<script>alert(1)</script>',
    endedAt: 1,
  };
  writer.request(({ actions }) => {
    for (let number = 0; number < 120; number++) actions.add(row);
    actions.add({
      ...row,
      action: 'replay',
      argument: 7,
      state: 'done',
      outcome: 'shop gets every change from 7 on',
    });
    actions.add({ ...row, action: 'approve', target: '2', state: 'asked', outcome: null, endedAt: null });
    actions.add({ ...row, action: 'from a later version', target: 'x' });
  });
  writer.close();
  const { text } = await get(`${web.url}/actions`);
  expect(text.match(/<tr id="decision-/g)).toHaveLength(50);
  expect(text).toContain('&lt;b>eve&lt;/b> at 127.0.0.1');
  expect(text).not.toMatch(/<b>eve|<script>alert/);
  expect(text).toContain('2026-11-20 10:00:00 UTC');
  expect(text).toContain('<a href="/sinks/shop"><bdi>replay sink shop from change 7</bdi></a>');
  expect(text).toContain('<a href="/runs/2"><bdi>approve the removals of run 2</bdi></a>');
  expect(text).toContain('waits for the daemon, which is not running');
  const second = (await get(`${web.url}/actions?before=74`)).text;
  expect(second).toContain('id="decision-73"');
  expect(second).toContain('href="/actions?before=24"');
  expect(second).toContain('Newest decisions');
  const last = (await get(`${web.url}/actions?before=24`)).text;
  expect(last.match(/<tr id="decision-/g)).toHaveLength(23);
  expect(last).not.toContain('Older decisions');
  expect((await get(`${web.url}/actions?before=x`)).status).toBe(400);
});

it('the list of decisions is empty at first', async () => {
  const { web } = await serve(emptyMirror());
  expect((await get(`${web.url}/actions`)).text).toContain('No decision yet.');
});
