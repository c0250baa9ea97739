import { systemClock } from '@catchword/base/clock';
import { createLog } from '@catchword/base/log';
import type { CapturedPage } from '@catchword/catalog/page-types';
import { sourceIdentity } from '@catchword/catalog/source-identity';
import { pageOfText } from '@catchword/testing/page';
import { execute } from '@catchword/testing/sqlite';
import { expect, it, onTestFinished } from 'vitest';
import type { Leased } from '../../src/store/schema/lease.ts';
import type { KeeperWriter } from '../../src/store/schema/writers.ts';
import type { Store } from '../../src/store/store.ts';
import { type Applier, createPageApplier } from '../../src/sync/apply-page.ts';
import { createPageComparer } from '../../src/sync/fast/page-comparer.ts';
import { cancelRun } from '../../src/sync/finish-run.ts';
import { startRun } from '../../src/sync/keeper.ts';
import { openedStore } from '../store/opened-store.ts';
import { expectExactLog } from '../support/mirror.ts';

const PER_PAGE = 10;

interface Place {
  readonly db: string;
  readonly store: Store;
  readonly runId: number;
  readonly applier: Applier;
  readonly leased: Leased<KeeperWriter>;
}

function place(ignoreFields: string[][] = []): Place {
  const store = openedStore();
  const leased = store.keeperLease.acquire(systemClock.now());
  const source = sourceIdentity({ baseUrl: 'https://catalog.example', includeDetails: [], currency: [] });
  const settings = { perPage: PER_PAGE, seam: 0, overlapMs: 0, source };
  const run = startRun(leased, { kind: 'full' }, settings, systemClock.now());
  if (run === null) throw new Error('no run was started');
  const runId = run.id;
  return { db: store.path, store, runId, applier: applierOf(store, runId, leased, ignoreFields), leased };
}

function applierOf(store: Store, runId: number, leased: Leased<KeeperWriter>, ignoreFields: string[][] = []): Applier {
  const limits = { overlapMs: 300_000, lossLimit: { products: 3 } };
  const settings = {
    ignoreFields,
    volatileFields: [],
    withdrawnAs: 'updated',
    ...limits,
    log: createLog('fatal'),
  } as const;
  return createPageApplier({ ...settings, store, clock: systemClock, runId, leased });
}

interface Read {
  /** Numbers the windows: each of another size, and all at the head of the list, so that they show the same places. */
  readonly page?: number;
  readonly at?: number;
  readonly pass?: number;
}

/** A captured page that holds these items, as texts. */
function captured(
  { store, runId }: Place,
  items: readonly string[],
  { page = 1, at = 1_000, pass = 0 }: Read = {},
): CapturedPage {
  const window = { page: 1, perPage: PER_PAGE + page - 1 };
  const text = `{"num_items":${items.length},"page":1,"per_page":${window.perPage},"total_pages":1,"items":[${items.join(',')}]}`;
  return {
    task: { mirror: store.incarnation, runId, pass, window, from: null, maxAttempts: 1 },
    page: pageOfText(text, window),
    response: { sourceTime: at, requestedAt: at, receivedAt: at },
    requests: 1,
  };
}

function product(vbid: string, title: string): string {
  return JSON.stringify({ vbid, title });
}

function apply({ applier }: Place, ...pages: CapturedPage[]) {
  return [...pages.flatMap((page) => applier.take(page)), ...applier.flush()];
}

function titleOf({ store }: Place, vbid: string): unknown {
  return (JSON.parse(store.products.get(vbid)?.body ?? '{}') as { title?: string }).title;
}

it('a window is applied once', () => {
  const at = place();
  expect(apply(at, captured(at, [product('A', '1')]))).toMatchObject([{ created: 1, updated: 0 }]);
  expect(apply(at, captured(at, [product('A', '2')]))).toEqual([]);
  expect(titleOf(at, 'A')).toBe('1');
  expect(expectExactLog(at.db)).toBe(1);
});

it('a page writes nothing for unchanged products, whatever the order of their keys', () => {
  const at = place();
  const items = ['{"vbid":"A","n":{"x":1,"y":[2]}}', '{"vbid":"B"}'];
  apply(at, captured(at, items));
  const again = captured(at, ['{"n": {"y":[2],"x":1}, "vbid":"A"}', '{"vbid":"B"}'], { page: 2 });
  expect(apply(at, again)).toMatchObject([{ created: 0, updated: 0, items: 2 }]);
  expect(expectExactLog(at.db)).toBe(2);
});

it('a page is not compared by ignored fields', () => {
  const at = place([['views']]);
  apply(at, captured(at, ['{"vbid":"A","views":1}']));
  expect(apply(at, captured(at, ['{"vbid":"A","views":2}'], { page: 2 }))).toMatchObject([{ updated: 0 }]);
});

it('a page notes what it shows of products by content that the settings ignore, whatever the order of the keys', () => {
  const at = place([['views']]);
  const texts = [
    '{"vbid":"A","views":1}',
    '{"vbid":"A","views":2}',
    '{"views":2,"vbid":"A"}',
    '{"vbid":"A","views":3}',
  ];
  const shown = texts.map((text, page) => {
    apply(at, captured(at, [text], { page: page + 1 }));
    return at.store.runs
      .checkpoints(at.runId, 0)
      .flatMap((one) => (one.perPage === PER_PAGE + page ? [at.store.runs.shownIn(at.runId, 0, one).get(1)] : []))[0];
  });
  expect(shown[0]).toBeUndefined();
  expect(shown[1]).toEqual(expect.any(Number));
  expect(shown[2]).toBe(shown[1]);
  expect(new Set(shown).size).toBe(3);
});

it('a product that comes twice gets at most one version and one record, and on a page of the list the first one counts', () => {
  const at = place();
  apply(at, captured(at, [product('A', '1'), product('A', '2')]));
  expect(titleOf(at, 'A')).toBe('1');
  // First on two pages of a batch, then twice on one page.
  apply(at, captured(at, [product('B', '1')], { page: 2 }), captured(at, [product('B', '1')], { page: 3 }));
  expect(expectExactLog(at.db)).toBe(2);
  apply(at, captured(at, [product('B', '1'), product('B', '5')], { page: 4, at: 2_000 }));
  expect(expectExactLog(at.db)).toBe(2);
});

it.each(['in order', 'late', 'in one batch', 'late in one batch'])('the read that started later is kept, %s', (how) => {
  const at = place();
  apply(at, captured(at, [product('A', 'first')], { page: 1, at: 1_000 }));
  const earlier = captured(at, [product('A', 'earlier')], { page: 2, at: 2_000 });
  const later = captured(at, [product('A', 'later')], { page: 3, at: 3_000 });
  const pages = how.startsWith('late') ? [later, earlier] : [earlier, later];
  if (how.endsWith('batch')) apply(at, ...pages);
  else for (const page of pages) apply(at, page);
  expect(titleOf(at, 'A')).toBe('later');
  expectExactLog(at.db);
});

it('a later read without changes counts as a read', () => {
  const at = place();
  apply(at, captured(at, [product('A', 'now')], { page: 1, at: 1_000 }));
  const later = captured(at, [product('A', 'now')], { page: 3, at: 3_000 });
  const earlier = captured(at, [product('A', 'before')], { page: 2, at: 2_000 });
  expect(apply(at, later, earlier)).toMatchObject([{ updated: 0 }, { updated: 0 }]);
  expect(titleOf(at, 'A')).toBe('now');
});

it('a product is compared again that was changed after a page was compared', () => {
  const at = place();
  const both = [product('A', '1'), product('B', '1')];
  apply(at, captured(at, both));
  const comparer = createPageComparer(at.db);
  onTestFinished(() => comparer.close());
  const late = captured(at, both, { page: 2, at: 3_000 });
  const page = comparer.compare(late.page.items.bytes, late.task);
  if (page === null) throw new Error('the page was not compared');
  expect([...(page.matched?.ids ?? [])]).toEqual([1, 2]);
  apply(at, captured(at, [product('A', '2')], { page: 3, at: 2_000 }));
  expect(apply(at, { ...late, page })).toMatchObject([{ items: 2, updated: 1 }]);
  expect([titleOf(at, 'A'), titleOf(at, 'B')]).toEqual(['1', '1']);
  expect(expectExactLog(at.db)).toBe(4);
});

it('a batch is written when its rejected items are large, so that memory stays flat', () => {
  const at = place();
  apply(at, captured(at, [product('A', '1')]));
  const rejected = `{"title":"${'x'.repeat(900_000)}"}`;
  const written = Array.from(
    { length: 10 },
    (_, page) => at.applier.take(captured(at, [rejected], { page: page + 2 })).length,
  );
  expect(Math.max(...written)).toBe(9);
});

it('a page restores a removed product', () => {
  const at = place();
  apply(at, captured(at, [product('A', '1'), product('B', '1')]));
  execute(
    at.db,
    `
      INSERT INTO changes (at, run_id, op, product_id, prev_seq) SELECT 1, 1, 2, id, changed_seq FROM products WHERE vbid = 'A';
      UPDATE products SET removed_at = 1, changed_seq = 3 WHERE vbid = 'A'; UPDATE mirror SET living = 1`,
  );
  expectExactLog(at.db);
  expect(apply(at, captured(at, [product('A', '1')], { page: 2 }))).toMatchObject([{ restored: 1, updated: 0 }]);
  expect(titleOf(at, 'A')).toBe('1');
  expect(expectExactLog(at.db)).toBe(4);
});

it('rejected items are kept, with the reason', () => {
  const at = place();
  apply(at, captured(at, [product('A', '1'), '{"title":"no key"}', product('B', '1')]));
  expect(at.store.runs.rejected(10, { run: at.runId })).toMatchObject([
    { page: 1, position: 1, body: '{"title":"no key"}' },
  ]);
  expect([...at.store.runs.eachIds(at.runId)]).toEqual([[1, 0, 2]]);
});

it('a page writes nothing after the lease was lost or the run was cancelled', () => {
  const at = place();
  apply(at, captured(at, [product('A', '1')]));
  at.leased.release();
  const leased = at.store.keeperLease.acquire(systemClock.now());
  expect(() => apply(at, captured(at, [product('B', '1')], { page: 2 }))).toThrow(
    expect.objectContaining({ code: 'LEASE_LOST' }),
  );
  const applier = applierOf(at.store, at.runId, leased);
  cancelRun(at.store, at.runId, systemClock.now());
  expect(() => apply({ ...at, applier }, captured(at, [product('B', '1')], { page: 2 }))).toThrow(
    expect.objectContaining({ code: 'RUN_CANCELLED' }),
  );
  expect(at.store.products.get('B')).toBeUndefined();
  expect(expectExactLog(at.db)).toBe(1);
});

it('a resumed run goes on counting what its updates empty, and counts a page once', () => {
  const at = place();
  const ids = ['A', 'B', 'C', 'D', 'E', 'F', 'G'];
  apply(
    at,
    captured(
      at,
      ids.map((vbid) => product(vbid, '1')),
    ),
  );
  const empty = (page: number, ...some: string[]) =>
    captured(
      at,
      some.map((vbid) => product(vbid, '')),
      { page },
    );
  apply(at, empty(2, 'A', 'B'), empty(3, 'C'));
  expect(at.store.runs.unusual(0)).toBeUndefined();
  // As another process, which has read the last page before the first one ended.
  const resumed = { ...at, applier: applierOf(at.store, at.runId, at.leased) };
  expect(apply(resumed, empty(3, 'C', 'D'))).toEqual([]);
  expect(at.store.runs.get(at.runId)).toMatchObject({ emptied: { title: 3 }, unusual: null });
  const from = at.store.changes.lastSeq() + 1;
  apply(resumed, captured(at, [product('D', '2')], { page: 4 }), empty(5, 'D', 'E'));
  const unusual = { from, field: 'title', products: 5, living: 7 };
  expect(at.store.runs.unusual(0)).toEqual({ ...unusual, run: at.runId });
  apply(resumed, empty(6, 'F'));
  expect(at.store.runs.get(at.runId)).toMatchObject({ emptied: { title: 6 }, unusual: { ...unusual, products: 6 } });
  expect(at.store.runs.unusual(at.runId)).toBeUndefined();
  expect(at.store.runs.lastUnusual()).toBe(at.runId);
});

it('a transaction that fails counts nothing that its updates empty', () => {
  const at = place();
  apply(at, captured(at, [product('A', '1'), product('B', '1')]));
  at.applier.take(captured(at, [product('A', '')], { page: 2 }));
  execute(at.db, "CREATE TRIGGER refuse BEFORE UPDATE OF emptied ON runs BEGIN SELECT RAISE(ABORT, 'no'); END");
  expect(() => at.applier.flush()).toThrow();
  execute(at.db, 'DROP TRIGGER refuse');
  expect(at.store.runs.get(at.runId)).toMatchObject({ emptied: null, unusual: null });
  expect(titleOf(at, 'A')).toBe('1');
});

it('a product that is restored without a field was not emptied by an update', () => {
  const at = place();
  apply(at, captured(at, [product('A', '1')]));
  at.leased.write(({ removals }) => removals.remove([1], at.runId, 1));
  expect(apply(at, captured(at, [product('A', '')], { page: 2 }))).toMatchObject([{ restored: 1, updated: 0 }]);
  expect(at.store.runs.get(at.runId)).toMatchObject({ emptied: null, unusual: null });
});
