// @module-tag service
import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemClock } from '@catchword/base/clock';
import { jsonReply } from '@catchword/sandbox/http/reply';
import { SANDBOX_DEFAULTS, type SandboxOptions } from '@catchword/sandbox/options';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { openState } from '@catchword/sandbox/sandbox-state';
import { serveHttp } from '@catchword/testing/listen';
import { firstItem, get, getPage, sandboxFor } from '@catchword/testing/sandbox-for';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { NEW, put, send } from './asset-requests.ts';
import { control, exchange } from './exchange.ts';

const START = Date.UTC(2030, 0, 10, 12);
const HOUR = 3_600_000;

function setting(more: Partial<SandboxOptions> = {}) {
  const time = { now: START };
  const db = join(temporaryDirectory(), 'sandbox.ndjson');
  const options = { items: 50, db, clock: { ...systemClock, now: () => time.now }, ...more };
  return { time, db, options };
}

/** The statuses of reading assets. */
function statuses(sandbox: Sandbox, ...vbids: readonly string[]) {
  return Promise.all(vbids.map(async (vbid) => (await send(sandbox, 'GET', `/vital_books/${vbid}`)).status));
}

/** Reads everything. */
async function all(sandbox: Sandbox, vbids: readonly string[]) {
  const paths = [
    '/v4/products?include_details=metadata,identifiers',
    '/v4/products?from=2029-01-01',
    '/_sandbox/truth',
    '/v4/packages/SHELF-1',
    '/v3/licenses.xml',
    '/v3/users.xml/kiosk-1',
    ...vbids.map((vbid) => `/vital_books/${vbid}`),
  ];
  return Promise.all(paths.map(async (path) => [path, (await get(sandbox, path)).bytes.toString()]));
}

it('the journal restores assets, packages, users, licenses and control changes after a restart', async () => {
  const { time, db, options } = setting();
  const first = await sandboxFor(options);
  const own = await firstItem(first);
  const vbids = ['L-1', own.vbid];
  await put(first, 'L-1', { ...NEW, identifiers: { e_isbn_13: ['9780306406157'] }, on_sale_date: '2030-01-10' });
  time.now += HOUR;
  first.catalog.mutate({ update: 5, remove: 6, create: 7 });
  vbids.push((await send(first, 'POST', '/vital_books', NEW)).body.vbid);
  time.now += HOUR;
  await put(first, own.vbid, { title: 'Renamed “\u2028', off_sale_date: '2030-01-20' });
  await exchange(first, 'POST /v4/packages', JSON.stringify({ sku: 'SHELF-1', name: 'All', products: ['L-1'] }));
  const user = '<user><reference>kiosk-1</reference><first-name>K</first-name><last-name>One</last-name></user>';
  expect((await exchange(first, 'POST /v3/users.xml', user)).text).toContain('kiosk-1');
  await control(first, 'grant', { reference: 'sandbox-reader', sku: 'L-1' });
  await control(first, 'mutate', { update: 3, remove: 2 });
  await put(first, 'L-1', { edition: 'wrong' });
  const before = await all(first, vbids);
  expect(Object.fromEntries(before)['/v3/users.xml/kiosk-1']).toContain('<reference>kiosk-1');
  expect(Object.fromEntries(before)['/v3/licenses.xml']).toContain('sku="L-1"');
  await first.stop();

  const second = await sandboxFor(options);
  expect(await all(second, vbids)).toEqual(before);
  expect(statSync(db).mode & 0o777).toBe(0o600);
  // Both continue in the same way.
  time.now = START + 30 * 24 * HOUR;
  const [third] = [await sandboxFor({ ...options, db: copyOf(db) })];
  for (const sandbox of [second, third]) sandbox.catalog.mutate({ create: 3, remove: 3 });
  expect(await all(third, vbids)).toEqual(await all(second, vbids));
  expect((await getPage(third)).items.map(({ vbid }) => vbid)).not.toContain(own.vbid);
});

it('the journal cuts off an unfinished line and continues', async () => {
  const { db, options } = setting();
  const first = await sandboxFor(options);
  await put(first, 'L-1', NEW);
  await put(first, 'L-2', NEW);
  await first.stop();
  truncateSync(db, statSync(db).size - 7);
  const second = await sandboxFor(options);
  expect(await statuses(second, 'L-2')).toEqual([404]);
  await put(second, 'L-3', NEW);
  await second.stop();
  const third = await sandboxFor(options);
  expect(await statuses(third, 'L-1', 'L-2', 'L-3')).toEqual([200, 404, 200]);
});

it.each([
  [{ seed: 2 }, /begun with seed 1, not 2/],
  [{ items: 51 }, /begun with items 50, not 51/],
  [{ users: 7 }, /begun with users 1000, not 7/],
])('a journal of another beginning is rejected: %j', async (other, message) => {
  const { options } = setting();
  await (await startSandbox(options)).stop();
  await expect(startSandbox({ ...options, ...other })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(message),
    hint: expect.any(String),
  });
});

it('other files, damaged journals and missing folders are rejected and not changed', async () => {
  const { db, options } = setting();
  const refused = { code: 'CONFIG_INVALID', hint: expect.any(String) };
  writeFileSync(db, 'a letter\n');
  await expect(startSandbox(options)).rejects.toMatchObject(refused);
  expect(readFileSync(db, 'utf8')).toBe('a letter\n');
  writeFileSync(db, 'a letter without an end');
  await expect(startSandbox(options)).rejects.toMatchObject(refused);
  expect(readFileSync(db, 'utf8')).toBe('a letter without an end');
  const damaged = setting();
  await (await startSandbox(damaged.options)).stop();
  appendFileSync(damaged.db, '{"at":1,"kind":"what"}\n');
  await expect(startSandbox(damaged.options)).rejects.toMatchObject({ ...refused, message: /line 2 is damaged/ });
  await expect(startSandbox({ ...options, db: join(db, 'x') })).rejects.toMatchObject(refused);
});

it('the journal does not record reads', async () => {
  const { db, options } = setting();
  const sandbox = await sandboxFor(options);
  const begun = readFileSync(db, 'utf8');
  await getPage(sandbox);
  const asked = '<credentials><credential reference="user-1"/></credentials>';
  await exchange(sandbox, 'POST /v3/credentials.xml', asked);
  expect(readFileSync(db, 'utf8')).toBe(begun);
});

it('the journal replays what was accepted, whatever --allow-private-callbacks says now', async () => {
  const { options } = setting({ ingestionMs: HOUR });
  const wait = { ...NEW, url: 'https://files.example.org/a.pdf', callback_url: 'http://127.0.0.1:9/' };
  for (const [vbid, allowPrivateCallbacks] of [
    ['L-1', true],
    ['L-2', false],
  ] as const) {
    const sandbox = await sandboxFor({ ...options, allowPrivateCallbacks });
    expect((await put(sandbox, vbid, wait)).status).toBe(allowPrivateCallbacks ? 200 : 422);
    await sandbox.stop();
  }
  for (const allowPrivateCallbacks of [true, false]) {
    const sandbox = await sandboxFor({ ...options, allowPrivateCallbacks });
    expect(await statuses(sandbox, 'L-1', 'L-2')).toEqual([200, 404]);
    await sandbox.stop();
  }
});

// @rule 1-2, 6-2
it('6: the journal makes a pending call after a restart, and no other', async () => {
  const called: string[] = [];
  const address = await serveHttp((request, response) => {
    called.push(request.url ?? '');
    request.resume();
    response.end();
  });
  const { time, db, options } = setting({ allowPrivateCallbacks: true, ingestionMs: 1 });
  const wait = { callback_url: `${address}/made`, url: 'https://files.example.org/a.pdf' };
  const first = await sandboxFor(options);
  await put(first, 'L-1', { ...NEW, ...wait });
  await expect.poll(() => readFileSync(db, 'utf8')).toContain('"called"');
  await first.stop();
  const slow = await sandboxFor({ ...options, ingestionMs: HOUR });
  await put(slow, 'L-2', { ...NEW, ...wait, callback_url: `${address}/left` });
  await slow.stop();
  time.now += 2 * HOUR;
  const last = await sandboxFor({ ...options, ingestionMs: HOUR });
  await expect.poll(() => called).toEqual(['/made', '/left']);
  expect((await send(last, 'GET', '/vital_books/L-2')).body.build).toMatchObject({ status: 'approved' });
});

it('the journal records nothing of a rejected request', async () => {
  const { db, options } = setting();
  const sandbox = await sandboxFor(options);
  await put(sandbox, 'L-1', NEW);
  const before = readFileSync(db, 'utf8');
  expect((await put(sandbox, 'L-2', { edition: 'wrong' })).status).toBe(422);
  expect((await exchange(sandbox, 'POST /v4/packages', 'no JSON')).status).toBe(422);
  expect((await exchange(sandbox, 'POST /v3/users', '<user/>')).status).toBe(422);
  expect((await exchange(sandbox, 'POST /_sandbox/mutate', '{"create":-1}')).status).toBe(422);
  expect((await exchange(sandbox, 'POST /_sandbox/expire', '{"reference":"unknown"}')).status).toBe(404);
  expect(readFileSync(db, 'utf8')).toBe(before);
  await put(sandbox, 'L-3', NEW);
  expect(readFileSync(db, 'utf8').slice(before.length)).toMatch(/^\{[^\n]*L-3[^\n]*\}\n$/);
});

it('the sandbox removes a change from the journal if it throws', () => {
  const { db, options } = setting();
  const { record, close } = openState({ ...SANDBOX_DEFAULTS, ...options }, AbortSignal.abort());
  onTestFinished(close);
  const change = { kind: 'control', path: '/_sandbox/mutate', body: {} } as const;
  record(change, () => jsonReply({}));
  const before = readFileSync(db, 'utf8');
  const fail = () => {
    throw new RangeError('Maximum call stack size exceeded');
  };
  expect(() => record(change, fail)).toThrow(RangeError);
  expect(readFileSync(db, 'utf8')).toBe(before);
});

it('a journal is rejected while another sandbox uses it', async () => {
  const { db, options } = setting();
  const first = await sandboxFor(options);
  const refused = { code: 'CONFIG_INVALID', message: `--db ${db}: is in use` };
  await expect(startSandbox(options)).rejects.toMatchObject(refused);
  await put(first, 'L-1', NEW);
  await first.stop();
  expect(readdirSync(dirname(db))).toEqual([basename(db)]);
  const next = await sandboxFor(options);
  expect(await statuses(next, 'L-1')).toEqual([200]);
});

it('a journal that cannot be locked is rejected, and the lock is named', async () => {
  const { db, options } = setting();
  mkdirSync(`${db}.lock`);
  await expect(startSandbox(options)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining(`${db}.lock cannot be locked`),
    hint: expect.stringContaining('Make its folder writable'),
  });
});

function copyOf(db: string): string {
  const copy = join(temporaryDirectory(), 'copy.ndjson');
  writeFileSync(copy, readFileSync(db));
  return copy;
}
