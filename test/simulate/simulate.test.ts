import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { simulate } from './history.ts';
import { LONG_SEEDS, QUICK_SEEDS } from './quick-seeds.ts';
import { SABOTAGES } from './sabotage.ts';
import { drawScenario, latenessOf, type Scenario, UNDISTURBED } from './scenario.ts';
import { FAULTLESS, IN_TIME } from './source.ts';
import { ORDINARY, WORLDS } from './worlds.ts';

/** The histories of the quick run, and those of the slow one. */
const SEEDS = [
  { seeds: QUICK_SEEDS, tags: [] },
  { seeds: [...LONG_SEEDS, ...Array.from({ length: 89 }, (_, at) => 112 + at)], tags: ['slow'] },
];
/** Seeds whose scenarios are drawn, but not simulated, to check what is drawn. */
const DRAWN = 700;

const TIES: Partial<Scenario> = { order: 'ties', seam: 3, perPage: 50, size: 600, withdrawn: 'gone', churn: 1 };

/** A machine without faults and an honest source, whose deltas may be 10 s late. */
function lateSource(seed: number, order: Scenario['order'], lateness: Partial<typeof IN_TIME>): Partial<Scenario> {
  const { behaviour } = drawScenario(seed);
  const honest = { ...FAULTLESS, ...IN_TIME, maxPageSize: null, dated: true, lookup: false, latencyMs: 300 };
  return {
    ...UNDISTURBED,
    order,
    behaviour: { ...behaviour, ...honest, ...lateness },
    overlapMs: 1e4,
    lagMs: 0,
    perPage: 50,
    seam: 5,
    size: 600,
    churn: 1,
    rate: null,
    concurrency: 2,
    duplicated: 0,
    sourceSkewMs: 0,
    localSkewMs: 0,
    withdrawn: 'gone',
    runs: ['full', 'full', 'full'],
  };
}

/** Histories in which sealed runs removed or lost living products, before runs settled. */
const LATE: readonly (readonly [number, Scenario['order'], Partial<typeof IN_TIME>])[] = [
  ...[6, 20].map((seed) => [seed, 'updated-desc', { deltaLagMs: 3_000 }] as const),
  ...[2, 6].map((seed) => [seed, 'scattered', { deltaLagMs: 3_000 }] as const),
  ...[4, 12].map((seed) => [seed, 'updated-desc', { replicaLagMs: 3_000 }] as const),
  ...[4, 13].map((seed) => [seed, 'scattered', { replicaLagMs: 3_000 }] as const),
  ...[2, 3].map((seed) => [seed, 'updated-desc', { cacheMs: 3_600_000, cacheTellsAge: true }] as const),
];

/** Histories that once found a defect, of the code or a deliberate one that was hard to find. */
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
  [1287, {}],
];

/**
 * Histories of the kind in which sealed runs removed products too soon, when the clock decided how long a resumed run
 * still waits.
 */
const SETTLING = Array.from({ length: DRAWN }, (_, n) => n + 1)
  .filter((seed) => drawScenario(seed).settlingDeaths > 0)
  .slice(0, 7);

/**
 * Histories in unusual worlds in which each found a defect: too many requests a minute, a list that could not end,
 * products that a sealed run removed because a cache answered it with an old state.
 */
const UNUSUAL = [49, 71, 60_065];

for (const { seeds, tags } of SEEDS) {
  it.each(seeds)('a simulated history keeps every invariant, with seed %i', { tags }, async (seed) => {
    const { violation } = await simulate(seed);
    expect(violation, `npm run simulate -- --seeds ${seed} --trace`).toBeNull();
  });
}

it('simulated histories that once found a defect keep every invariant', { tags: ['slow'] }, async () => {
  for (const [seed, kept] of KEPT) {
    const { behaviour } = drawScenario(seed);
    // Without late sources, jumping clocks and deaths while settling, which were added later.
    const later = { ...ORDINARY, overlapMs: 300_000, localJumps: [], bulk: 0, settlingDeaths: 0 };
    const scenario = { ...later, behaviour: { ...behaviour, ...IN_TIME }, ...kept };
    expect((await simulate(seed, { scenario })).violation, `seed ${seed}`).toBeNull();
  }
});

it('simulated histories keep every invariant when processes die while a run settles and the clock is ahead afterwards', {
  tags: ['slow'],
}, async () => {
  for (const seed of SETTLING) expect((await simulate(seed)).violation, `seed ${seed}`).toBeNull();
});

it('simulated histories in unusual worlds that once found a defect keep every invariant', {
  tags: ['slow'],
}, async () => {
  // In the worlds that there were then.
  for (const seed of UNUSUAL) {
    const { violation } = await simulate(seed, { scenario: drawScenario(seed, WORLDS.slice(0, 10)) });
    expect(violation, `seed ${seed}`).toBeNull();
  }
});

it('simulated histories keep every invariant when the source shows changes late', { tags: ['slow'] }, async () => {
  for (const [seed, order, lateness] of LATE) {
    const { violation } = await simulate(seed, { scenario: lateSource(seed, order, lateness) });
    expect(violation, `seed ${seed}, ${order}, ${JSON.stringify(lateness)}`).toBeNull();
  }
});

it('simulated histories include late sources, caches without Age, clocks that jump, and every world', () => {
  const drawn = Array.from({ length: DRAWN }, (_, n) => drawScenario(n + 1));
  const included: readonly ((scenario: Scenario) => boolean)[] = [
    ({ behaviour }) => behaviour.deltaLagMs > 0,
    ({ behaviour }) => behaviour.replicaLagMs > 0,
    ({ behaviour }) => behaviour.cacheMs > 0 && behaviour.cacheTellsAge,
    ({ behaviour }) => behaviour.cacheMs > 0 && !behaviour.cacheTellsAge,
    ({ localJumps }) => localJumps.length > 0,
    ({ settlingDeaths }) => settlingDeaths > 0,
    ...WORLDS.map((name) => (scenario: Scenario) => scenario.world === name),
  ];
  for (const isIncluded of included) expect(drawn.filter(isIncluded).length, String(isIncluded)).toBeGreaterThan(10);
  for (const { behaviour, lagMs, overlapMs, world } of drawn) {
    if (world === 'a cache that keeps old pages') continue;
    expect(latenessOf(behaviour) + lagMs).toBeLessThan(overlapMs);
  }
});

it('simulated histories are identical for the same seed, byte for byte', { tags: ['slow'] }, async () => {
  for (const seed of [3, 8, 15]) {
    const [first, second] = [await simulate(seed), await simulate(seed)];
    expect(first.trace.length).toBeGreaterThan(1_000);
    expect(second.trace).toBe(first.trace);
  }
});

it('the deliberate bugs are at least forty, and each still applies to the source', () => {
  expect(SABOTAGES.length).toBeGreaterThanOrEqual(40);
  for (const { name, edits } of SABOTAGES) {
    for (const { file, find, replace } of edits) {
      const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
      expect(text.split(find), `${name}: ${file}`).toHaveLength(2);
      expect(replace).not.toBe(find);
    }
  }
});
