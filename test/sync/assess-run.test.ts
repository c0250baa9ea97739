import { expect, it } from 'vitest';
import { reasonText } from '../../src/report/reason-text.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { assessRun, isClosed, repairsOf } from '../../src/sync/evidence.ts';
import { conclude } from '../../src/sync/verdict.ts';
import {
  DELTA,
  ids,
  MINUTE,
  type PassSketch,
  type RunSketch,
  START,
  sketchRun,
  type WindowSketch,
} from './run-sketch.ts';

/** 14 products in two windows; by default they share products 9 and 10. */
function list(second: Partial<WindowSketch> = {}, more: Partial<PassSketch> = {}): PassSketch {
  return {
    windows: [
      { ids: ids(1, 10), total: 14 },
      { page: 2, perPage: 8, ids: ids(9, 14), total: 14, ...second },
    ],
    ...more,
  };
}

const EXACT: PassSketch = { perPage: 20, windows: [{ ids: ids(1, 14) }] };
const EXACT_BUT_ONE: PassSketch = { perPage: 20, windows: [{ ids: ids(1, 13), total: 14 }] };

function concluded(
  passes: readonly PassSketch[],
  sketch: Partial<RunSketch> = {},
  settled = true,
  withdrawnAs: 'updated' | 'removed' = 'updated',
) {
  const { store, run } = sketchRun({ products: 14, passes, ...sketch });
  const settings = { withdrawnAs, untoldFields: [] };
  const found = conclude(store, run, assessRun(store, run.id), { settled, nextFrom: null }, settings);
  return { ...found, reasons: found.reasons.map(reasonText) };
}

it.each<[string, readonly PassSketch[]]>([
  ['one response', [EXACT]],
  ['joined windows', [list(), DELTA]],
  [
    'a repaired gap',
    [
      list({ ids: ids(11, 14) }),
      DELTA,
      {
        kind: 'repair',
        root: 0,
        windows: [
          { page: 3, perPage: 5, ids: ids(10, 11) },
          { page: 2, perPage: 9, ids: [10, 11, 12] },
        ],
      },
      DELTA,
    ],
  ],
])('the proof of a full run is sealed by %s', (_what, passes) => {
  expect(concluded(passes)).toMatchObject({ proof: 'sealed', reasons: [], countAgrees: true, deltasRead: true });
});

it.each<[string, readonly PassSketch[], string]>([
  [
    'a gap',
    [list({ ids: ids(11, 14) }), DELTA],
    '1 of 2 seams did not close: the windows there share no product that stayed as it was',
  ],
  [
    'a joint that a delta shows as modified',
    [list(), { ...DELTA, windows: [{ ids: [9, 10] }] }],
    '1 of 2 seams did not close: the windows there share no product that stayed as it was',
  ],
  [
    'products in another order',
    [list({ ids: [10, 9, ...ids(11, 14)] }), DELTA],
    'the source lists products in no stable order',
  ],
  [
    'plain pages',
    [list({}, { seam: 0 }), DELTA],
    'CATCHWORD_SEAM is off: plain pages do not overlap, and a product may slip between them',
  ],
  [
    'a fixed page size',
    [list({}, { seam: 0, sizeIgnored: true }), DELTA],
    'the source answers 10 products a page whatever it is asked for, so pages cannot overlap (try CATCHWORD_PER_PAGE=10)',
  ],
  ['a missing delta', [list()], 'the source changed faster than its deltas could be read'],
  [
    'a doubted delta',
    [list(), { ...DELTA, windows: [{ ids: [1], doubt: { code: 'contradiction', said: 'page 1 of 2 holds 1 item' } }] }],
    'the source contradicts itself: page 1 of 2 holds 1 item',
  ],
  [
    'a page from a cache',
    [
      list(),
      { ...DELTA, windows: [{ ids: [1], doubt: { code: 'cached', said: 'a cache answered with an old page' } }] },
    ],
    'a cache answered with an old page',
  ],
  [
    'a larger total',
    [{ perPage: 20, windows: [{ ids: ids(1, 14), total: 15 }] }],
    'the source says that it has 15 products, and 14 were read',
  ],
  [
    'a larger total, after an answer that was empty by mistake',
    [
      { windows: list().windows.map((window) => ({ ...window, total: 15 })) },
      DELTA,
      { kind: 'repair', root: 0, windows: [{ page: 3, perPage: 5, ids: [], total: 0 }] },
      DELTA,
    ],
    'the source says that it has 15 products, and 14 were read',
  ],
  [
    'a rejected item',
    [{ perPage: 20, windows: [{ ids: ids(1, 13), total: 14, rejected: 1 }] }],
    'items were rejected, and each may be a product that was not seen',
  ],
  [
    'an item that only its delta rejected',
    [EXACT, { ...DELTA, windows: [{ ids: [], total: 1, rejected: 1 }] }],
    'items were rejected, and each may be a product that was not seen',
  ],
])('the proof of a full run is open after %s', (_what, passes, reason) => {
  const { proof, reasons } = concluded(passes);
  expect(proof).toBe('open');
  expect(reasons).toContain(reason);
});

it('the proof of a full run counts what only the control tells as modified, unless the product is read after the settling delta', () => {
  const control: PassSketch = { kind: 'catchup', windows: [{ ids: [9, 10] }] };
  const settle: PassSketch = { ...DELTA, kind: 'settle' };
  const repair: PassSketch = { kind: 'repair', root: 0, windows: [{ page: 2, perPage: 9, ids: [9, 10, 11] }] };
  expect(concluded([list(), DELTA, control])).toMatchObject({ proof: 'sealed' });
  expect(concluded([list(), DELTA, control, settle])).toMatchObject({ proof: 'open' });
  expect(concluded([list(), DELTA, control, settle, repair, settle])).toMatchObject({ proof: 'sealed' });
  const told: PassSketch = { ...settle, windows: [{ ids: [9, 10] }] };
  const torn = [list({ ids: ids(11, 14) }), DELTA, control];
  expect(concluded([...torn, told, repair, told])).toMatchObject({ proof: 'open' });
});

const run = { kind: 'delta' as const };

it('the proof of a delta run is not needed for one response', () => {
  expect(concluded([DELTA], run)).toMatchObject({ proof: null, reasons: [], deltasRead: true });
});

it('the proof of a delta run is sealed by joined windows and a delta of the delta', () => {
  expect(concluded([list({}, { kind: 'delta' }), DELTA], run)).toMatchObject({ proof: 'sealed', deltasRead: true });
});

it('the proof of a delta run is open while the delta moves', () => {
  expect(concluded([list({ ids: ids(11, 14) }, { kind: 'delta' })], run)).toMatchObject({
    proof: 'open',
    deltasRead: false,
  });
});

const reason = 'the source says that it has 14 products, and 13 were read';

it('the count of products leaves out withdrawn products that only a delta shows: as many living ones may be unseen', () => {
  const passes = [EXACT_BUT_ONE, { ...DELTA, windows: [{ ids: [14] }] }];
  expect(concluded(passes, { withdrawn: [14] })).toMatchObject({ proof: 'open', reasons: [reason] });
  expect(concluded(passes)).toMatchObject({ proof: 'sealed' });
  // The list counts withdrawn products that it shows.
  const listed = [{ perPage: 20, windows: [{ ids: ids(1, 14) }] }];
  expect(concluded(listed, { withdrawn: [14] })).toMatchObject({ proof: 'sealed' });
});

it('the count of products leaves out a product that a later delta from the same time does not show any more: it is erased', () => {
  const first = { ...DELTA, from: START, windows: [{ ids: [14] }] };
  const later = (from: number, shown: number[]) => [
    EXACT_BUT_ONE,
    first,
    { ...DELTA, kind: 'settle' as const, from, windows: [{ ids: shown }] },
  ];
  expect(concluded(later(START, []))).toMatchObject({ proof: 'open', reasons: [reason] });
  expect(concluded(later(START - 1, []))).toMatchObject({ proof: 'open', reasons: [reason] });
  expect(concluded(later(START, [14]))).toMatchObject({ proof: 'sealed' });
  // It does not tell what changed before.
  expect(concluded(later(START + 1, []))).toMatchObject({ proof: 'sealed' });
});

it.each<[string, readonly PassSketch[]]>([
  ['a lookup', [EXACT_BUT_ONE, DELTA, { kind: 'lookup', windows: [{ page: 14, perPage: 1, ids: [14] }] }, DELTA]],
  ['an earlier reading', [list(), DELTA, list({ ids: ids(9, 13) }), DELTA]],
])(
  'the count of products leaves out a product that only %s shows: the list may not hold it any more',
  (_what, passes) => {
    expect(concluded(passes)).toMatchObject({ proof: 'open', reasons: [reason] });
  },
);

it('the count of products includes products that were withdrawn before the mirror knew them, if it does not take up these', () => {
  const passes = [list({ ids: [...ids(9, 13), 0] }), DELTA];
  expect(concluded(passes)).toMatchObject({ proof: 'open', reasons: [reason], countAgrees: false });
  const removed = concluded(passes, { products: 13 }, true, 'removed');
  expect(removed).toMatchObject({ proof: 'sealed', countAgrees: true });
  // Once, where two windows cover it.
  const twice: PassSketch = {
    windows: [
      { ids: [...ids(1, 9), 0], total: 15 },
      { page: 2, perPage: 8, ids: [9, 0, ...ids(10, 13)], total: 15 },
    ],
  };
  expect(concluded([twice, DELTA], { products: 13 }, true, 'removed')).toMatchObject({ proof: 'open' });
  // Also if the list moves by one between the two.
  const moved: PassSketch = {
    windows: [
      { ids: [...ids(1, 9), 0], total: 16 },
      { page: 2, perPage: 8, ids: [8, 9, 0, ...ids(10, 13)], total: 16 },
    ],
  };
  expect(concluded([moved, DELTA], { products: 13 }, true, 'removed')).toMatchObject({ proof: 'open' });
  const all: PassSketch = { windows: moved.windows.map((window) => ({ ...window, total: 14 })) };
  expect(concluded([all, DELTA], { products: 13 }, true, 'removed')).toMatchObject({ proof: 'sealed' });
});

it.each<[string, readonly PassSketch[], number, boolean]>([
  ['rests on joints', [list(), DELTA], 14, true],
  ['rests on one response that holds every product', [EXACT], 14, false],
  ['rests on the absence of a product', [EXACT], 15, true],
])('a conclusion that %s: must settle is %4$s', (_what, passes, products, mustSettle) => {
  expect(concluded(passes, { products }, false).mustSettle).toBe(mustSettle);
  expect(concluded(passes, { products }, true).mustSettle).toBe(false);
});

it('a conclusion must settle if it leaves a delta in part that the settling delta tells again, and needs it if none follows', () => {
  const still: PassSketch = {
    perPage: 20,
    windows: [
      { ids: ids(1, 20), total: 25 },
      { page: 2, perPage: 15, ids: ids(16, 25), total: 25 },
    ],
  };
  const torn = list({ ids: ids(11, 14) }, { kind: 'delta' });
  function after(nextFrom: number | null) {
    const { store, run } = sketchRun({ products: 25, passes: [still, torn] });
    const assessment = assessRun(store, run.id);
    return conclude(store, run, assessment, { settled: false, nextFrom }, { withdrawnAs: 'updated', untoldFields: [] });
  }
  expect(after(START - MINUTE)).toMatchObject({ proof: 'sealed', reasons: [], mustSettle: true });
  for (const nextFrom of [START + MINUTE, null]) expect(after(nextFrom)).toMatchObject({ proof: 'open' });
});

it('a conclusion must settle for a delta that stood still, if what joins its windows was modified later', () => {
  const windows = [
    { ids: ids(1, 20), total: 25 },
    { page: 2, perPage: 15, ids: ids(16, 25), total: 25 },
  ];
  const whole: PassSketch = { perPage: 30, windows: [{ ids: ids(1, 25) }] };
  const delta: PassSketch = { perPage: 20, windows, kind: 'delta' };
  const later: PassSketch = { kind: 'delta', from: START + MINUTE, windows: [{ ids: ids(16, 20) }] };
  const { store, run } = sketchRun({ products: 25, passes: [whole, delta, later] });
  const assessment = assessRun(store, run.id);
  const settling = { settled: false, nextFrom: START - MINUTE };
  const found = conclude(store, run, assessment, settling, { withdrawnAs: 'updated', untoldFields: [] });
  expect(found).toMatchObject({ proof: 'sealed', mustSettle: true });
});

it('a conclusion must settle before it moves the watermark on a list whose deltas show products in part', () => {
  const { store, run } = sketchRun({ products: 14, passes: [list(), DELTA] });
  writeUnder(store.keeperLease, START, ({ runs }) =>
    runs.noteInPart(run.id, { items: 1, leftOut: ['title'], shown: [] }),
  );
  const found = conclude(
    store,
    run,
    assessRun(store, run.id),
    { settled: false, nextFrom: null },
    { withdrawnAs: 'updated', untoldFields: [] },
  );
  expect(found).toMatchObject({ proof: 'open', listRead: true, mustSettle: true });
});

it('a conclusion names the figures that it compared where a list has repeats', () => {
  const windows = [
    { ids: [...ids(1, 9), 9], total: 12 },
    { page: 2, perPage: 8, ids: [9, 9, 10, 11, 5], total: 12 },
  ];
  expect(concluded([{ windows }, DELTA], { products: 12 }).reasons).toContain(
    'the list has 13 items, and 12 were read',
  );
});

it('a conclusion does not confirm missing products if items were rejected or the total is larger', () => {
  const rejected = { perPage: 20, windows: [{ ids: ids(1, 14), total: 14, rejected: 1 }] };
  const larger = { perPage: 20, windows: [{ ids: ids(1, 14), total: 15 }] };
  expect([EXACT, rejected, larger].map((pass) => concluded([pass]).countAgrees)).toEqual([true, false, false]);
  const untold = { ...DELTA, windows: [{ ids: [], total: 1, rejected: 1 }] };
  expect(concluded([EXACT, untold]).countAgrees).toBe(false);
});

it('a conclusion starts at the earliest delta', () => {
  const deltas = [3, 7, 5].map((minutes) => ({ ...DELTA, from: START - minutes * MINUTE }));
  expect(concluded([list(), ...deltas]).deltaFrom).toBe(START - 7 * MINUTE);
});

it('products of deltas and lookups count as seen, but not as listed', () => {
  const { store, run } = sketchRun({
    products: 20,
    passes: [
      list(),
      { kind: 'delta', windows: [{ ids: [9, 15] }] },
      {
        kind: 'lookup',
        windows: [
          { page: 16, perPage: 1, ids: [16] },
          { page: 17, perPage: 1, ids: [] },
        ],
      },
    ],
  });
  const { seen, listed } = assessRun(store, run.id);
  expect(ids(1, 20).filter((id) => seen.has(id))).toEqual(ids(1, 16));
  expect(ids(1, 20).filter((id) => listed.has(id))).toEqual(ids(1, 14));
});

it.each<[string, PassSketch, boolean]>([
  ['one response', DELTA, true],
  [
    'windows that hold the same products where they overlap',
    {
      kind: 'delta',
      perPage: 20,
      windows: [
        { ids: ids(1, 20), total: 25 },
        { page: 2, perPage: 15, ids: ids(16, 25), total: 25 },
      ],
    },
    true,
  ],
  ['windows that share too few products', list({}, { kind: 'delta' }), false],
  ['windows with a gap', list({ ids: ids(11, 14) }, { kind: 'delta' }), false],
  ['a doubted response', { kind: 'delta', windows: [{ ids: [1], doubt: { code: 'cached', said: '' } }] }, false],
  ['a repair', { kind: 'repair', root: 0, windows: [{ ids: [1] }] }, false],
])('a delta of %s is closed: %3$s', (_what, sketch, closed) => {
  const { store, run } = sketchRun({ products: 25, passes: [sketch] });
  expect(store.runs.passes(run.id).map((pass) => isClosed(store, pass))).toEqual([closed]);
});

function repairsAfter(...passes: PassSketch[]): string[] {
  const { store, run } = sketchRun({ products: 160, passes });
  const { list: read } = assessRun(store, run.id);
  const windows = read === undefined ? [] : repairsOf(read);
  return windows.map(({ page, perPage }) => `${(page - 1) * perPage}-${page * perPage - 1}`);
}

/** A list of 160 products with a gap at offset 90. */
const torn: PassSketch = {
  perPage: 100,
  windows: [
    { ids: ids(1, 100), total: 160 },
    { page: 2, perPage: 90, ids: ids(101, 160), total: 160 },
  ],
};
const useless: PassSketch = { kind: 'repair', root: 0, windows: [{ page: 3, perPage: 40, ids: [] }] };

it('repairs of a list cover the gap, with a larger overlap each time', () => {
  expect(repairsAfter(torn, DELTA)).toEqual(['0-99', '96-191']);
  expect(repairsAfter(torn, DELTA, useless, DELTA)).toEqual(['0-99', '92-183']);
});

it('repairs of a list are not made for a list without gaps, without a stable order, or with many doubted pages', () => {
  expect(repairsAfter(list(), DELTA)).toEqual([]);
  expect(repairsAfter(list({ ids: [10, 9, ...ids(11, 14)] }), DELTA)).toEqual([]);
  expect(repairsAfter(list({ ids: ids(11, 14), doubt: { code: 'contradiction', said: 'too short' } }), DELTA)).toEqual(
    [],
  );
});

it('plain pages of a delta are whole if they show a product twice in one response, or if nothing is missing', () => {
  const first = { ids: ids(1, 10), total: 14 };
  const pages = (second: number[], total = 14): PassSketch => ({
    kind: 'delta',
    seam: 0,
    windows: [
      { ...first, total },
      { page: 2, ids: second, total },
    ],
  });
  const read = (second: number[], later: PassSketch = DELTA) =>
    concluded([EXACT, pages(second), { ...later, from: START + 1 }]).deltasRead;
  expect(read(ids(11, 14))).toBe(true);
  expect(read([11, 12, 12, 13])).toBe(true);
  // Twice in two responses: it may have moved, and then another product may be hidden.
  expect(read([10, 11, 12, 13])).toBe(false);
  // A later delta tells of the product that is there twice.
  expect(read([11, 12, 12, 13], { ...DELTA, windows: [{ ids: [12] }] })).toBe(false);
});

it('a total that counts each product once is not met by the second place of a product', () => {
  const agrees = (second: number[], total: number) => {
    const windows = [
      { ids: [...ids(1, 9), 9], total },
      { page: 2, perPage: 8, ids: second, total },
    ];
    return concluded([{ windows }, DELTA], { products: 12 }).countAgrees;
  };
  expect(agrees([9, 9, 10, 11, 12], 13)).toBe(true);
  expect(agrees([9, 9, 10, 11, 12], 12)).toBe(true);
  // Product 5 is where 12 was, and 13 items were listed.
  expect(agrees([9, 9, 10, 11, 5], 13)).toBe(false);
  expect(agrees([9, 9, 10, 11, 5], 12)).toBe(false);
});

it('a product that only the repair of an earlier delta told joins no windows that were read before that repair', () => {
  const repair = (root: number, windows: readonly WindowSketch[]): PassSketch => ({ kind: 'repair', root, windows });
  const passes = [
    list({ ids: ids(11, 14) }),
    DELTA,
    { ...DELTA, kind: 'settle' as const },
    // Both hold 15, which was touched in between.
    repair(0, [
      { page: 3, perPage: 5, ids: [7, 8, 9, 10, 15] },
      { page: 2, perPage: 9, ids: [15, ...ids(11, 14)] },
    ]),
    DELTA,
    repair(2, [{ ids: [15] }]),
    DELTA,
    { ...DELTA, kind: 'settle' as const },
  ];
  const told = passes.map((pass, at) => (at === 5 ? repair(2, [{ ids: [1] }]) : pass));
  expect(concluded(told, { products: 15 }).proof).toBe('sealed');
  expect(concluded(passes, { products: 15 }).reasons).toContain(
    '1 of 2 seams did not close: the windows there share no product that stayed as it was',
  );
});
