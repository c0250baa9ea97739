// @module-tag slow

import { systemClock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import { createLog, type Notice } from '@catchword/base/log';
import { createEmbeddedQueue } from '@catchword/queue/embedded-queue';
import { serveHttp } from '@catchword/testing/listen';
import { collect } from '@catchword/testing/queue-contract';
import { createScriptedSource, task } from '@catchword/testing/scripted-source';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { createVirtualClock } from '@catchword/testing/test-clocks';
import { expect, it } from 'vitest';
import { mirrorPacer } from '../../src/sync/shared-pace.ts';
import { openedStore } from '../store/opened-store.ts';
import { load } from '../support/load.ts';
import { settingsFor } from '../support/mirror.ts';

const LATENCY_MS = 200;
const tooMany = new CatchwordError('SOURCE_RATE_LIMITED', 'answered 429', { retryable: true });
const noPause = tooMany.with({ status: 429, retryAfterMs: 0 });
const brokenOff = new CatchwordError('SOURCE_UNAVAILABLE', 'broke off (ECONNRESET)', { retryable: true });
const unavailable = new CatchwordError('SOURCE_UNAVAILABLE', 'answered 503', { retryable: true, status: 503 });

/** Reads pages from a source that takes so long for each answer, and may refuse requests; notes what it refused and when. */
function readPages(isRefused: (atOnce: number, nowMs: number) => boolean, maxAttempts = 8, refusal = tooMany) {
  const clock = { ...createVirtualClock(), random: () => 0.5 };
  const begunAt = clock.now();
  const store = openedStore();
  const said: Notice[] = [];
  const tell = (notice: Notice): unknown => said.push(notice);
  const refused: number[] = [];
  const source = createScriptedSource(clock, async () => {
    const isTooMany = isRefused(source.inFlight(), clock.now());
    // A refusal comes at once.
    await clock.sleep(isTooMany ? 1 : LATENCY_MS);
    if (!isTooMany) return;
    refused.push(clock.now());
    throw refusal;
  });
  const pacer = mirrorPacer({ config: { rateLimit: null }, clock, tell }, store);
  const log = createLog('silent');
  const queue = createEmbeddedQueue({ read: source.read, concurrency: 8, pacer, clock, log, tell });
  const read = async (pages: number) => {
    const { count, outcomes } = await collect(queue);
    await queue.add(Array.from({ length: pages }, (_, page) => task(page + 1, { maxAttempts })));
    await count(pages);
    const minutes = (clock.now() - begunAt) / 60_000;
    await queue.close();
    return { perMinute: pages / minutes, failed: outcomes.filter(({ kind }) => kind === 'failed').length };
  };
  return { read, refused, said, learned: () => store.source.learnedRate() };
}

it.each([
  ['refuses the third request at once', tooMany],
  ['refuses the third request at once with a pause of 0', noPause],
  ['closes the connection of the third request at once', brokenOff],
])('a queue whose source %s makes fewer at once, and learns no rate', async (_, refusal) => {
  const { read, refused, said, learned } = readPages((atOnce) => atOnce > 2, 8, refusal);
  const { perMinute, failed } = await read(500);
  expect({ failed, learned: learned() }).toEqual({ failed: 0, learned: null });
  // Two at once are 600 a minute.
  expect(perMinute).toBeGreaterThan(500);
  expect(refused.length).toBeLessThan(20);
  expect(said.map(({ fields }) => fields.reason)).toEqual([
    'it did not answer one of 8 at once; now at most 4, or as many as CATCHWORD_CONCURRENCY says',
    'it did not answer one of 4 at once; now at most 2, or as many as CATCHWORD_CONCURRENCY says',
  ]);
});

it('a queue whose source refuses the second request at once makes one at a time', async () => {
  const { read, learned } = readPages((atOnce) => atOnce > 1);
  const { perMinute, failed } = await read(200);
  expect({ failed, learned: learned() }).toEqual({ failed: 0, learned: null });
  expect(perMinute).toBeGreaterThan(200);
});

it('a queue whose source is down for a while with 503 does not take each refusal for one too many at once', async () => {
  let asked = 0;
  const { read, said, learned } = readPages(() => ++asked > 20 && asked <= 80, 100, unavailable);
  expect(await read(200)).toMatchObject({ failed: 0 });
  // Answers to requests from before the outage still arrive after the first refusal.
  expect(said.length).toBeLessThanOrEqual(2);
  expect(learned()).toBeNull();
});

it('a queue whose source counts by the minute learns the rate, after it made fewer at once', {
  tags: ['slow'],
}, async () => {
  let [minute, asked] = [0, 0];
  const { read, learned } = readPages((_, nowMs) => {
    const now = Math.floor(nowMs / 60_000);
    asked = now === minute ? asked + 1 : 1;
    minute = now;
    return asked > 300;
  }, 100);
  const { perMinute, failed } = await read(1_200);
  expect(failed).toBe(0);
  expect(learned()?.refusedAt).toBeGreaterThan(200);
  expect(perMinute).toBeGreaterThan(0.5 * 300);
});

it('a queue whose source refused the third request at once for a while makes more at once again', {
  tags: ['slow'],
}, async () => {
  let most = 0;
  let answers = 0;
  const { read, said } = readPages((atOnce) => {
    if (answers++ < 50) return atOnce > 2;
    most = Math.max(most, atOnce);
    return false;
  });
  await read(1_500);
  expect(said.length).toBeGreaterThan(0);
  expect(most).toBe(8);
});

it.each([
  [429, {}],
  [503, {}],
  [503, { 'retry-after': '1' }],
])(
  'a load from a server that refuses the third request at once with %i %j reads every page',
  async (status, headers) => {
    const PRODUCTS = 1_000;
    let [open, refused] = [0, 0];
    const url = await serveHttp((request, response) => {
      const asked = new URL(request.url ?? '', 'http://localhost').searchParams;
      response.setHeader('content-type', 'application/json');
      if (open >= 2) {
        refused++;
        response.writeHead(status, headers).end('{}');
        return;
      }
      open++;
      void systemClock.sleep(5).then(() => {
        open--;
        const [page, perPage] = [Number(asked.get('page')), Number(asked.get('per_page'))];
        const first = (page - 1) * perPage;
        const listed = asked.has('from') ? 0 : PRODUCTS;
        const count = Math.max(0, Math.min(perPage, listed - first));
        const items = Array.from({ length: count }, (_, index) => ({ vbid: `B${first + index}` }));
        const total = { num_items: listed, page, per_page: perPage, total_pages: Math.ceil(listed / perPage) };
        response.end(JSON.stringify({ ...total, items }));
      });
    });
    const db = `${temporaryDirectory()}/catalog.db`;
    const more = { CATCHWORD_PER_PAGE: '20', CATCHWORD_RATE_LIMIT: 'off', LOG_LEVEL: 'silent' };
    const run = await load(settingsFor(url, db, more), 'full');
    expect(run).toMatchObject({ state: 'complete', proof: 'sealed', created: PRODUCTS });
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThan(30);
    expect(openedStore(db).source.learnedRate()).toBeNull();
  },
);
