// @module-tag service
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { systemClock } from '@catchword/base/clock';
import { callBack, createIngestions } from '@catchword/sandbox/assets/ingestion';
import type { Asset } from '@catchword/sandbox/assets/kept-asset';
import { serveHttp } from '@catchword/testing/listen';
import { itWith, sandboxFor } from '@catchword/testing/sandbox-for';
import { expect, onTestFinished } from 'vitest';
import { NEW, put, send } from './asset-requests.ts';

const QUICK = { items: 0, ingestionMs: 1, callbackRetryMs: 1, allowPrivateCallbacks: true };
const it = itWith(QUICK);

interface Called {
  readonly method: string | undefined;
  readonly type: string | undefined;
  readonly body: unknown;
}

/** Replies to calls with these statuses; the last one is repeated. */
async function listener(...statuses: readonly number[]) {
  const calls: Called[] = [];
  const url = await serveHttp((request: IncomingMessage, response) => {
    void text(request).then((body) => {
      calls.push({ method: request.method, type: request.headers['content-type'], body: JSON.parse(body) });
      response.writeHead(statuses[calls.length - 1] ?? statuses.at(-1) ?? 204).end();
    });
  });
  return { url: `${url}/done`, calls };
}

/** Resolves with the first warning that begins like this; there may be others. */
function warning(beginning: string): Promise<string> {
  return new Promise((resolve) => {
    const onWarning = ({ message }: Error): void => {
      if (message.startsWith(beginning)) resolve(message);
    };
    process.on('warning', onWarning);
    onTestFinished(() => {
      process.off('warning', onWarning);
    });
  });
}

const FILE = 'https://files.example.org/tides.epub';

// @rule 1-2, 2.1-39, 2.2-9..10, 3-1, 4.1-10
it('4.1 rule 2: the sandbox ingests the file of url over time, as build and asset_status show', async () => {
  const time = { now: Date.UTC(2030, 0, 1) };
  const clock = { ...systemClock, now: () => time.now };
  const sandbox = await sandboxFor({ items: 0, ingestionMs: 5000, clock });
  const begun = await put(sandbox, 'L-1', { ...NEW, url: FILE });
  expect(begun.body).toMatchObject({
    build: { available: false, status: 'processing' },
    asset_status: { vbk: 'processing' },
  });
  time.now += 5000;
  expect((await send(sandbox, 'GET', '/vital_books/L-1')).body).toMatchObject({
    build: { available: true, source: 'sandbox', status: 'approved' },
    asset_status: { vbk: 'approved' },
    book_format: { name: 'ePub', value: 'epub', dash2epub: false },
  });
  await put(sandbox, 'L-1', { url: 'https://files.example.org/tides.mobi' });
  time.now += 5000;
  expect((await send(sandbox, 'GET', '/vital_books/L-1')).body.build).toMatchObject({
    available: false,
    status: 'failed',
  });
});

// @rule 2.1-38, 4.1-10, 6-1
it('6: the sandbox calls callback_url at the end, with the state of the asset', async ({ sandbox }) => {
  const { url, calls } = await listener(204);
  await put(sandbox, 'L-1', { ...NEW, url: FILE, callback_url: url });
  await expect
    .poll(() => calls)
    .toEqual([{ method: 'POST', type: 'application/json', body: { vbid: 'L-1', status: 'approved' } }]);
  await put(sandbox, 'L-2', { ...NEW, url: 'https://files.example.org/a.doc', callback_url: url });
  await expect.poll(() => calls[1]?.body).toEqual({ vbid: 'L-2', status: 'failed' });
});

// @rule 6-2
it('6: the sandbox sends no other event: does not call for an update without url', async ({ sandbox }) => {
  const { url, calls } = await listener(204);
  await put(sandbox, 'L-1', { ...NEW, url: FILE, callback_url: url });
  await expect.poll(() => calls.length).toBe(1);
  for (const update of [{ title: 'Renamed' }, { callback_url: url }]) {
    expect((await put(sandbox, 'L-1', update)).status).toBe(200);
  }
  expect((await put(sandbox, 'L-2', { ...NEW, callback_url: url })).status).toBe(200);
  // Earlier calls would have been made before these.
  for (const vbid of ['L-3', 'L-4']) {
    const count = calls.length;
    await put(sandbox, vbid, { ...NEW, url: FILE, callback_url: url });
    await expect.poll(() => calls.length).toBeGreaterThan(count);
  }
  expect(calls.map(({ body }) => body)).toEqual(['L-1', 'L-3', 'L-4'].map((vbid) => ({ vbid, status: 'approved' })));
});

// @rule 6-1
it('6: the sandbox calls a failing address up to four times', async ({ sandbox }) => {
  const recovering = await listener(500, 503, 200);
  const broken = await listener(500);
  await put(sandbox, 'L-1', { ...NEW, url: FILE, callback_url: recovering.url });
  await put(sandbox, 'L-2', { ...NEW, url: FILE, callback_url: broken.url });
  await expect.poll(() => [recovering.calls.length, broken.calls.length]).toEqual([3, 4]);
  const last = await listener(200);
  await put(sandbox, 'L-3', { ...NEW, url: FILE, callback_url: last.url });
  await expect.poll(() => last.calls.length).toBe(1);
  expect([recovering.calls.length, broken.calls.length]).toEqual([3, 4]);
});

// @rule 6-1
it.each([
  'http://127.0.0.1/x',
  'http://localhost:8080/',
  'http://a.localhost./',
  'http://[::1]/',
  'http://10.0.0.7/',
  'http://169.254.169.254/latest',
  'http://[::ffff:192.168.1.1]/',
  'http://2130706433/',
])('6: the sandbox rejects a private address: %s', async (address) => {
  const sandbox = await sandboxFor({ items: 0 });
  const reply = await put(sandbox, 'L-1', { ...NEW, url: FILE, callback_url: address });
  expect([reply.status, reply.errors]).toEqual([422, [expect.stringMatching(/^callback_url: is a private address/)]]);
  expect((await send(sandbox, 'GET', '/vital_books/L-1')).status).toBe(404);
});

it('6: the sandbox does not call a name with a private address', async () => {
  const { url, calls } = await listener(200);
  const { signal } = new AbortController();
  for (const address of [url, url.replace('127.0.0.1', 'localhost')]) {
    expect(await callBack(address, '{}', false, signal)).toBe(false);
  }
  expect(calls).toEqual([]);
  expect(await callBack(url, '{}', true, signal)).toBe(true);
});

it('6: the sandbox warns if the end of a call cannot be journaled', async () => {
  const { url } = await listener(200);
  const done = () => {
    throw new Error('the disk is full');
  };
  const { signal } = new AbortController();
  const ingestions = createIngestions({ ...QUICK, clock: systemClock }, signal, done);
  const ingestion = { url: FILE, callbackUrl: url, startedAt: 0, endsAt: 1 };
  const warned = warning('callback_url');
  ingestions.start();
  ingestions.announce({ vbid: 'L-1', generated: false, ingestion } as Asset);
  await ingestions.settled();
  expect(await warned).toBe('callback_url of L-1: the disk is full');
});

it('the sandbox makes no calls after it was stopped', async () => {
  let waiting = 0;
  const sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    waiting++;
    await systemClock.sleep(ms, signal).finally(() => waiting--);
  };
  const sandbox = await sandboxFor({ ...QUICK, ingestionMs: 3_600_000, clock: { ...systemClock, sleep } });
  const { url, calls } = await listener(200);
  await put(sandbox, 'L-1', { ...NEW, url: FILE, callback_url: url });
  expect(waiting).toBe(1);
  await sandbox.stop();
  // A call that neither waits nor was made is never made.
  expect(waiting).toBe(0);
  expect(calls).toEqual([]);
});
