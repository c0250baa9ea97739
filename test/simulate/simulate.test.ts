import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Scenario, simulate } from './history.ts';
import { SABOTAGES } from './sabotage.ts';

const SEEDS = 500;
const PARTS = 10;

const TIES: Partial<Scenario> = { order: 'ties', seam: 3, perPage: 50, size: 600, withdrawn: 'gone', churn: 1 };

/** Histories that showed a defect once, of the code or of a deliberate bug that was hard to find. */
const KEPT: readonly (readonly [number, Partial<Scenario>])[] = [
  [5, { ...TIES, churn: 0.5 }],
  [7, { ...TIES, churn: 3 }],
  [8, TIES],
  [766, { order: 'unstable', clockJumpMs: 3_193_972, sourceSkewMs: 86_400_000, runs: ['full', 'full'] }],
  [17, { perPage: 50, seam: 5, size: 902, clockJumpMs: 7_129_905, lagMs: 139_150, churn: 3 }],
  [71, { clockJumpMs: 5_000_000, order: 'updated-asc', perPage: 50, size: 700, churn: 1 }],
  [3, { outage: true, perPage: 100, size: 500, churn: 1 }],
  [3415, {}],
  [3999, {}],
];

describe('simulated histories', () => {
  it.each(Array.from({ length: PARTS }, (_, part) => part))('hold, part %i', { timeout: 120_000 }, async (part) => {
    for (let n = 0; n < SEEDS / PARTS; n++) {
      const seed = 1 + part * (SEEDS / PARTS) + n;
      const { violation } = await simulate(seed);
      expect(violation, `npm run simulate -- --seeds ${seed} --trace`).toBeNull();
    }
  });

  it('that once showed a defect hold', { timeout: 120_000 }, async () => {
    for (const [seed, scenario] of KEPT) {
      expect((await simulate(seed, { scenario })).violation, `seed ${seed}`).toBeNull();
    }
  });

  it('are the same for the same seed, byte for byte', async () => {
    for (const seed of [3, 8, 15]) {
      const [first, second] = [await simulate(seed), await simulate(seed)];
      expect(first.trace.length).toBeGreaterThan(1_000);
      expect(second.trace).toBe(first.trace);
    }
  });
});

describe('the deliberate bugs', () => {
  it('are at least twenty, and each can still be made', () => {
    expect(SABOTAGES.length).toBeGreaterThanOrEqual(20);
    for (const { name, edits } of SABOTAGES) {
      for (const { file, find, replace } of edits) {
        const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
        expect(text.split(find), `${name}: ${file}`).toHaveLength(2);
        expect(replace).not.toBe(find);
      }
    }
  });
});
