import type { RunKind } from '@catchword/catalog/run-types';
import { createRandom, type Random } from '@catchword/sandbox/catalog/random';
import type { RunSettings } from '../../src/sync/run-settings.ts';
import { ORDERS, type Order } from './catalog.ts';
import { FAULTLESS, IN_TIME, type SourceBehaviour } from './source.ts';
import { enter, ORDINARY, WORLDS, type WorldName, type WorldPart } from './worlds.ts';

const OVERLAP_MS = 300_000;
export const DAY_MS = 86_400_000;

function pick<T>(random: Random, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)] as T;
}

/** Everything that a seed draws. */
export interface Scenario extends WorldPart {
  readonly seed: number;
  readonly perPage: number;
  readonly seam: number;
  readonly size: number;
  readonly order: Order;
  /** Changes per page read. */
  readonly churn: number;
  readonly withdrawn: 'tombstone' | 'gone' | 'both';
  readonly withdrawnAs: RunSettings['withdrawnAs'];
  readonly lagMs: number;
  readonly inclusiveFrom: boolean;
  readonly wholeSeconds: boolean;
  readonly behaviour: SourceBehaviour;
  readonly sourceSkewMs: number;
  readonly localSkewMs: number;
  /** How far the source's clock is put back, once; 0: never. */
  readonly clockJumpMs: number;
  readonly concurrency: number;
  readonly rate: number | null;
  /** Points at which the process dies, counted over all processes. */
  readonly crashes: readonly number[];
  readonly duplicated: number;
  readonly twoKeepers: boolean;
  /** Whether changes are as frequent between runs as during runs. */
  readonly steady: boolean;
  /** Whether the source's list is empty during one run. */
  readonly outage: boolean;
  readonly runs: readonly RunKind[];
  /** How late deltas may be: see CATCHWORD_DELTA_OVERLAP. */
  readonly overlapMs: number;
  /** When, and by how much, catchword's own clock is put forward (negative: back). */
  readonly localJumps: readonly { readonly atMs: number; readonly byMs: number }[];
  /** Updates half an overlap before each run, as a share of the initial number of products. */
  readonly bulk: number;
  /** How often a process dies while a run settles; its clock is then ahead for a while. */
  readonly settlingDeaths: number;
}

/** Only the catalog changes; nothing else happens to the source, to processes and to clocks. */
export const UNDISTURBED = {
  ...ORDINARY,
  crashes: [],
  twoKeepers: false,
  outage: false,
  clockJumpMs: 0,
  localJumps: [],
  bulk: 0,
  settlingDeaths: 0,
};

/** The longest time for which a response may be out of date without saying so. */
export function latenessOf(behaviour: SourceBehaviour): number {
  const { deltaLagMs, replicaLagMs, replicaLagsMs, replicaSkewMs, listSpreadMs, cacheMs, cacheTellsAge } = behaviour;
  const skewMs = replicaLagsMs.length * Math.abs(replicaSkewMs);
  return skewMs + Math.max(deltaLagMs, replicaLagMs, ...replicaLagsMs, listSpreadMs, cacheTellsAge ? 0 : cacheMs);
}

/** Drawn last, so that earlier draws stay the same. */
function drawLateness(random: Random): Partial<SourceBehaviour> & { readonly overlapMs: number } {
  const short = random() < 0.3;
  const overlapMs = short ? 10_000 : OVERLAP_MS;
  const lagMs = short ? 3_000 : pick(random, [3_000, 30_000, 60_000]);
  const kind = pick(random, ['deltas', 'replicas', 'cache', 'aged'] as const);
  if (kind === 'deltas') return { overlapMs, deltaLagMs: lagMs };
  if (kind === 'replicas') return { overlapMs, replicaLagMs: lagMs };
  const cacheKeepsDate = random() < 0.7;
  if (kind === 'cache') return { overlapMs, cacheMs: lagMs, cacheKeepsDate };
  return { overlapMs, cacheMs: pick(random, [lagMs, 3_600_000]), cacheTellsAge: true, cacheKeepsDate };
}

export const HOUR_MS = 3_600_000;

/** catchword's own clock jumps ahead or back and is corrected later. */
function drawJumps(random: Random): Scenario['localJumps'] {
  const byMs = (random() < 0.6 ? 1 : -1) * HOUR_MS * (2 + 4 * random());
  const atMs = 1_000 + random() * 300_000;
  return [
    { atMs, byMs },
    { atMs: atMs + random() * 900_000, byMs: -byMs },
  ];
}

/** Mostly small histories; one in forty reads 20,000 products, 1,000 a page. Half of them are in an unusual world. */
export function drawScenario(seed: number, worlds: readonly WorldName[] = WORLDS): Scenario {
  const drawn = drawOrdinary(seed);
  // Of its own, so that a new world does not change the others.
  const random = createRandom(seed + 2 ** 20);
  return random() < 0.5 ? drawn : enter(pick(random, worlds), drawn, random);
}

/** The scenario without a world. */
export function drawOrdinary(seed: number): Scenario {
  const random = createRandom(seed);
  const often = (share: number): boolean => random() < share;
  const large = often(0.025);
  const perPage = large ? 1000 : pick(random, [20, 50, 50, 100, 1000]);
  const small = [0, 1, perPage - 1, perPage, perPage + 1];
  const size = large
    ? 20_000
    : perPage === 1000 || often(0.25)
      ? pick(random, small)
      : Math.floor(perPage * (2 + random() * 18));
  const faulty = often(0.4);
  const odd = often(0.15);
  // Not both, because wrong totals that match a shortened page cannot be detected.
  const oddity = odd ? pick(random, ['short', 'lies', 'repeats', 'size', 'order', 'ties'] as const) : 'none';
  // Without a Date, the two clocks must agree to within minutes.
  const dated = !often(0.1);
  const overlapMs = pick(random, [OVERLAP_MS, 60_000, 60_000]);
  const drawn: Scenario = {
    ...ORDINARY,
    seed,
    perPage,
    seam: perPage === 1000 ? 10 : pick(random, perPage < 50 ? [2, 3] : [3, 5, 10]),
    size,
    order: oddity === 'order' ? 'unstable' : oddity === 'ties' ? 'ties' : pick(random, ORDERS.slice(0, 4)),
    churn: pick(random, [0, 0.1, 0.5, 1, 3]),
    withdrawn: pick(random, ['tombstone', 'gone', 'both'] as const),
    withdrawnAs: pick(random, ['updated', 'updated', 'removed'] as const),
    lagMs: often(0.3) ? Math.floor((random() * overlapMs * 2) / 3) : 0,
    inclusiveFrom: often(0.5),
    wholeSeconds: often(0.3),
    behaviour: {
      latencyMs: pick(random, [20, 300, 2_000]),
      jitter: pick(random, [0, 1, 20]),
      ...FAULTLESS,
      unavailable: faulty ? 0.05 : 0,
      rateLimited: faulty ? 0.02 : 0,
      cutShort: faulty ? 0.03 : 0,
      wrongPage: faulty ? 0.02 : 0,
      shortPage: oddity === 'short' ? pick(random, [0.05, 0.6]) : 0,
      repeatedPage: oddity === 'repeats' ? 0.05 : 0,
      lyingTotals: oddity === 'lies' ? pick(random, [0.1, 1]) : 0,
      maxPageSize: oddity === 'size' ? Math.max(1, Math.floor(perPage * (0.3 + random() * 0.6))) : null,
      outage: false,
      dated,
      lookup: often(0.3),
      ...IN_TIME,
    },
    sourceSkewMs: dated ? pick(random, [0, 0, DAY_MS, -DAY_MS, 4_000]) : 0,
    localSkewMs: dated ? pick(random, [0, 0, 3_600_000]) : 0,
    clockJumpMs: dated && often(0.1) ? Math.floor(random() * 7_200_000) : 0,
    concurrency: pick(random, [1, 2, 8]),
    rate: pick(random, [null, 50, 300]),
    crashes: often(0.3) ? Array.from({ length: 3 }, () => 1 + Math.floor(random() * 150)) : [],
    duplicated: often(0.2) ? 0.2 : 0,
    twoKeepers: often(0.1),
    steady: false,
    outage: often(0.1),
    runs: Array.from(
      { length: 2 + Math.floor(random() * 3) },
      (_, at): RunKind => (at === 0 || often(0.5) ? 'full' : 'delta'),
    ),
    overlapMs,
    localJumps: [],
    bulk: 0,
    settlingDeaths: 0,
  };
  // No mirror can notice that both clocks were put back at once: docs/page-drift.md names it.
  if (often(0.1) && dated) return { ...drawn, clockJumpMs: 0, localJumps: drawJumps(random) };
  return often(0.3) ? late(drawn, random) : drawn;
}

/** Adds a source that shows changes late. */
function late(drawn: Scenario, random: Random): Scenario {
  const { overlapMs, ...lateness } = drawLateness(random);
  const behaviour = { ...drawn.behaviour, ...lateness };
  // A cached response does not show that the clock was put back meanwhile.
  const clockJumpMs = behaviour.cacheMs > 0 ? 0 : drawn.clockJumpMs;
  // The overlap allows for the sum of all delays.
  const lagMs = Math.min(drawn.lagMs, overlapMs - latenessOf(behaviour) - 2_000);
  const isOdd = drawn.order === 'unstable' || drawn.order === 'ties';
  const order = !isOdd && random() < 0.3 ? 'scattered' : drawn.order;
  const shown = { ...drawn, overlapMs, behaviour, clockJumpMs, lagMs, order };
  return behaviour.dated && random() < 0.3 ? interrupted(shown, random) : shown;
}

/**
 * Adds processes that die while a run settles, with a clock that is ahead afterwards, and so many changes just before a
 * run that reading its delta takes longer than the overlap.
 */
function interrupted(drawn: Scenario, random: Random): Scenario {
  const behaviour = { ...drawn.behaviour, ...IN_TIME, latencyMs: 2_000, jitter: 0, maxPageSize: null };
  return {
    ...drawn,
    perPage: 20,
    seam: 5,
    size: 400 + Math.floor(random() * 300),
    concurrency: 1,
    rate: null,
    churn: 0.02,
    withdrawn: 'gone',
    lagMs: 0,
    overlapMs: 10_000,
    behaviour: { ...behaviour, [pick(random, ['deltaLagMs', 'replicaLagMs'] as const)]: 3_000 },
    bulk: 0.15 + 0.15 * random(),
    settlingDeaths: 6,
  };
}
