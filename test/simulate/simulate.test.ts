import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { simulate } from './history.ts';
import { SABOTAGES } from './sabotage.ts';

const SEEDS = 500;
const PARTS = 10;

/** Seeds that found a defect once. */
const KEPT = [71, 114, 210, 558, 766, 888, 1094, 1228, 1513, 1600, 1987, 2148];

describe('simulated histories', () => {
  it.each(Array.from({ length: PARTS }, (_, part) => part))('hold, part %i', { timeout: 120_000 }, async (part) => {
    for (let n = 0; n < SEEDS / PARTS; n++) {
      const seed = 1 + part * (SEEDS / PARTS) + n;
      const { violation } = await simulate(seed);
      expect(violation, `npm run simulate -- --seeds ${seed} --trace`).toBeNull();
    }
  });

  it('that once showed a defect hold', { timeout: 120_000 }, async () => {
    for (const seed of KEPT) expect((await simulate(seed)).violation).toBeNull();
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
