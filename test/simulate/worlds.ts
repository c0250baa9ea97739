import type { Random } from '@catchword/sandbox/catalog/random';
import type { Scenario } from './scenario.ts';
import { FAULTLESS, IN_TIME, type SourceBehaviour } from './source.ts';

/*
 * Worlds: kinds of sources that real services have been. Each says what catchword promises in it, and what it cannot
 * promise, because no program could know better. What it promises is checked as in every other history: a sealed run
 * misses and removes no living product, a watermark moves only past changes that are in the mirror. What it cannot promise
 * is named by `Limits`, as narrowly as possible. Two checks always hold:
 *
 * - a run that is not held removes at most the removal limit of products that the source did not announce;
 * - a sealed run's pages hang together, from the head of the list to its end;
 *
 * and one day after the source is sound again, one full run makes the mirror equal to it.
 */

/** What a source makes impossible to know. */
export interface Limits {
  /** Runs that were reading in this time, by the world's clock, may be sealed and wrong. Null: no run may be. */
  readonly unsound: { readonly from: number; readonly to: number } | null;
  /** Whether a full run ever proves anything; if not, products that are gone may stay. */
  readonly neverSealed: boolean;
}

export const NO_LIMITS: Limits = { unsound: null, neverSealed: false };

const ALWAYS = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };
const HOUR = 3_600_000;

export const WORLDS = [
  'replicas that lag',
  'a cache that keeps old pages',
  'a source restored from a backup',
  'a clock that changes by an hour',
  'times without a zone',
  'a list that follows later',
  'a bulk import',
  'products that are listed twice',
  'members that change with each answer',
  'settings that select other products',
  'products that cannot be read',
  'requests that are refused',
  'totals that are too low',
  'deltas that tell nothing',
  'deltas that tell everything',
] as const;
export type WorldName = (typeof WORLDS)[number];

/** What happens to the source at one time, milliseconds after the start of the history. */
export interface Happening {
  readonly atMs: number;
  readonly what:
    | { readonly kind: 'restore'; readonly backMs: number }
    | { readonly kind: 'bulk'; readonly change: 'update' | 'create' | 'remove'; readonly share: number }
    | { readonly kind: 'clock'; readonly byMs: number };
}

/** What a world adds to a scenario. */
export interface WorldPart {
  readonly world: WorldName | null;
  readonly happenings: readonly Happening[];
  /** When the source's local time is put forward or back, milliseconds after the start; null: it has no local time. */
  readonly zone: { readonly atMs: number; readonly byMs: number } | null;
  readonly limits: Limits;
  /** Share of products that are listed twice. */
  readonly twice: number;
  readonly noisy: boolean;
  /** When the settings select another currency, as the number of runs before; null: never. */
  readonly newCurrencyAfter: number | null;
}

export const ORDINARY: WorldPart = {
  world: null,
  happenings: [],
  zone: null,
  limits: NO_LIMITS,
  twice: 0,
  noisy: false,
  newCurrencyAfter: null,
};

type Drawn = Partial<Omit<Scenario, 'behaviour'>> & { readonly behaviour?: Partial<SourceBehaviour> };

/** The world must be the only thing that lags. */
const PLAIN = { ...IN_TIME, dated: true, maxPageSize: null };

function whole(random: Random, least: number, most: number): number {
  return Math.floor(least + random() * (most - least));
}

/** A moment during the first runs. */
function soon(random: Random): number {
  return whole(random, 1_000, random() < 0.5 ? 120_000 : 1_500_000);
}

const DRAW: Readonly<Record<WorldName, (random: Random, scenario: Scenario) => Drawn>> = {
  /**
   * Several machines answer, each as far behind as it is, with clocks that differ by seconds; the pages of one list come
   * from several of them. Promised: everything, as long as lag and clocks together stay below the overlap.
   */
  'replicas that lag': (random, { overlapMs, lagMs }) => ({
    lagMs: Math.min(lagMs, overlapMs / 3),
    clockJumpMs: 0,
    behaviour: {
      ...PLAIN,
      replicaLagsMs: [0, ...Array.from({ length: whole(random, 1, 4) }, () => whole(random, 500, overlapMs / 3))],
      replicaSkewMs: random() < 0.5 ? 0 : whole(random, -1_500, 1_500),
      changesMachine: random() < 0.5 ? 1 : 0.1,
    },
  }),
  /**
   * A cache answers pages that are hours old, without `Age`. If it keeps the source's `Date`, the runs read deltas from
   * that time on: promised is everything. If it writes a `Date` of its own, its pages cannot be told from the truth: a
   * sealed run may be wrong, by less than the removal limit, until a full run that the cache does not answer.
   */
  'a cache that keeps old pages': (random) => {
    const cacheKeepsDate = random() < 0.5;
    return {
      clockJumpMs: 0,
      behaviour: { ...PLAIN, lookup: false, cacheMs: whole(random, 600_000, 4 * HOUR), cacheKeepsDate },
      limits: { ...NO_LIMITS, unsound: cacheKeepsDate ? null : ALWAYS },
    };
  },
  /**
   * The source goes back to an earlier state: products and their times of change are as they were. Deltas do not show
   * it, and a run that was reading may hold pages of both states. Promised: every full run that begins later finds
   * everything, and changes made later are in the deltas.
   */
  'a source restored from a backup': (random) => {
    const atMs = soon(random);
    return {
      clockJumpMs: 0,
      behaviour: PLAIN,
      happenings: [{ atMs, what: { kind: 'restore', backMs: whole(random, 10_000, Math.max(20_000, atMs)) } }],
      limits: { ...NO_LIMITS, unsound: { from: atMs, to: atMs } },
    };
  },
  /**
   * The source's clock jumps by an hour, with its `Date` and its times of change: ahead, back, or ahead and back later.
   * Promised: everything.
   */
  'a clock that changes by an hour': (random) => {
    const atMs = soon(random);
    const ahead: Happening = { atMs, what: { kind: 'clock', byMs: HOUR } };
    const later = atMs + whole(random, 60_000, 1_800_000);
    const back: Happening = { atMs: later, what: { kind: 'clock', byMs: -HOUR } };
    const kind = random();
    return {
      clockJumpMs: kind < 0.3 ? 0 : HOUR,
      happenings: kind < 0.3 ? [ahead] : kind < 0.6 ? [back] : [ahead, back],
      behaviour: PLAIN,
    };
  },
  /**
   * The source notes local times without a zone, and compares them with `from` in local time; its `Date` is right. When
   * an hour is skipped, everything is promised. When an hour comes twice, a delta from before it does not show changes
   * in it, unless the overlap is longer than the hour: then everything is promised. Otherwise runs that read in that
   * hour may be wrong, and its changes are found by the next full run.
   */
  'times without a zone': (random, { overlapMs, lagMs }) => {
    const byMs = random() < 0.4 ? HOUR : -HOUR;
    const isLong = random() < 0.4;
    const atMs = soon(random);
    const isAmbiguous = byMs < 0 && !isLong;
    const unsound = isAmbiguous ? { from: atMs - overlapMs, to: atMs + HOUR + overlapMs } : null;
    return {
      clockJumpMs: 0,
      lagMs: Math.min(lagMs, 100_000),
      overlapMs: isLong ? HOUR + 300_000 : overlapMs,
      zone: { atMs, byMs },
      behaviour: PLAIN,
      limits: { ...NO_LIMITS, unsound },
    };
  },
  /**
   * The list comes from an index that takes up each change at its own time, out of order; deltas and totals are current.
   * Promised: everything, as long as no change takes longer than the overlap.
   */
  'a list that follows later': (random, { overlapMs, lagMs }) => ({
    lagMs: Math.min(lagMs, overlapMs / 3),
    clockJumpMs: 0,
    behaviour: { ...PLAIN, listSpreadMs: whole(random, 1_000, overlapMs / 2) },
  }),
  /** A third of all products is changed, added or removed at one moment, also during a run. Promised: everything. */
  'a bulk import': (random) => ({
    behaviour: { maxPageSize: null },
    happenings: Array.from({ length: whole(random, 1, 4) }, () => {
      const change = (['update', 'create', 'remove'] as const)[whole(random, 0, 3)] ?? 'update';
      return { atMs: soon(random), what: { kind: 'bulk', change, share: 0.2 + 0.3 * random() } };
    }),
  }),
  /**
   * The list has some products twice, at distant places. Its totals count products, and contradict its pages; or they
   * count items, and fewer products are read than the totals say. So runs are mostly open, and what is gone may stay. Yet
   * no run may be sealed over a gap: changes may make the totals fit again.
   */
  'products that are listed twice': (random) => ({
    order: random() < 0.5 ? 'id' : 'anywhere',
    twice: random() < 0.7 ? 0.02 : 0.1,
    // So many changes that seams stay open, and that withdrawn products make up for products that were not read.
    perPage: 20,
    seam: 2,
    churn: 2 + 2 * random(),
    withdrawn: 'tombstone',
    concurrency: 8,
    crashes: [],
    behaviour: { ...PLAIN, ...FAULTLESS, countsOnce: random() < 0.3 },
    limits: { ...NO_LIMITS, neverSealed: true },
  }),
  /** Each answer has another value in a member that the settings ignore. Promised: everything, and no change of it. */
  'members that change with each answer': () => ({ noisy: true }),
  /** The settings select another currency. Promised: a full run follows, and finds everything in it. */
  'settings that select other products': (random) => ({
    newCurrencyAfter: whole(random, 1, 3),
    twoKeepers: false,
    behaviour: { maxPageSize: null },
  }),
  /** Every page that holds one of a few products fails. Promised: all others are read, and none of them is removed. */
  'products that cannot be read': (random) => ({
    // Narrower windows are read one after another.
    behaviour: { ...PLAIN, ...FAULTLESS, latencyMs: 300, jitter: 1, poisoned: random() < 0.5 ? 0.001 : 0.004 },
  }),
  /** A balancer refuses single requests, as if the address were wrong. Promised: everything. */
  'requests that are refused': (random) => ({ behaviour: { ...PLAIN, refused: random() < 0.5 ? 0.02 : 0.2 } }),
  /**
   * Totals stop at a number, and pages go on; with pages of a fixed size or without. Promised: every product is read. What
   * is gone may stay, for such a run proves nothing.
   */
  'totals that are too low': (random, { perPage }) => ({
    behaviour: { ...FAULTLESS, maxPageSize: random() < 0.5 ? null : Math.ceil(perPage / 2), highestTotal: 2 * perPage },
  }),
  /**
   * Every delta is empty, such as of a service that compares times of two zones. A run that changes meanwhile may be sealed
   * and wrong, by less than the removal limit; the next full run finds changes that no delta told, and is open.
   */
  'deltas that tell nothing': () => ({
    behaviour: { ...PLAIN, deltas: 'nothing' as const },
    limits: { ...NO_LIMITS, unsound: ALWAYS },
  }),
  /**
   * Every delta is the whole list, whatever it asks. Promised: everything; but nearly all runs are open. A run reads the
   * list two dozen times, so the answers are not slow.
   */
  'deltas that tell everything': () => ({
    withdrawn: 'gone' as const,
    behaviour: { ...PLAIN, latencyMs: 300, jitter: 1, deltas: 'everything' as const },
  }),
};

/** Puts a scenario into a world. */
export function enter(world: WorldName, drawn: Scenario, random: Random): Scenario {
  const { behaviour, ...more } = DRAW[world](random, drawn);
  const size = Math.min(drawn.size, 2_000);
  const isOdd = drawn.order === 'unstable' || drawn.order === 'ties';
  const base = { ...drawn, size: Math.max(size, 3 * Math.min(drawn.perPage, 100)), world, localJumps: [] };
  return { ...base, ...(isOdd ? { order: 'id' } : {}), ...more, behaviour: { ...drawn.behaviour, ...behaviour } };
}
