// @module-tag slow
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { type Clock, systemClock } from '@catchword/base/clock';
import { serveHttp } from '@catchword/testing/listen';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { createApp } from '../../src/http/app.ts';
import { type EndCode, sendPieces, writeStream } from '../../src/http/response-writer.ts';
import { addWaiting } from '../../src/http/slow-readers.ts';
import { changeMessages } from '../../src/http/sse/sse-route.ts';
import { STREAM_LIMITS } from '../../src/http/stream-limits.ts';
import { filled } from '../support/place.ts';
import { serve } from './place.ts';
import { isEvent, openReader, seqOf, upTo } from './reader.ts';
import { watchResponses } from './watch.ts';

/** Far below what the streams below send, and far above a socket's high-water mark and one piece. */
const FEW_BYTES = 300_000;

/** Pauses in steps: if the process stands still, a reader has its turn before its time is over. */
const stepping: Clock = {
  ...systemClock,
  sleep: async (ms, signal) => {
    for (let step = 0; step < 20; step++) await systemClock.sleep(ms / 20, signal);
  },
};

it('a reader that reads nothing is disconnected with a reason, and resumes without a gap', async () => {
  const { db } = await filled({ items: 20_000, details: true });
  const watched = watchResponses();
  const hasty = await serve(db, { limits: { slowReaderMs: 100, graceMs: 3_600_000 } });
  const reader = await openReader(`${hasty.web.url}/api/changes/stream`);
  // The server has written its last message, and waits for the reader.
  await expect.poll(() => watched[0]?.response.writableEnded).toBe(true);
  expect(watched[0]?.mostWaiting).toBeGreaterThan(0);
  expect(watched[0]?.mostWaiting).toBeLessThan(FEW_BYTES);
  const blocks = await reader.rest();
  const end = blocks.at(-1);
  expect(end).toMatchObject({ event: 'end' });
  expect(JSON.parse(end?.data ?? '')).toMatchObject({ code: 'SLOW_READER' });
  const seen = blocks.filter(isEvent).map(seqOf);
  expect(seen).toEqual(upTo(seen.length));
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.length).toBeLessThan(20_000);
  expect(await hasty.logged('stream ended')).toMatchObject({ code: 'SLOW_READER' });

  const patient = await serve(db);
  const headers = { 'Last-Event-ID': String(seen.length) };
  const again = await openReader(`${patient.web.url}/api/changes/stream`, headers);
  const rest = await again.events(20_000 - seen.length);
  expect(rest.map(seqOf)).toEqual(upTo(20_000, seen.length + 1));
});

it('a reader that reads nothing is cut off if it does not read the reason, and other readers do not notice', async () => {
  const { db } = await filled({ items: 20_000, details: true });
  const watched = watchResponses();
  const { web, logged } = await serve(db, { limits: { slowReaderMs: 5_000, graceMs: 20 }, clock: stepping });
  const reader = await openReader(`${web.url}/api/changes/stream`);
  const other = await openReader(`${web.url}/api/changes/stream`);
  const events = await other.events(20_000);
  expect(events.map(seqOf)).toEqual(upTo(20_000));
  const [stalled, taken] = watched;
  if (stalled === undefined || taken === undefined) throw new Error('two streams were opened');
  expect(await logged('stream ended')).toMatchObject({ code: 'SLOW_READER', streams: 1 });
  await expect.poll(() => stalled.response.socket?.destroyed ?? true).toBe(true);
  expect(taken.response.writableEnded).toBe(false);
  for (const { mostWaiting } of watched) expect(mostWaiting).toBeLessThan(FEW_BYTES);
  // Written data arrives; the last message does not, because there was no room for it.
  const blocks = await reader.rest();
  const seen = blocks.filter(isEvent).map(seqOf);
  expect(seen).toEqual(upTo(seen.length));
  expect(seen.length).toBeLessThan(20_000);
  expect(blocks.filter(({ event }) => event === 'end')).toEqual([]);
});

/** Serves an endless log of events of one size, one a batch, to one reader at a time. */
async function endless(text: string, slowReaderMs: number) {
  const ending = new AbortController();
  const ended: EndCode[] = [];
  let batches = 0;
  const batch = async (seq: number) => {
    batches++;
    return { to: seq + 1, bytes: Buffer.from(`id: ${seq + 1}\ndata: ${text}\n\n`) };
  };
  const changes = { batch, polled: () => Promise.reject(new Error('the log has no end')) };
  const parts = {
    waiting: { watch: () => {}, turn: () => setImmediate() },
    clock: systemClock,
    limits: { ...STREAM_LIMITS, slowReaderMs, graceMs: 3_600_000 },
  };
  const url = await serveHttp((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' });
    const failed = (error: unknown): never => {
      throw error;
    };
    const start = () => ({ from: 0, block: 'id: 0\n\n', reset: null });
    const messages = { write: changeMessages(start, changes), failed };
    void writeStream(response, ending, parts, messages).then((code) => ended.push(code));
  });
  onTestFinished(() => ending.abort('SHUTDOWN'));
  return { url: `${url}/`, ending, ended, batches: () => batches };
}

it('a page is not read on if its client left while the first piece was read', async () => {
  let read = 0;
  const client = new AbortController();
  const log = pino({ level: 'silent' });
  const app = createApp(log, '');
  onTestFinished(() => app.close());
  const waiting = addWaiting(app, { clock: systemClock, log, limits: STREAM_LIMITS });
  const parts = { waiting, clock: systemClock, log, limits: STREAM_LIMITS };
  const sent = new Promise<void>((resolve) => {
    app.get('/', async ({ raw }, reply) => {
      async function* pieces() {
        const left = once(raw.socket, 'close');
        client.abort();
        await left;
        for (; read < 1_000; read++) yield 'x';
      }
      await sendPieces(reply, pieces(), parts).finally(resolve);
    });
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  await expect(fetch(url, { signal: client.signal })).rejects.toThrow(/abort/);
  await sent;
  expect(read).toBe(0);
});

it('the stream reads at most one batch ahead', async () => {
  // More than the sockets of both sides hold.
  const log = await endless(JSON.stringify('x'.repeat(20_000_000)), 100);
  const watched = watchResponses();
  const reader = await openReader(log.url);
  await expect.poll(() => watched[0]?.response.writableEnded).toBe(true);
  expect(log.batches()).toBe(1);
  // The current event is finished, and no other is started.
  expect(watched[0]?.mostWaiting).toBeLessThan(20_100_000);
  const blocks = await reader.rest();
  expect(blocks.at(-1)?.event).toBe('end');
  for (const { data } of blocks.filter(isEvent)) expect(data).toHaveLength(20_000_002);
});

it('the stream waits for a reader that reads a little now and then', async () => {
  const text = JSON.stringify('€'.repeat(100_000));
  const log = await endless(text, 60_000);
  const reader = await openReader(log.url);
  for (let number = 1; number <= 150; number++) {
    const [event] = await reader.events(1);
    // Larger than a piece, of characters larger than a byte.
    expect(event).toEqual({ id: String(number), data: text });
  }
  expect(log.ended).toEqual([]);
  reader.leave();
  await expect.poll(() => log.ended).toEqual(['GONE']);
});

it('the stream finishes the current event before the last message', async () => {
  const text = JSON.stringify('y'.repeat(1_000_000));
  const log = await endless(text, 60_000);
  const watched = watchResponses();
  const reader = await openReader(log.url);
  // In the middle of an event, the reader stops reading.
  await expect.poll(() => watched[0]?.response.writableNeedDrain).toBe(true);
  log.ending.abort('SHUTDOWN');
  const blocks = await reader.rest();
  const end = blocks.pop() ?? {};
  // A block of its own, not the tail of an event.
  expect(Object.keys(end)).toEqual(['retry', 'event', 'data']);
  expect(JSON.parse(end.data ?? '')).toMatchObject({ code: 'SHUTDOWN' });
  const events = blocks.filter(isEvent);
  expect(events.length).toBeGreaterThan(0);
  for (const { data } of events) expect(data === text).toBe(true);
  expect(log.ended).toEqual(['SHUTDOWN']);
});
