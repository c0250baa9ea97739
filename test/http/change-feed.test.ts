import { setMaxListeners } from 'node:events';
import { execute } from '@catchword/testing/sqlite';
import { createHandClock } from '@catchword/testing/test-clocks';
import { expect, it } from 'vitest';
import { type Batch, createChangeFeed } from '../../src/http/change-feed.ts';
import { createReadSteps, inThisThread } from '../../src/http/read-steps.ts';
import { createReaderViews, WHOLE } from '../../src/http/reader-views.ts';
import { reading } from '../operate/daemon.ts';
import { filled } from '../support/place.ts';

const POLL_MS = 250;

async function feedOf(options: Parameters<typeof filled>[0]) {
  const { db } = await filled(options);
  const store = reading(db);
  const hand = createHandClock(Date.now());
  let sleeps = 0;
  const clock = {
    ...hand,
    sleep: (ms: number, signal?: AbortSignal) => {
      sleeps++;
      return hand.sleep(ms, signal);
    },
  };
  const here = createReadSteps(store, 'https://catalog.example/v4/products', clock);
  const steps = inThisThread(here);
  const feed = createChangeFeed(store, here, steps, clock, POLL_MS);
  const views = createReaderViews(steps);
  return { db, feed, views, pass: (ms: number) => hand.pass(ms), sleeps: () => sleeps };
}

/** All batches from the first change on. */
async function batchesOf({ batch }: { batch: (seq: number) => Promise<Batch | null> }): Promise<Batch[]> {
  const found: Batch[] = [];
  for (let next = await batch(0); next !== null; next = await batch(next.to)) found.push(next);
  return found;
}

it('the feed reads a batch once for all readers at the same place', async () => {
  const { feed, db } = await feedOf({ items: 300 });
  const first = await batchesOf(feed);
  expect(first.length).toBeGreaterThan(2);
  expect(first.at(-1)?.to).toBe(300);
  // A reader of the same places does not read the mirror, which has nothing to read any more.
  execute(db, 'ALTER TABLE products RENAME TO gone');
  const places = [0, ...first.slice(0, -1).map(({ to }) => to)];
  const second = await Promise.all(places.map((seq) => feed.batch(seq)));
  expect(second.every((batch, nth) => batch === first[nth])).toBe(true);
  await expect(feed.batch(7)).rejects.toThrow(/no such table/);
});

it('the feed keeps batches for each view by itself, within one bound', { tags: ['slow'] }, async () => {
  const { feed, views } = await feedOf({ items: 5_000, details: true });
  const [few, none] = [await views.of({ fields: 'title' }), await views.of({ where: '0' })];
  const read = () => Promise.all([WHOLE, few, none].map((view) => feed.batch(0, view)));
  const batches = await read();
  expect(await read()).toEqual(batches);
  expect(await feed.batch(0, few)).toBe(batches[1]);
  expect(new Set(batches.map((batch) => batch?.bytes.toString())).size).toBe(3);
  expect(batches[1]?.bytes.toString()).toMatch(/"product":\{"vbid":"\d+","title":"[^"]+"\},"before":null/);
  expect(batches[2]?.bytes.toString()).toMatch(/^id: \S+\n\n$/);
  // What readers of whole products read drops the batches of the views, too.
  await batchesOf(feed);
  expect(await feed.batch(0, few)).not.toBe(batches[1]);
});

it('the feed does not keep batches without limit', { tags: ['slow'] }, async () => {
  const { feed } = await feedOf({ items: 5_000, details: true });
  const [start] = await batchesOf(feed);
  // Ten megabytes were read since.
  expect(await feed.batch(0)).not.toBe(start);
  expect(await feed.batch(0)).toEqual(start);
});

it('the feed bounds a batch whatever the size of its events', async () => {
  const { feed, db } = await feedOf({ items: 400 });
  execute(
    db,
    `UPDATE products SET body = json_insert(body, '$.x', hex(zeroblob(100000))) WHERE id BETWEEN 100 AND 120`,
  );
  const batches = await batchesOf(feed);
  expect(batches.at(-1)?.to).toBe(400);
  // At most one large event, after less than a piece of small ones.
  for (const { bytes } of batches) expect(bytes.length).toBeLessThan(300_000);
  const ids = batches.flatMap(({ bytes }) =>
    [...bytes.toString().matchAll(/^id: [^:]+:(\d+)$/gm)].map(([, seq]) => Number(seq)),
  );
  expect(ids).toEqual(Array.from({ length: 400 }, (_, index) => index + 1));
});

it('the feed polls once for all readers that wait, and not at all for none', async () => {
  const { feed, pass, sleeps } = await feedOf({ items: 3 });
  const leaving = new AbortController();
  const staying = new AbortController();
  setMaxListeners(0, leaving.signal, staying.signal);
  const left = Array.from({ length: 20 }, () => feed.polled(leaving.signal).catch(() => 'left'));
  const stayed = Array.from({ length: 20 }, () => feed.polled(staying.signal));
  leaving.abort();
  expect(await Promise.all(left)).toEqual(Array(20).fill('left'));
  await pass(POLL_MS);
  expect(await Promise.all(stayed)).toEqual(Array(20).fill(3));
  await pass(20 * POLL_MS);
  expect(sleeps()).toBe(1);
  const next = feed.polled(staying.signal);
  await pass(POLL_MS);
  expect(await next).toBe(3);
  expect(sleeps()).toBe(2);
});

it('the feed does not continue a page with the changes of another mirror', async () => {
  const { feed, db } = await feedOf({ items: 300 });
  const pieces = feed.page(0, 300, {}, WHOLE);
  expect((await pieces.next()).value).toContain('{"events":[');
  // As SQLite's `.restore` into the open file does.
  execute(db, `UPDATE mirror SET incarnation = 'other'`);
  await expect(pieces.next()).rejects.toThrow(/another or an older mirror/);
});
