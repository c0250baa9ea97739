// @module-tag slow
import { expect, it } from 'vitest';
import { catalogOf, expectExactLog } from '../support/mirror.ts';
import { isDelta, rawPlace } from './raw-place.ts';

/*
 * Lists that have a product twice. Windows hold 20 products and share 5.
 */
const SETTINGS = { CATCHWORD_PER_PAGE: '20', CATCHWORD_SEAM: '5', CATCHWORD_DELTA_OVERLAP: '0s' };

function row(vbid: string, territory: string, more: object = {}): Buffer {
  return Buffer.from(JSON.stringify({ vbid, territory, ...more }));
}

const BOOKS = Array.from({ length: 100 }, (_, at) => row(`B${String(at).padStart(2, '0')}`, 'CZ'));

/** The list with another row of B05, after so many rows. */
function withSecond(at: number, second = row('B05', 'SK'), books = BOOKS): Buffer[] {
  return [...books.slice(0, at), second, ...books.slice(at)];
}

async function mirrored(items: readonly Buffer[], more: Record<string, string> = {}) {
  const place = await rawPlace(items, { ...SETTINGS, ...more });
  await place.run();
  return place;
}

const territory = (db: string) => JSON.parse(catalogOf(db).get('B05') ?? '{}').territory;

it.each([
  ['next to each other', 6, {}],
  ['in two windows', 70, {}],
  ['on both sides of the end of a window', 20, {}],
  ['in one response', 70, { CATCHWORD_PER_PAGE: '1000' }],
])(
  'a product that the list has twice with two contents, %s, keeps the first one, and what left the list is removed',
  async (_what, at, more) => {
    const { source, db, run } = await mirrored(withSecond(at), more);
    expect(territory(db)).toBe('CZ');
    for (let night = 1; night <= 3; night++) expect(await run()).toMatchObject({ proof: 'sealed', updated: 0 });
    source.items = withSecond(at).filter((body) => !body.includes('B90'));
    const ended = await run();
    expect(ended).toMatchObject({ proof: 'sealed', updated: 0, removed: 1 });
    expect(ended.evidence?.twice).toEqual({ products: 1, vbids: ['B05'] });
    expectExactLog(db);
  },
);

/** Reads the list while windows with this offset are refused twice, so that windows behind them arrive first. */
async function readLate({ source, run }: Awaited<ReturnType<typeof rawPlace>>, offset: number) {
  const refused = new Map<string, number>();
  let isOver = false;
  source.instead = (asked) => {
    isOver ||= isDelta(asked);
    const [page = 1, perPage = 1] = ['page', 'per_page'].map((name) => Number(asked.searchParams.get(name)));
    const times = refused.get(asked.search) ?? 0;
    if (isOver || (page - 1) * perPage > offset || offset >= page * perPage || times === 2) return null;
    refused.set(asked.search, times + 1);
    return { status: 503 };
  };
  return await run();
}

it('a product that the list has twice keeps its first content in whatever order the windows arrive', async () => {
  const books = BOOKS.filter((body) => !body.includes('B05'));
  const items = [...books.slice(0, 30), row('B05', 'CZ'), ...books.slice(30, 70), row('B05', 'SK'), ...books.slice(70)];
  const place = await rawPlace(items, SETTINGS);
  await readLate(place, 30);
  expect(territory(place.db)).toBe('CZ');
  for (let night = 1; night <= 3; night++)
    expect(await readLate(place, 30)).toMatchObject({ proof: 'sealed', updated: 0 });
  // Then only the second one is left: that is taken for a change once the run has read everything in front of it.
  place.source.items = items.filter((_, at) => at !== 30);
  const night = await readLate(place, 30);
  expect(night).toMatchObject({ proof: 'open', updated: 1 });
  expect(night.reasons.join()).toContain('B05 is at two places with two contents');
  // No delta told it, so the next run is not sealed either.
  expect(await readLate(place, 30)).toMatchObject({ proof: 'open', updated: 0 });
  expect(await readLate(place, 30)).toMatchObject({ proof: 'sealed', updated: 0 });
  expect(territory(place.db)).toBe('SK');
});

it('a list with products twice in one answer holds only removals beyond the limit', async () => {
  const items = BOOKS.flatMap((body, at) => (at < 10 ? [body, body] : [body]));
  const { source, db, run } = await mirrored(items, { CATCHWORD_PER_PAGE: '1000', CATCHWORD_REMOVAL_LIMIT: '5' });
  source.items = items.slice(0, -1);
  expect(await run()).toMatchObject({ state: 'complete', proof: 'sealed', removed: 1 });
  source.items = items.slice(0, -7);
  const held = await run();
  expect(held.reasons).toEqual(['held: 6 removals are more than the limit of 5']);
  expect(catalogOf(db).size).toBe(99);
});

it('a list that has many products twice in distant windows is sealed in one reading, and names them', async () => {
  const second = (at: number) => row(`B${String(at).padStart(2, '0')}`, 'SK');
  const many = Array.from({ length: 300 }, (_, at) => row(`B${String(at).padStart(2, '0')}`, 'CZ'));
  // Each 30 places behind the first one.
  const items = many.flatMap((body, at) => (at >= 30 && at % 15 === 0 ? [body, second(at - 30)] : [body]));
  const { source, db, run } = await mirrored(items);
  const before = source.requests.length;
  const ended = await run();
  expect(ended).toMatchObject({ proof: 'sealed', updated: 0, evidence: { twice: { products: 18 } } });
  const lists = source.requests.slice(before).filter((asked) => !isDelta(asked));
  expect(lists.length).toBeLessThanOrEqual(2 * (ended.evidence?.lists[0]?.windows ?? 0) + 1);
  expectExactLog(db);
});

it('a change of the first content of a product that the list has twice is taken, and one of the second is not', async () => {
  const { source, db, run } = await mirrored(withSecond(70));
  await run();
  source.items = withSecond(70, row('B05', 'SK', { edited: true }));
  expect(await run()).toMatchObject({ proof: 'sealed', updated: 0 });
  source.items = withSecond(70).map((body) => (body.equals(row('B05', 'CZ')) ? row('B05', 'PL') : body));
  expect(await run()).toMatchObject({ updated: 1 });
  expect(territory(db)).toBe('PL');
});

it.each([
  ['first', 5],
  ['second', 71],
])('a product whose %s place in the list is withdrawn is not removed and restored by turns', async (_what, at) => {
  const gone = withSecond(70).map((body, place) => (place === at ? row('B05', 'SK', { distributable: false }) : body));
  const { run, db } = await mirrored(gone, { CATCHWORD_WITHDRAWN_AS: 'removed' });
  await run();
  const isThere = catalogOf(db).has('B05');
  for (let night = 1; night <= 2; night++) expect(await run()).toMatchObject({ removed: 0, restored: 0, updated: 0 });
  expect(catalogOf(db).has('B05')).toBe(isThere);
  expect(isThere).toBe(at > 70);
});

it('a product that moves while its list is read, with a change that no delta tells, does not hide another one', async () => {
  const all = BOOKS;
  const { source, db, run } = await mirrored(all);
  const [moved, hidden] = [row('B05', 'SK'), all[90] as Buffer];
  source.instead = (asked) => {
    if (isDelta(asked)) return null;
    // Whenever the end of the list is read, the two have changed places.
    const isEnd = Number(asked.searchParams.get('page')) * Number(asked.searchParams.get('per_page')) > 80;
    source.items =
      isEnd && source.requests.length < 12
        ? all.map((body, at) => (at === 5 ? hidden : at === 90 ? moved : body))
        : all;
    return null;
  };
  expect(await run()).toMatchObject({ removed: 0 });
  expect(catalogOf(db).size).toBe(100);
});

it.each([
  [12, 22],
  [14, 17],
  [14, 20],
])(
  'of a product at %i and at %i of a list, the first content counts although windows overlap there',
  async (one, two) => {
    const books = BOOKS.filter((body) => !body.includes('B05'));
    const items = [
      ...books.slice(0, one),
      row('B05', 'CZ'),
      ...books.slice(one, two - 1),
      row('B05', 'SK'),
      ...books.slice(two - 1),
    ];
    const { db, run } = await mirrored(items);
    expect(territory(db)).toBe('CZ');
    for (let night = 1; night <= 2; night++) expect(await run()).toMatchObject({ updated: 0 });
  },
);
