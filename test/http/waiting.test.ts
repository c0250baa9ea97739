// @module-tag slow
import { once } from 'node:events';
import { execute } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { filled } from '../support/place.ts';
import { serve, serveFilled } from './place.ts';
import { get, openReader, seqOf, stall, upTo } from './reader.ts';
import { type Watched, watchResponses } from './watch.ts';

/** So long that a test that waits for it times out. */
const HOURS = 3_600_000;
const PATIENT = { slowReaderMs: HOURS, graceMs: HOURS, stopMs: 20 };
const PAGE = '/api/changes?limit=10000';
const STREAM = '/api/changes/stream';

/** Waits until as many responses have written all that their sockets take. */
async function stalled(watched: readonly Watched[], count: number): Promise<void> {
  const full = () => watched.filter(({ response }) => response.writableNeedDrain).length;
  await expect.poll(full, { timeout: 30_000 }).toBe(count);
}

function waitingBytes(watched: readonly Watched[]): number {
  return watched.reduce((sum, { response }) => sum + (response.closed ? 0 : response.writableLength), 0);
}

it('a page of changes is read only as fast as it is taken', async () => {
  const { web } = await serveFilled({ items: 10_000, details: true }, { limits: PATIENT });
  const watched = watchResponses();
  for (let reader = 0; reader < 30; reader++) await stall(web.url, PAGE);
  await stalled(watched, 30);
  // A page is 8 MB; what waits is a piece and what a socket holds.
  for (const { mostWaiting } of watched) expect(mostWaiting).toBeLessThan(200_000);
  expect(waitingBytes(watched)).toBeLessThan(30 * 200_000);
  // Others are served meanwhile.
  const { text } = await get(web.url + PAGE);
  expect((JSON.parse(text) as { events: unknown[] }).events.length).toBeGreaterThan(1_000);
});

it('a page of changes breaks off if its client takes nothing for too long', async () => {
  const { web } = await serveFilled({ items: 10_000, details: true }, { limits: { slowReaderMs: 50 } });
  const watched = watchResponses();
  const socket = await stall(web.url, PAGE);
  await expect.poll(() => watched[0]?.response.socket?.destroyed ?? watched[0]?.response.closed).toBe(true);
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  socket.resume();
  await once(socket, 'close');
  // The client can tell: the last chunk is missing.
  expect(received.startsWith('HTTP/1.1 200 OK')).toBe(true);
  expect(received.endsWith('0\r\n\r\n')).toBe(false);
});

it('what waits for all readers together is bounded: the slowest are ended, and who takes everything gets everything', async () => {
  const { db } = await filled({ items: 20_000, details: true });
  const watched = watchResponses();
  const bound = 1_000_000;
  const { web, log, logged } = await serve(db, {
    limits: { ...PATIENT, maxWaitingBytes: bound, checkMs: 20 },
  });
  const pages = 10;
  for (let reader = 0; reader < pages; reader++) {
    await stall(web.url, STREAM);
    await stall(web.url, PAGE);
  }
  const taker = await openReader(web.url + STREAM);
  const events = await taker.events(20_000);
  expect(events.map(seqOf)).toEqual(upTo(20_000));
  expect(await logged('too much data waits for slow readers')).toMatchObject({ waitingBytes: expect.any(Number) });
  await expect.poll(() => waitingBytes(watched), { timeout: 30_000 }).toBeLessThanOrEqual(bound);
  const codes = log.filter(({ msg }) => msg === 'stream ended').map(({ code }) => code);
  expect(codes.length).toBeGreaterThan(0);
  expect(new Set(codes)).toEqual(new Set(['SLOW_READER']));
  // No more than had to be.
  expect(watched.filter(({ response }) => response.writableNeedDrain).length).toBeGreaterThan(0);
});

it('the bound is kept by ending the reader that has taken nothing for longest', async () => {
  const { db } = await filled({ items: 20_000, details: true });
  const watched = watchResponses();
  const { web, logged } = await serve(db, { limits: { ...PATIENT, maxWaitingBytes: 190_000, checkMs: 20 } });
  // A response may keep a batch and a piece waiting: one fits, two do not.
  const first = await stall(web.url, STREAM);
  await stalled(watched, 1);
  const second = await openReader(web.url + STREAM);
  expect(await logged('stream ended')).toMatchObject({ code: 'SLOW_READER' });
  expect(watched[0]?.response.writableEnded).toBe(true);
  expect(watched[1]?.response.writableEnded).toBe(false);
  const events = await second.events(20_000);
  expect(events.map(seqOf)).toEqual(upTo(20_000));
  first.destroy();
});

it('a server above the bound refuses further large answers, with the time to come back, and serves small ones', async () => {
  const { db } = await filled({ items: 10_000, details: true });
  execute(db, `UPDATE products SET body = json_insert(body, '$.x', hex(zeroblob(100000))) WHERE id = 9000`);
  const { web } = await serve(db, { limits: { ...PATIENT, maxWaitingBytes: 50_000, checkMs: HOURS } });
  const vbid = /"vbid":"([^"]+)"/.exec((await get(`${web.url}/api/changes?after=8999&limit=1`)).text)?.[1];
  const product = `${web.url}/api/products/${vbid}`;
  expect((await get(product)).text.length).toBeGreaterThan(200_000);
  const watched = watchResponses();
  const stream = await stall(web.url, STREAM);
  await stalled(watched, 1);
  for (const url of [web.url + PAGE, web.url + STREAM, product]) {
    const refused = await get(url);
    expect(refused, url).toMatchObject({ status: 503, headers: { 'retry-after': '10' } });
    expect(refused.headers['content-type']).toMatch(/^application\/json/);
    expect(JSON.parse(refused.text)).toMatchObject({
      error: { code: 'OVERLOADED', hint: expect.any(String) as string },
    });
  }
  // Any other status would end an EventSource for good.
  for (const path of [STREAM, '/live/']) {
    const told = await get(web.url + path, { headers: { accept: 'text/event-stream' } });
    expect(told.status).toBe(200);
    expect(told.text).toMatch(/^retry: [12]\d{4}\nevent: end\ndata: \{"code":"OVERLOADED"/);
  }
  for (const path of ['/healthz', '/api/status', '/metrics']) expect((await get(web.url + path)).status).toBe(200);
  stream.destroy();
  await expect.poll(async () => (await get(web.url + PAGE)).status).toBe(200);
});
