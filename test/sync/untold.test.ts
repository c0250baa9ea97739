import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { RunKind } from '../../src/catalog/run-types.ts';
import { stateOf } from '../../src/state/mirror-state.ts';
import { problemsOf } from '../../src/state/problems.ts';
import { openStore } from '../../src/store/store.ts';
import { load } from '../support/load.ts';
import { catalogOf, settingsFor, temporaryDirectory } from '../support/mirror.ts';
import { startRawSource } from '../support/raw-source.ts';

function book(at: number, more: object = {}): Buffer {
  return Buffer.from(JSON.stringify({ vbid: `B${at}`, title: `Book ${at}`, ...more }));
}

function topicsIn(db: string): string[] {
  const store = openStore(db, { mustExist: true });
  const limits = { readyMaxAgeMs: Number.MAX_SAFE_INTEGER, minFreeBytes: null };
  const topics = problemsOf(stateOf(store, Date.now(), limits)).map(({ topic }) => topic);
  store.close();
  return topics;
}

async function begin(more: Record<string, string> = {}) {
  const books = Array.from({ length: 60 }, (_, at) => book(at));
  const source = await startRawSource(books);
  const db = join(temporaryDirectory(), 'catalog.db');
  const settings = settingsFor(source.url, db, { CATCHWORD_DELTA_OVERLAP: '0s', LOG_LEVEL: 'silent', ...more });
  const run = (kind: RunKind = 'full', own: Record<string, string> = {}) => load({ ...settings, ...own }, kind);
  expect(await run()).toMatchObject({ proof: 'sealed' });
  return { source, books, db, run };
}

it('a full run finds changes that no delta tells, and removes nothing that night', async () => {
  const { source, books, db, run } = await begin();
  // Of 13 changes the deltas tell one; one product is gone.
  source.items = books
    .slice(0, 59)
    .map((item, at) => (at < 13 ? book(at, { price: at < 10 ? 1 : undefined, edition: 2 }) : item));
  source.changed = [book(12, { edition: 2 })];
  expect(await run('delta')).toMatchObject({ state: 'complete', updated: 1 });
  source.changed = [];
  const night = await run();
  expect(night).toMatchObject({ proof: 'open', updated: 12, removed: 0, missing: 1 });
  expect(night.reasons).toEqual(['deltas did not tell 12 of 12 changes that the list shows (/edition, /price)']);
  expect(catalogOf(db).size).toBe(60);
  expect(topicsIn(db)).toContain('untold');
  // The next night finds nothing of that kind.
  expect(await run()).toMatchObject({ proof: 'sealed', removed: 1 });
  expect(topicsIn(db)).not.toContain('untold');
});

it('a full run expects no change of fields that the settings name in deltas', async () => {
  const { source, books, run } = await begin({ CATCHWORD_UNTOLD_FIELDS: '/price,/variants/*/stock' });
  source.items = books.map((_, at) => book(at, { price: 2 }));
  expect(await run()).toMatchObject({ proof: 'sealed', updated: 60 });
  source.items = books.map((_, at) => book(at, { price: 3, ...(at === 7 && { title: 'Other' }) }));
  expect((await run()).reasons).toEqual([expect.stringMatching(/^deltas did not tell 1 of 60 changes .*\(\/title\)$/)]);
});

it('a full run believes deltas that tell what its list shows, and asks one of them more', async () => {
  const { source, books, run } = await begin({ CATCHWORD_DELTA_OVERLAP: '10s' });
  source.items = books.map((item, at) => (at < 13 ? book(at, { edition: 2 }) : item));
  source.changed = source.items.slice(0, 13);
  expect(await run('delta')).toMatchObject({ updated: 13 });
  source.items = [...source.items, book(60)];
  source.changed = [book(60)];
  const before = source.requests.length;
  expect(await run()).toMatchObject({ proof: 'sealed', created: 1 });
  const asked = source.requests.slice(before).filter(({ searchParams }) => searchParams.has('from'));
  expect(asked).toHaveLength(1);
});

it('a changed selection does not count against the deltas', async () => {
  const { source, books, run } = await begin();
  source.items = books.map((_, at) => book(at, { currency: 'EUR' }));
  expect(await run('full', { CATCHWORD_CURRENCY: 'EUR' })).toMatchObject({ proof: 'sealed', updated: 60 });
});

it('a source that ignores from when deltas ask is named, and not asked for the whole list again and again', async () => {
  const books = Array.from({ length: 300 }, (_, at) => book(at));
  const source = await startRawSource(books);
  source.changed = books;
  const db = join(temporaryDirectory(), 'catalog.db');
  const settings = settingsFor(source.url, db, { CATCHWORD_PER_PAGE: '50', LOG_LEVEL: 'silent' });
  const night = await load(settings, 'full');
  expect(night).toMatchObject({ proof: 'open', created: 300 });
  expect(night.reasons).toContainEqual(expect.stringMatching(/^a delta shows nearly every product: either/));
  // Seven pages for each: after the list, and when the run settles.
  expect(source.requests.filter(({ searchParams }) => searchParams.has('from')).length).toBeLessThan(40);
});
