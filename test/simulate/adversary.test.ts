import { expect, it } from 'vitest';
import { disturb, type Tally } from './adversary-runs.ts';

/** Chosen so that they find each deliberate bug of sabotage.ts that names this file. */
const SEEDS = 20;
const RUNS = 20;

it('hides no living product from a sealed run, whatever it moves between two requests', () => {
  const tally: Tally = { histories: 0, sealed: 0, resumed: 0, violations: [] };
  for (let seed = 1; seed <= SEEDS; seed++) disturb(seed, RUNS, tally);
  expect(tally.violations).toEqual([]);
  expect(tally.sealed).toBeGreaterThan(SEEDS);
});
