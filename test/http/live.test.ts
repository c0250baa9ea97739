import { type Clock, systemClock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import { createLog } from '@catchword/base/log';
import { createHandClock } from '@catchword/testing/test-clocks';
import { expect, it, onTestFinished } from 'vitest';
import { createApp } from '../../src/http/app.ts';
import { listen } from '../../src/http/listen.ts';
import { createLivePages } from '../../src/http/pages/live.ts';
import type { Content } from '../../src/http/pages/page-view.ts';
import { addWaiting } from '../../src/http/slow-readers.ts';
import { STREAM_LIMITS } from '../../src/http/stream-limits.ts';
import { type Block, get, openReader, stall } from './reader.ts';
import { watchResponses } from './watch.ts';

/** A clock whose pauses pass a hundred times as fast. */
function hurried(): Clock & { set: (byMs: number) => void } {
  const startedAt = Date.now();
  let offsetMs = 0;
  return {
    now: () => startedAt + (Date.now() - startedAt) * 100 + offsetMs,
    sleep: (ms, signal) => systemClock.sleep(ms / 100, signal),
    random: () => 0.5,
    set: (byMs) => {
      offsetMs += byMs;
    },
  };
}

function content(sections: Readonly<Record<string, string>>): Content {
  return {
    title: 'Test',
    sections: Object.entries(sections).map(([id, text]) => ({ id, live: true, content: text })),
  };
}

type Given = Partial<typeof STREAM_LIMITS & { readonly clock: Clock }>;

/** Serves the live stream of a page at every path of `/live`. `show` gets the path. */
async function pagesOf(show: (path: string) => Content, { clock = hurried(), ...limits }: Given = {}) {
  const log = createLog('silent');
  const app = createApp(log, 'Use /live/page.');
  const waiting = addWaiting(app, { clock, log, limits: { ...STREAM_LIMITS, ...limits } });
  const live = createLivePages({ clock, log, waiting, limits: { ...STREAM_LIMITS, ...limits } });
  app.get('/live/*', async (request, reply) => live.follow(request, reply, (render) => render(show(request.url))));
  const url = await listen(app, '127.0.0.1', 0);
  const stop = async (): Promise<void> => {
    const ended = live.stop();
    await app.close();
    await ended;
  };
  onTestFinished(stop);
  return { url, live };
}

const EVENT_SOURCE = { accept: 'text/event-stream' };

interface Sent {
  readonly id: string;
  readonly html: string;
}

const isSection = ({ event }: Block): boolean => event === 'section';

type Opened = Awaited<ReturnType<typeof openReader>>;

async function next(reader: Opened): Promise<Sent> {
  return JSON.parse((await reader.until(isSection)).data ?? '') as Sent;
}

it('a live page sends the sections that have changed, once each', async () => {
  let count = 1;
  const { url } = await pagesOf(() => content({ still: 'same', moving: `<b>${count}</b>` }));
  const reader = await openReader(`${url}/live/page`);
  expect(reader.response.headers).toMatchObject({ 'x-accel-buffering': 'no' });
  expect(await next(reader)).toEqual({ id: 'still', html: 'same' });
  expect(await next(reader)).toEqual({ id: 'moving', html: '&lt;b>1&lt;/b>' });
  count = 2;
  expect(await next(reader)).toEqual({ id: 'moving', html: '&lt;b>2&lt;/b>' });
});

it('a live page is rendered once for all browsers that show it, also after one of them has left', async () => {
  let renderings = 0;
  const { url } = await pagesOf(() => content({ count: `${++renderings}` }));
  const readers = await Promise.all(Array.from({ length: 10 }, () => openReader(`${url}/live/page`)));
  const seen = await Promise.all(
    readers.map(async (reader) => {
      const values: number[] = [];
      while ((values.at(-1) ?? 0) < 20) values.push(Number((await next(reader)).html));
      return values;
    }),
  );
  // Each got a share of the same twenty renderings.
  for (const values of seen) expect(values).toEqual([...values].sort((one, other) => one - other));
  readers[0]?.leave();
  const from = renderings;
  const values: number[] = [];
  for (let n = 0; n < 10; n++) values.push(Number((await next(readers[1] as Opened)).html));
  expect(values.at(-1)).toBeGreaterThan(from);
  // Ten browsers that were rendered for each would have had ten times as many.
  expect(renderings).toBeLessThan(4 * ((values.at(-1) ?? 0) + 1));
});

it('a live page that does not exist is an error that ends an EventSource', async () => {
  const { url } = await pagesOf(() => {
    throw new CatchwordError('NOT_FOUND', 'run 7 does not exist');
  });
  const { status, text } = await get(`${url}/live/page`, { headers: EVENT_SOURCE });
  expect(status).toBe(404);
  expect(text).toContain('run 7 does not exist');
});

it('a live page that cannot be rendered at first lets an EventSource come back', async () => {
  let isBroken = true;
  const { url } = await pagesOf(() => {
    if (isBroken) throw new Error('disk I/O error at /secret/path');
    return content({ a: 'well' });
  });
  expect((await get(`${url}/live/page`)).status).toBe(500);
  const { status, text } = await get(`${url}/live/page`, { headers: EVENT_SOURCE });
  expect(status).toBe(200);
  expect(text).toMatch(/^retry: \d{5}\nevent: end\ndata: \{"code":"INTERNAL"/);
  expect(text).not.toContain('secret');
  isBroken = false;
  expect(await next(await openReader(`${url}/live/page`))).toEqual({ id: 'a', html: 'well' });
});

it.each([
  ['is gone', new CatchwordError('NOT_FOUND', 'run 7 was pruned'), 'NOT_FOUND'],
  ['fails', new Error('disk I/O error at /secret/path'), 'INTERNAL'],
])('a live page that %s while it is followed ends with the reason', async (_name, failure, code) => {
  let error: Error | null = null;
  const { url } = await pagesOf(() => {
    if (error !== null) throw error;
    return content({ a: 'well' });
  });
  const [one, other] = [await openReader(`${url}/live/page`), await openReader(`${url}/live/page`)];
  await next(one);
  await next(other);
  error = failure;
  expect(await one.endCode()).toBe(code);
  expect(await other.endCode()).toBe(code);
  error = null;
  // Nothing of the failure is kept.
  expect(await next(await openReader(`${url}/live/page`))).toEqual({ id: 'a', html: 'well' });
});

it('a live page keeps on, and keeps the connection alive, when the clock is set back', async () => {
  let count = 1;
  const clock = hurried();
  const { url } = await pagesOf(() => content({ a: `${count}` }), { clock });
  const reader = await openReader(`${url}/live/page`);
  await next(reader);
  clock.set(-86_400_000);
  count = 2;
  expect(await next(reader)).toEqual({ id: 'a', html: '2' });
  expect(await reader.until((block) => '' in block)).toEqual({ '': 'still here' });
});

it('a browser that takes nothing is disconnected, and leaves its place to another', async () => {
  let count = 0;
  const { url } = await pagesOf(() => content({ a: `${++count}${'x'.repeat(1_000_000)}` }), {
    slowReaderMs: 3_000,
    graceMs: 3_000,
  });
  const watched = watchResponses();
  await stall(url, '/live/page');
  await expect.poll(() => watched[0]?.response.closed, { timeout: 30_000 }).toBe(true);
  // One section, however often the page changed.
  expect(watched[0]?.mostWaiting).toBeLessThan(1_100_000);
});

it('live pages are limited, and who is refused comes back later', async () => {
  const { url } = await pagesOf((path) => content({ a: path }));
  const readers = await Promise.all(Array.from({ length: 100 }, (_, nth) => openReader(`${url}/live/${nth}`)));
  // Different pages do not get each other's sections.
  const first = await Promise.all(readers.map(next));
  expect(first).toEqual(readers.map((_, nth) => ({ id: 'a', html: `/live/${nth}` })));
  const refused = await get(`${url}/live/more`);
  expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '10' } });
  const told = await get(`${url}/live/more`, { headers: EVENT_SOURCE });
  expect(told.status).toBe(200);
  expect(told.text).toMatch(/^retry: [12]\d{4}\nevent: end\ndata: \{"code":"TOO_MANY_STREAMS"/);
  readers[0]?.leave();
  await expect
    .poll(async () => {
      const reader = await openReader(`${url}/live/more`);
      const { statusCode } = reader.response;
      reader.leave();
      return statusCode;
    })
    .toBe(200);
});

it('live pages are rendered one after another, with pauses in which others have the time', async () => {
  const renderings: string[] = [];
  const clock = createHandClock(Date.now());
  const { url } = await pagesOf(
    (path) => {
      const startedAt = performance.now();
      while (performance.now() - startedAt < 3);
      renderings.push(path);
      return content({ a: `${path} ${renderings.length}` });
    },
    { clock },
  );
  const readers = await Promise.all(Array.from({ length: 3 }, (_, nth) => openReader(`${url}/live/${nth}`)));
  await Promise.all(readers.map(next));
  renderings.length = 0;
  await clock.pass(1_000);
  expect(renderings).toHaveLength(1);
  // The pause is 60 times 3 ms, or longer.
  await clock.pass(150);
  expect(renderings).toHaveLength(1);
  while (new Set(renderings).size < 3) await clock.pass(30_000);
});

it('a live page is updated within ten seconds after a rendering that took long', async () => {
  const clock = createHandClock(Date.now());
  let renderings = 0;
  const { url } = await pagesOf(
    () => {
      const startedAt = performance.now();
      while (performance.now() - startedAt < 400);
      return content({ a: `${++renderings}` });
    },
    { clock },
  );
  await next(await openReader(`${url}/live/page`));
  await clock.pass(1_000);
  const before = renderings;
  await clock.pass(12_000);
  expect(renderings).toBeGreaterThan(before);
});

it('every live page ends when catchword stops', async () => {
  const { url, live } = await pagesOf((path) => content({ a: path }));
  const readers = await Promise.all(Array.from({ length: 5 }, (_, nth) => openReader(`${url}/live/${nth}`)));
  await Promise.all(readers.map(next));
  const stopped = live.stop();
  for (const reader of readers) expect(await reader.endCode()).toBe('SHUTDOWN');
  await stopped;
  // A page that is opened now gets the reason as well.
  const late = await openReader(`${url}/live/late`);
  expect(await late.endCode()).toBe('SHUTDOWN');
});
