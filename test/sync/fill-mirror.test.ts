import { systemClock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import { createLog } from '@catchword/base/log';
import { sourceIdentity } from '@catchword/catalog/source-identity';
import { pageOfText } from '@catchword/testing/page';
import { execute, query } from '@catchword/testing/sqlite';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createBinaryJson } from '../../src/store/history/binary-json.ts';
import { openStore } from '../../src/store/store.ts';
import { createPageApplier } from '../../src/sync/apply-page.ts';
import { cancelRun, ensureLookups, failRun } from '../../src/sync/finish-run.ts';
import { startRun } from '../../src/sync/keeper.ts';
import { mirrorPath } from '../store/opened-store.ts';
import { expectExactLog } from '../support/mirror.ts';

const PER_PAGE = 60;

const toBinary = createBinaryJson();

/** An empty mirror, and a full run that has started to fill it. */
function started() {
  const store = openStore(mirrorPath());
  const leased = store.keeperLease.acquire(systemClock.now());
  const source = sourceIdentity({ baseUrl: 'https://catalog.example', includeDetails: [], currency: [] });
  const run = startRun(leased, { kind: 'full' }, { perPage: PER_PAGE, seam: 0, overlapMs: 0, source }, 1_000);
  if (run === null) throw new Error('no run was started');
  return { db: store.path, store, leased, run };
}

/**
 * Applies pages to an empty mirror, whole if `filling`, else product by product.
 * @param isBinary whether the rows of a page are made binary, as in the thread that validates pages
 * @param hasIndexes whether the mirror has those for readers, as one that is not empty
 * @returns what the mirror holds then
 */
function applied(
  pages: readonly (readonly string[])[],
  filling: boolean,
  withdrawnAs: 'updated' | 'removed',
  isBinary = false,
  hasIndexes = false,
) {
  const { db, store, leased, run } = started();
  try {
    if (hasIndexes) ensureLookups(leased);
    const clock = { ...systemClock, now: () => 5_000 };
    const settings = {
      ignoreFields: [],
      volatileFields: [],
      withdrawnAs,
      overlapMs: 300_000,
      lossLimit: { percent: 5 },
      log: createLog('fatal'),
    };
    const applier = createPageApplier({ ...settings, store, clock, runId: run.id, leased });
    const checkpoints = pages.flatMap((items, at) => {
      const window = { page: at + 1, perPage: PER_PAGE };
      const head = `"num_items":${PER_PAGE * at + items.length},"page":${at + 1},"per_page":${PER_PAGE},"total_pages":${at + 1}`;
      const made = pageOfText(`{${head},"items":[${items.join(' ,\n')}]}`, window, filling);
      const rows = isBinary ? toBinary(String(made.items.rows)) : made.items.rows;
      const page = { ...made, items: { ...made.items, rows } };
      const task = { mirror: store.incarnation, runId: run.id, pass: 0, window, from: null, maxAttempts: 1 };
      const response = { sourceTime: 1_000, requestedAt: 1_000, receivedAt: 1_000 };
      return applier.take({ task, page, response, requests: 1 });
    });
    checkpoints.push(...applier.flush());
    expectExactLog(db);
    const found = store.search('book', 1_000);
    return {
      checkpoints: checkpoints.map(({ items, created, updated, removed }) => ({ items, created, updated, removed })),
      living: store.products.living(),
      products: query(
        db,
        `SELECT vbid, title, kind, format, publisher, print_isbn, e_isbn, body, withdrawn, removed_at IS NULL AS living,
           first_seen_at, changed_at FROM products ORDER BY vbid`,
      ),
      found: found.map(({ vbid }) => vbid).sort(),
    };
  } finally {
    store.close();
  }
}

const text = fc.oneof(
  fc.constantFrom('book', 'A book\u0000hidden', 'half \ud800 pair', '\\u0000 book', '"quoted"', 'null', ''),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
);
const item = fc
  .record(
    {
      vbid: fc.nat({ max: 150 }).map((number) => `V${number}`),
      title: text,
      kind: fc.constantFrom('book', null, { name: 'epub' }, 7),
      publisher: fc.oneof(text, fc.record({ name: text })),
      distributable: fc.constantFrom(true, false, 'false'),
      identifiers: fc.record(
        { print_isbn_canonical: text, eisbn_canonical: text, isbn_10: text, fpid: fc.array(text, { maxLength: 2 }) },
        { requiredKeys: [] },
      ),
      contributors: fc.array(fc.record({ name: text }), { maxLength: 2 }),
    },
    { requiredKeys: ['vbid'] },
  )
  .map((made) => JSON.stringify(made));
const broken = fc.constantFrom('{}', '[]', '{"vbid":""}');

it.each(['updated', 'removed'] as const)(
  'filling an empty mirror page by page is the same as product by product (%s)',
  { tags: ['slow'] },
  (withdrawnAs) => {
    const page = fc.array(fc.oneof({ weight: 30, arbitrary: item }, { weight: 1, arbitrary: broken }), {
      maxLength: PER_PAGE,
    });
    fc.assert(
      fc.property(fc.array(page, { minLength: 1, maxLength: 4 }), (pages) => {
        const expected = applied(pages, false, withdrawnAs);
        expect(applied(pages, true, withdrawnAs)).toEqual(expected);
        expect(applied(pages, true, withdrawnAs, true, true)).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  },
);

it('filling an empty mirror takes the first content of a product that is on one page twice', () => {
  const items = ['{"vbid":"V1","title":"A book"}', '{"vbid":"V1","distributable":false}', '{"vbid":"V2"}'];
  for (const filling of [true, false]) {
    const { living, products } = applied([items], filling, 'removed');
    expect(living).toBe(2);
    expect(products).toMatchObject([
      { vbid: 'V1', living: 1 },
      { vbid: 'V2', living: 1 },
    ]);
  }
  const back = applied([[...items, '{"vbid":"V1","title":"A book"}']], true, 'removed');
  expect(back.products).toMatchObject([
    { vbid: 'V1', living: 1 },
    { vbid: 'V2', living: 1 },
  ]);
});

it('filling an empty mirror stores whole parts of a page between products that it knows', () => {
  const items = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => JSON.stringify({ vbid: `V${1_000 + from + at}`, title: 'A book' }));
  const pages = [items(0, 40), items(30, 80), [...items(79, 110), ...items(0, 5), ...items(110, 130)]];
  const made = applied(pages, true, 'updated');
  expect(made.living).toBe(130);
  expect(made).toEqual(applied(pages, false, 'updated'));
});

it.each(['fails', 'is cancelled'])('a first run that %s leaves the indexes for readers', (how) => {
  const { db, store, leased, run } = started();
  const lookups = () =>
    query(
      db,
      "SELECT name FROM sqlite_schema WHERE name IN ('products_changed_at', 'products_print_isbn', 'products_e_isbn')",
    );
  expect(lookups()).toEqual([]);
  if (how === 'fails') failRun(leased, run.id, new CatchwordError('SOURCE_UNAVAILABLE', 'gone'), 2_000);
  else cancelRun(store, run.id, 2_000);
  expect(lookups()).toHaveLength(3);
  store.close();
});

it('a mirror that is being filled has the indexes for readers again when the run ends', () => {
  const store = openStore(mirrorPath());
  const indexes = () =>
    query<{ name: string }>(
      store.path,
      "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'products' ORDER BY name",
    );
  const before = indexes();
  const leased = store.keeperLease.acquire(systemClock.now());
  leased.write(({ products }) => products.dropLookups());
  expect(indexes()).toHaveLength(before.length - 3);
  ensureLookups(leased);
  expect(indexes().map(({ name }) => name)).toEqual(before.map(({ name }) => name));
  store.close();
  // SQLite uses an index on an expression only for the same expression.
  execute(store.path, 'ANALYZE');
  const plan = query(store.path, "EXPLAIN QUERY PLAN SELECT vbid FROM catalog WHERE changed_at > '2026-01-01'");
  expect(JSON.stringify(plan)).toContain('products_changed_at');
});
