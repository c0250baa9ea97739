import { expect, it } from 'vitest';
import { stateOf } from '../../src/state/mirror-state.ts';
import { problemsOf } from '../../src/state/problems.ts';
import { openedStore } from '../store/opened-store.ts';
import { catalogOf } from '../support/mirror.ts';
import { isDelta, rawPlace } from './raw-place.ts';

function book(at: number, more: object = {}): Buffer {
  return Buffer.from(JSON.stringify({ vbid: `B${at}`, title: `Book ${at}`, ...more }));
}

function topicsIn(db: string): string[] {
  const limits = { readyMaxAgeMs: Number.MAX_SAFE_INTEGER, minFreeBytes: null, behindLimitMs: 1_800_000 };
  return problemsOf(stateOf(openedStore(db), Date.now(), limits)).map(({ topic }) => topic);
}

async function begin(more: Record<string, string> = {}) {
  const books = Array.from({ length: 60 }, (_, at) => book(at));
  const place = await rawPlace(books, { CATCHWORD_DELTA_OVERLAP: '0s', ...more });
  expect(await place.run()).toMatchObject({ proof: 'sealed' });
  return { books, ...place };
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

it('a full run that cannot control its deltas does not rely on them if the run before found untold changes', async () => {
  const { source, books, db, run } = await begin();
  source.items = [...books.slice(0, 59).map((_, at) => book(at, { edition: 2 })), Buffer.from('{"title":"No key"}')];
  const reasons = [
    expect.stringMatching(/^items were rejected/),
    expect.stringMatching(/^deltas did not tell 59 of 59/),
  ];
  expect(await run()).toMatchObject({ proof: 'open', reasons: expect.arrayContaining(reasons) });
  source.items = source.items.slice(0, 59);
  // A run that fails forgets none of it.
  source.instead = () => ({ status: 403 });
  await expect(run()).rejects.toMatchObject({ code: 'SOURCE_AUTH' });
  source.instead = () => null;
  const uncontrolled = 'deltas did not tell all changes to run 2, and this run could not control them';
  expect(await run()).toMatchObject({ proof: 'open', removed: 0, reasons: [uncontrolled] });
  expect(catalogOf(db).size).toBe(60);
  // This one has a control.
  expect(await run()).toMatchObject({ proof: 'sealed', removed: 1 });
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
  expect(source.requests.slice(before).filter(isDelta)).toHaveLength(1);
});

it('a changed selection does not count against the deltas', async () => {
  const { source, books, run } = await begin();
  source.items = books.map((_, at) => book(at, { currency: 'EUR' }));
  expect(await run('full', { CATCHWORD_CURRENCY: 'EUR' })).toMatchObject({ proof: 'sealed', updated: 60 });
});

it('a source that ignores from when deltas ask is named, and not asked for the whole list again and again', async () => {
  const books = Array.from({ length: 300 }, (_, at) => book(at));
  const { source, run } = await rawPlace(books, { CATCHWORD_PER_PAGE: '50' });
  source.changed = books;
  const night = await run();
  expect(night).toMatchObject({ proof: 'open', created: 300 });
  expect(night.reasons).toContainEqual(expect.stringMatching(/^a delta shows nearly every product: either/));
  // Seven pages for each: after the list, and when the run settles.
  expect(source.requests.filter(isDelta).length).toBeLessThan(40);
});
