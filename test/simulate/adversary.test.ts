// @module-tag slow
import { expect, it } from 'vitest';
import { disturbKeeper } from './adversary-keeper.ts';
import { disturb } from './adversary-runs.ts';

/* A short part of `npm run adversary`: seeds that find each deliberate bug of sabotage.ts that names this file. */

const SEEDS = [2, 3, 6, 12, 18, 43];
const RUNS = 20;
/** Seeds in which runs are resumed and sealed. */
const KEEPER_SEEDS = [3, 5, 7, 9, 11, 28];
const KEEPER_RUNS = 10;

it('the adversary hides no living product from a sealed run, whatever it moves between two requests', () => {
  let sealed = 0;
  for (const seed of SEEDS) {
    const outcome = disturb(seed, RUNS);
    expect(outcome.violation, `npm run adversary -- --seeds ${seed}`).toBeNull();
    sealed += outcome.sealed;
  }
  expect(sealed).toBeGreaterThan(SEEDS.length);
});

it('the adversary hides no living product from the keeper, whenever processes end and clocks jump', {
  tags: ['slow'],
}, async () => {
  let resumed = 0;
  for (const seed of KEEPER_SEEDS) {
    const outcome = await disturbKeeper(seed, KEEPER_RUNS);
    expect(outcome.violation, `npm run adversary -- --seeds ${seed}`).toBeNull();
    resumed += outcome.sealedAndResumed;
  }
  expect(resumed).toBeGreaterThan(KEEPER_SEEDS.length);
});
