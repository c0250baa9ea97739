import { expect, it } from 'vitest';
import { CatchwordError } from '../../src/base/errors.ts';
import { createLog } from '../../src/base/log.ts';
import { createApp } from '../../src/http/app.ts';
import type { NewAction } from '../../src/store/rows/decision-rows.ts';
import { openStore } from '../../src/store/store.ts';
import { post, reading } from '../operate/daemon.ts';
import { emptyMirror, serve, serveFilled } from './place.ts';
import { get } from './reader.ts';

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
  const long = await post(web.url, { action: 'pause', target: 'x'.repeat(10_000) });
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
