import { sourceIdentity } from '@catchword/catalog/source-identity';
import { expect, it } from 'vitest';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { undoRun } from '../../src/sync/approve-held-run.ts';
import { finishRun } from '../../src/sync/finish-run.ts';
import { nextStep } from '../../src/sync/next-step.ts';
import { drawScenario } from '../simulate/scenario.ts';
import { settingsOf } from '../simulate/set-up.ts';
import { DELTA, ids, MINUTE, type PassSketch, START, sketchRun } from './run-sketch.ts';

const SOURCE = sourceIdentity({ baseUrl: 'http://127.0.0.1', includeDetails: [], currency: [] });
const OWN = { source: SOURCE, overlapMs: 5 * MINUTE, maxPasses: 1, lookups: false };
const SETTINGS = { ...settingsOf(drawScenario(1)), ...OWN };
const UNORDERED: PassSketch = {
  windows: [
    { ids: ids(1, 10), total: 14 },
    { page: 2, perPage: 8, ids: [10, 9, ...ids(11, 14)], total: 14 },
  ],
};

it('a run that ends open notes that the clock of the source was put back, although it is forward again', () => {
  const back = { ...DELTA, behind: 60 * MINUTE };
  const earlier = { ...DELTA, from: START - 70 * MINUTE };
  const { store, run } = sketchRun({ products: 14, passes: [UNORDERED, back, earlier], watermarkAgo: 10 * MINUTE });
  const step = nextStep(store, run, SETTINGS);
  if (step.kind !== 'finish') throw new Error(`the run goes on with ${step.pass.kind}`);
  const leased = store.keeperLease.acquire(START);
  finishRun(leased, run.id, step.conclusion, SETTINGS, START + 3 * MINUTE);
  leased.release();
  expect(store.readUpTo()).toBeLessThanOrEqual(START - 59 * MINUTE);
  expect(store.watermark()).toBeGreaterThanOrEqual(START - 10 * MINUTE);
});

it('a run that undoes removals lets the next delta tell again what the run was told', () => {
  const told = { ...DELTA, from: START - 20 * MINUTE, windows: [{ ids: [3] }] };
  const { store, run } = sketchRun({ products: 14, passes: [told], kind: 'delta', watermarkAgo: MINUTE });
  writeUnder(store.keeperLease, START, ({ removals, runs }) => {
    removals.remove([3], run.id, START);
    runs.end(run.id, {
      state: 'complete',
      finishedAt: START,
      counts: runs.counts(run.id),
      proof: null,
      reasons: [],
      error: null,
    });
  });
  const leased = store.keeperLease.acquire(START + 40 * MINUTE);
  expect(undoRun(leased, run.id, START)).toBe(1);
  leased.release();
  expect(store.readUpTo()).toBe(START - 20 * MINUTE);
});
