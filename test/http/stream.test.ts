import { randomUUID } from 'node:crypto';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { execute } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { load } from '../support/load.ts';
import { expectExactLog } from '../support/mirror.ts';
import { filled, place } from '../support/place.ts';
import { serve, serveFilled } from './place.ts';
import { type Block, get, getJson, isEvent, openReader, seqOf, upTo } from './reader.ts';
import { watchResponses } from './watch.ts';

function numbersOf(events: readonly Block[]): number[] {
  return events.map(seqOf);
}

async function eventIdOf(url: string, seq: number): Promise<string> {
  const { events } = await getJson<{ events: { id: string }[] }>(`${url}/api/changes?after=${seq - 1}&limit=1`);
  return events[0]?.id ?? '';
}

it('the stream sends every event in order, as the pages have it, then new ones', { tags: ['slow'] }, async () => {
  const { settings, sandbox, web } = await serveFilled({ items: 1_500, details: true }, { limits: { pollMs: 5 } });
  const reader = await openReader(`${web.url}/api/changes/stream`);
  expect(reader.response.headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  const events = await reader.events(1_500);
  expect(numbersOf(events)).toEqual(upTo(1_500));
  const page = (await get(`${web.url}/api/changes?limit=10000`)).text;
  expect(page).toBe(
    `{"events":[${events.map(({ data }) => data).join(',')}],"next":1500,"last":1500,"next_id":"${events.at(-1)?.id}"}`,
  );

  sandbox.catalog.mutate({ update: 4, create: 3, seed: 3 });
  await load(settings, 'delta');
  const newer = await reader.events(7);
  expect(numbersOf(newer)).toEqual(upTo(1_507, 1_501));
  for (const { id, data } of newer) {
    const event = JSON.parse(data ?? '') as Record<string, unknown>;
    expect(event).toMatchObject({ data: { cause: 'delta' } });
    expect(id).toBe(event.id);
  }
});

it('the stream resumes exactly where a reader was cut off, during a load', { tags: ['slow'] }, async () => {
  const { db, settings, sandbox } = await place({ items: 12_000, latencyMs: 5 }, { CATCHWORD_PER_PAGE: '100' });
  const { web } = await serve(db, { limits: { pollMs: 1 } });
  const loading = load(settings, 'full');
  const random = createRandom(7);
  const seen: number[] = [];
  let headers: Record<string, string> = {};
  let loadedAtFirst: number | undefined;
  while (seen.length < 12_000) {
    // As in a browser, the address still says 0: the header wins.
    const reader = await openReader(`${web.url}/api/changes/stream?after=0`, headers);
    const events = await reader.events(Math.min(12_000 - seen.length, 1 + Math.floor(random() * 900)));
    loadedAtFirst ??= sandbox.requests.length;
    reader.leave();
    seen.push(...numbersOf(events));
    headers = { 'Last-Event-ID': String(events.at(-1)?.id) };
  }
  expect((await loading).state).toBe('complete');
  expect(seen).toEqual(upTo(12_000));
  // The first events were read early in the load.
  expect(loadedAtFirst).toBeLessThan(100);
  expect(expectExactLog(db)).toBe(12_000);
});

it('the stream starts after a change, at the newest, or at the first', async () => {
  const { settings, sandbox, web, stream } = await serveFilled({ items: 50 }, { limits: { pollMs: 5 } });
  const [tail, latest, first, resumed, unnamed, named] = await Promise.all([
    openReader(`${stream}?after=48`),
    openReader(`${stream}?after=latest`),
    openReader(stream),
    openReader(`${stream}?after=latest`, { 'Last-Event-ID': '47' }),
    // By the standard, an empty id is not an id.
    openReader(`${stream}?after=49`, { 'Last-Event-ID': '' }),
    // The event's own id.
    openReader(stream, { 'Last-Event-ID': await eventIdOf(web.url, 48) }),
  ]);
  expect(numbersOf(await tail.events(2))).toEqual([49, 50]);
  expect(numbersOf(await first.events(50))).toEqual(upTo(50));
  expect(numbersOf(await resumed.events(3))).toEqual([48, 49, 50]);
  expect(numbersOf(await unnamed.events(1))).toEqual([50]);
  expect(numbersOf(await named.events(2))).toEqual([49, 50]);
  // A reader that is cut off before the first event must know its position.
  const started = await latest.until(() => true);
  expect(started).toMatchObject({ event: 'start', data: '{"after":50}' });
  expect(seqOf(started)).toBe(50);
  sandbox.catalog.mutate({ create: 2, seed: 1 });
  await load(settings, 'delta');
  expect(numbersOf(await latest.events(2))).toEqual([51, 52]);
  const back = await openReader(`${stream}?after=latest`, { 'Last-Event-ID': started.id ?? '' });
  expect(numbersOf(await back.events(2))).toEqual([51, 52]);
});

it.each([
  ['an id of another mirror', () => `${randomUUID()}_0123456789ab:3`, 'OTHER_MIRROR'],
  ['an id beyond the newest change', (own: string) => `${own}:11`, 'RESTORED'],
  ['a number beyond the newest change', () => '11', 'RESTORED'],
  ['an id of another era', (own: string) => `${own.replace(/_.*/, '_0123456789ab')}:3`, 'RESTORED'],
  ['an id without an era', (own: string) => `${own.replace(/_.*/, '')}:3`, 'RESTORED'],
  ['an id of a view', (own: string) => `${own}.0123456789ab:3`, 'OTHER_VIEW'],
  ['an id with a time behind it', (own: string) => `${own}:3:1700000000000`, 'UNKNOWN_PLACE'],
  ['an invalid id', () => 'x', 'UNKNOWN_PLACE'],
  ['an id that is too long', () => '9'.repeat(400), 'UNKNOWN_PLACE'],
])('the stream resets a reader with %s, and continues', async (_name, idOf, code) => {
  const { web, stream } = await serveFilled({ items: 10 });
  const own = (await eventIdOf(web.url, 1)).replace(/:1$/, '');
  const headers = { 'Last-Event-ID': idOf(own) };
  const reader = await openReader(stream, headers);
  expect(reader.response.statusCode).toBe(200);
  const reset = await reader.until(() => true);
  expect(reset).toMatchObject({ event: 'reset', id: `${own.replace(/_.*/, '')}:0` });
  expect(JSON.parse(reset.data ?? '')).toEqual({ code, message: expect.any(String) as string, after: 0, last: 10 });
  expect(numbersOf(await reader.events(10))).toEqual(upTo(10));
  // A reader that wants only new changes does not get the whole log.
  const latest = await openReader(`${stream}?after=latest`, headers);
  const began = await latest.until(() => true);
  expect(JSON.parse(began.data ?? '')).toMatchObject({ code, after: 10, last: 10 });
  expect(seqOf(began)).toBe(10);
});

it('the log continues a page after an id, and refuses one that is not in this log', async () => {
  const { web } = await serveFilled({ items: 10 });
  const pages = `${web.url}/api/changes`;
  const { next_id: id } = await getJson<{ next_id: string }>(`${pages}?limit=8`);
  const rest = await getJson<{ events: { sequence: string }[]; next_id: string }>(`${pages}?after=${id}`);
  expect(rest.events.map(({ sequence }) => Number(sequence))).toEqual([9, 10]);
  // Nothing new: the position stays.
  expect(await getJson(`${pages}?after=${rest.next_id}`)).toMatchObject({ events: [], next_id: rest.next_id });
  const refused = [
    [id.replace(/_.*:/, '_0123456789ab:'), 409, 'RESTORED'],
    [id.replace(/:8$/, ':11'), 409, 'RESTORED'],
    [id.replace(/^.*_/, `${randomUUID()}_`), 409, 'OTHER_MIRROR'],
    ['x', 400, 'USAGE'],
  ] as const;
  for (const [after, status, code] of refused) {
    const answer = await get(`${pages}?after=${after}`);
    expect(answer).toMatchObject({ status });
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code } });
  }
});

it('the stream accepts an id in the address, and from an EventSource also one that is not in the log', async () => {
  const { stream } = await serveFilled({ items: 10 });
  const first = await openReader(stream);
  const [event] = (await first.events(8)).slice(-1);
  const resumed = await openReader(`${stream}?after=${event?.id}`);
  expect(numbersOf(await resumed.events(2))).toEqual([9, 10]);
  const returned = await openReader(`${stream}?after=11`, { Accept: 'text/event-stream' });
  expect(await returned.until(() => true)).toMatchObject({ event: 'reset' });
});

it('the stream sends only heartbeats while nothing changes', async () => {
  const { web } = await serveFilled({ items: 3 }, { limits: { heartbeatMs: 20, pollMs: 5 } });
  const reader = await openReader(`${web.url}/api/changes/stream?after=3`);
  const blocks = [];
  for await (const block of reader.blocks()) if (blocks.push(block) === 4) break;
  expect(seqOf(blocks.shift() ?? {})).toBe(3);
  expect(blocks).toEqual(Array<Block>(3).fill({ '': 'still here' }));
});

it('the stream ends with a reason if the mirror cannot be read', async () => {
  const { db, web, logged } = await serveFilled({ items: 3 }, { limits: { pollMs: 5, heartbeatMs: 20 } });
  const reader = await openReader(`${web.url}/api/changes/stream`);
  await reader.events(3);
  execute(db, 'ALTER TABLE products RENAME TO lost');
  expect(await reader.endCode()).toBe('INTERNAL');
  expect(JSON.stringify(await logged('a stream could not read the mirror'))).toContain('no such table');
  expect(await logged('stream ended')).toMatchObject({ code: 'INTERNAL', streams: 0 });
  // A reader that reconnects then gets 200 as well: it would not retry after an error status.
  const back = await openReader(`${web.url}/api/changes/stream`, { 'Last-Event-ID': '2' });
  expect(back.response.statusCode).toBe(200);
  expect(await back.endCode()).toBe('INTERNAL');
});

it('the number of streams is limited, and a closed stream makes room for another', async () => {
  const { web, logged, stream } = await serveFilled({ items: 3 }, { limits: { maxStreams: 2 } });
  const readers = await Promise.all([openReader(stream), openReader(stream)]);
  await Promise.all(readers.map((reader) => reader.events(3)));
  const refused = await get(stream);
  expect(refused.status).toBe(503);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  expect(JSON.parse(refused.text)).toMatchObject({ error: { code: 'TOO_MANY_STREAMS' } });
  // Other requests are served.
  expect((await get(`${web.url}/api/changes`)).status).toBe(200);
  readers[0]?.leave();
  expect(await logged('stream ended')).toMatchObject({ code: 'GONE', streams: 1 });
  const third = await openReader(stream);
  expect(await third.events(3)).toHaveLength(3);
});

it('the number of streams may reach 300, which all get new changes', { tags: ['slow'] }, async () => {
  const { settings, sandbox, web } = await serveFilled({ items: 3 }, { limits: { pollMs: 5 } });
  const stream = `${web.url}/api/changes/stream?after=latest`;
  const readers = await Promise.all(Array.from({ length: 300 }, () => openReader(stream)));
  expect((await get(stream)).status).toBe(503);
  sandbox.catalog.mutate({ create: 5, seed: 1 });
  await load(settings, 'delta');
  const read = await Promise.all(readers.map((reader) => reader.events(5)));
  for (const events of read) expect(numbersOf(events)).toEqual(upTo(8, 4));
});

it('a stream too many refuses an EventSource so that it comes back later, and keeps its id', async () => {
  const { stream } = await serveFilled({ items: 3 }, { limits: { maxStreams: 1 } });
  const reader = await openReader(stream);
  await reader.events(3);
  const refused = await get(stream, { headers: { accept: 'text/event-stream' } });
  expect(refused.status).toBe(200);
  expect(refused.headers).toMatchObject({ 'content-type': 'text/event-stream; charset=utf-8', 'retry-after': '10' });
  const [, retry, data] = /^retry: (\d+)\nevent: end\ndata: (.*)\n\n$/.exec(refused.text) ?? [];
  expect(Number(retry)).toBeGreaterThanOrEqual(10_000);
  expect(JSON.parse(data ?? '')).toMatchObject({ code: 'TOO_MANY_STREAMS' });
  // Who is admitted later reconnects as fast as others.
  reader.leave();
  const admitted = await openReader(stream, { accept: 'text/event-stream' });
  expect(await admitted.until(() => true)).toMatchObject({ retry: '3000' });
});

it('a server that stops ends every stream with a reason, and its reader resumes elsewhere', {
  tags: ['slow'],
}, async () => {
  const { db, web, log, stream } = await serveFilled(
    { items: 8_000, details: true },
    { limits: { graceMs: 60_000, stopMs: 60_000 } },
  );
  const [idle, busy, stalled] = await Promise.all([
    openReader(`${stream}?after=latest`),
    openReader(stream),
    openReader(stream),
  ]);
  await idle.until(() => true);
  const begun = await busy.events(300);
  const stopped = web.stop();
  const rest = await Promise.all([idle, busy, stalled].map((reader) => reader.rest()));
  await stopped;
  for (const blocks of rest) {
    const end = blocks.at(-1);
    expect(end).toMatchObject({ event: 'end', retry: expect.stringMatching(/^\d+$/) as string });
    expect(JSON.parse(end?.data ?? '')).toMatchObject({ code: 'SHUTDOWN' });
    expect(blocks.filter(({ event }) => event === 'end')).toHaveLength(1);
    // No message was cut off.
    for (const { data } of blocks) if (data !== undefined) JSON.parse(data);
  }
  const [, ofBusy = [], ofStalled = []] = rest.map((blocks) => numbersOf(blocks.filter(isEvent)));
  const seen = [...numbersOf(begun), ...ofBusy];
  expect(seen).toEqual(upTo(seen.length));
  expect(ofStalled).toEqual(upTo(ofStalled.length));
  expect(seen.length).toBeLessThan(8_000);
  await expect(get(`${web.url}/healthz`)).rejects.toThrow(/ECONNREFUSED/);
  await web.stop();
  expect(log.filter(({ msg }) => msg === 'stream ended').map(({ code }) => code)).toEqual(
    Array(3).fill('SHUTDOWN') as string[],
  );

  const next = await serve(db);
  const headers = { 'Last-Event-ID': String(seen.length) };
  const again = await openReader(`${next.web.url}/api/changes/stream`, headers);
  expect(numbersOf(await again.events(8_000 - seen.length))).toEqual(upTo(8_000, seen.length + 1));
});

it('a server that stops does not wait for readers that read nothing', { tags: ['slow'] }, async () => {
  const { db } = await filled({ items: 20_000, details: true });
  const watched = watchResponses();
  const { web } = await serve(db, { limits: { graceMs: 3_600_000, slowReaderMs: 3_600_000, stopMs: 20 } });
  const [events, page] = await Promise.all([
    openReader(`${web.url}/api/changes/stream`),
    openReader(`${web.url}/api/changes?limit=10000`),
  ]);
  expect(events.response.statusCode).toBe(200);
  expect(page.response.statusCode).toBe(200);
  await web.stop();
  // The server closed them; it was not the timeout of a silent connection.
  expect(watched.map(({ timedOut }) => timedOut)).toEqual([false, false]);
  const store = openStore(db);
  expect(store.changes.lastSeq()).toBe(20_000);
  store.close();
});
