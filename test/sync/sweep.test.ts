import { expect, it } from 'vitest';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { assessRun } from '../../src/sync/evidence.ts';
import { type SweepSettings, sweep } from '../../src/sync/sweep.ts';
import { type Conclusion, conclude } from '../../src/sync/verdict.ts';
import { ids, MINUTE, type PassSketch, type RunSketch, START, sketchRun } from './run-sketch.ts';

const SETTINGS: SweepSettings = { removalLimit: { products: 3 }, confirmations: 2 };
/** Every product from 1 to 10, in one response. */
const LIST: PassSketch = { perPage: 20, windows: [{ ids: ids(1, 10) }] };

interface Case extends Partial<RunSketch> {
  readonly conclusion?: Partial<Conclusion>;
  readonly settings?: Partial<SweepSettings>;
  /** Full runs that have missed these products before. */
  readonly missedBefore?: readonly number[];
}

function sweepOf({ conclusion, settings, missedBefore = [], ...sketch }: Case) {
  const { store, run } = sketchRun({ products: 12, passes: [LIST], ...sketch });
  writeUnder(store.keeperLease, START, ({ removals }) => removals.noteMissing(missedBefore));
  const concluded = {
    ...conclude(
      store,
      run,
      assessRun(store, run.id),
      { settled: true, nextFrom: null },
      { withdrawnAs: 'updated', untoldFields: [] },
    ),
    ...conclusion,
  };
  return sweep(store, run, concluded, { ...SETTINGS, ...settings });
}

it('products that a sealed run did not see are removed', () => {
  expect(sweepOf({})).toEqual({ remove: [11, 12], missing: [], hold: null });
});

it('products that a sealed run did not see are held beyond the limit, announced ones too', () => {
  expect(sweepOf({ products: 14, withdrawn: [14] })).toMatchObject({ remove: [11, 12, 13, 14], hold: null });
  expect(sweepOf({ products: 15, withdrawn: [15] })).toMatchObject({
    remove: [11, 12, 13, 14, 15],
    hold: { why: { code: 'limit', removals: 4, limit: 3, announced: 1 } },
  });
});

it('products that a sealed run did not see are held if the source lists nothing', () => {
  const passes = [{ windows: [{ ids: [] }] }];
  expect(sweepOf({ products: 2, passes }).hold?.why).toEqual({ code: 'empty' });
  // Also if the source announced that it would withdraw all of them.
  expect(sweepOf({ products: 2, passes, withdrawn: [1, 2] }).hold?.why).toEqual({ code: 'empty' });
  expect(sweepOf({ products: 0, passes }).hold).toBeNull();
});

const open = { conclusion: { proof: 'open' as const } };

it('products that an open run did not see are missing', () => {
  expect(sweepOf(open)).toEqual({ remove: [], missing: [11, 12], hold: null });
});

it('products that an open run did not see are removed when enough runs in a row did not see them', () => {
  expect(sweepOf({ ...open, missedBefore: [12] })).toMatchObject({ remove: [12], missing: [11] });
  expect(sweepOf({ ...open, missedBefore: [12], settings: { confirmations: 3 } })).toMatchObject({ remove: [] });
});

it('products that an open run did not see are not confirmed by a run whose count does not agree', () => {
  const conclusion = { ...open.conclusion, countAgrees: false };
  expect(sweepOf({ conclusion, missedBefore: [11, 12] })).toMatchObject({ remove: [], missing: [11, 12] });
});

const found = { page: 1, perPage: 1, ids: [1] };
const notFound = { page: 12, perPage: 1, ids: [], after: 1_000 };
const foundLater = { page: 2, perPage: 1, ids: [2], after: 2_000 };
function lookedUp(...windows: PassSketch['windows']): Case {
  return { ...open, passes: [LIST, { kind: 'lookup', windows }] };
}

it('products that an open run did not see are removed when a lookup does not find them', () => {
  expect(sweepOf(lookedUp(found, notFound, foundLater))).toMatchObject({ remove: [12], missing: [11] });
});

it('products that an open run did not see are not removed by a lookup unless others found a product before it and after it, near in time', () => {
  expect(sweepOf(lookedUp(found, notFound))).toMatchObject({ remove: [] });
  expect(sweepOf(lookedUp(notFound, foundLater))).toMatchObject({ remove: [] });
  expect(sweepOf(lookedUp(found, { ...foundLater, after: 500 }, notFound))).toMatchObject({ remove: [] });
  const hours = { after: 20 * 60 * MINUTE };
  expect(sweepOf(lookedUp(found, { ...notFound, ...hours }, { ...foundLater, ...hours }))).toMatchObject({
    remove: [],
  });
});

it("products that an open run did not see are held if the source's total is far from what was read", () => {
  const { passes = [] } = lookedUp(found, notFound, foundLater);
  const short = { perPage: 20, windows: [{ ids: ids(1, 10), total: 14 }] };
  expect(sweepOf({ ...open, passes: [short, ...passes.slice(1)] })).toMatchObject({
    remove: [12],
    hold: { why: { code: 'count', wanted: 14, read: 10, of: 'total' } },
  });
});

it('products that an open run did not see are not removed by lookups that do not find a product that exists, or are doubted', () => {
  expect(sweepOf(lookedUp({ ...found, ids: [] }, notFound, foundLater))).toMatchObject({ remove: [] });
  const doubted = { ...notFound, doubt: { code: 'cached', said: 'a cache answered' } } as const;
  expect(sweepOf(lookedUp(found, doubted, foundLater))).toMatchObject({ remove: [] });
});

it('products that an open run did not see are not removed by lookups of a run that has not settled', () => {
  const conclusion = { ...open.conclusion, mustSettle: true };
  expect(sweepOf({ ...lookedUp(found, notFound, foundLater), conclusion })).toMatchObject({
    remove: [],
    missing: [11, 12],
  });
});
