import type { Clock } from '../../clock.ts';
import { CatchwordError } from '../../errors.ts';
import { MAX_PRODUCTS } from './product-numbers.ts';
import { createRandom, sample } from './random.ts';
import { createTurns, isOnSale, type OnSale } from './sale-schedule.ts';
import { createGaps } from './sparse-index.ts';

/**
 * Which products exist, in which version and order. What is in them is a pure function elsewhere (`item.ts`), so that a
 * million products cost nothing until they change: state is kept for changed products only.
 *
 * A product is *living*, then *withdrawn* for a while (told of in deltas and by point lookup), then gone everywhere. One
 * that is claimed is not there at all until it is offered for sale. One that is offered lives while it is on sale: it
 * comes and goes at the moments that the offer says, whether anybody asks then or later, since every look begins with
 * the turns that came due, in order of time. Offered again, it comes back, wherever it was.
 * Update times never go back, and `touched` is a Map in which a changed product is moved to the end, so its order of
 * insertion is the order of update.
 */
export type ListOrder = 'id' | 'updated-asc' | 'updated-desc';

/** How many products to change; each at least 0. `seed`: chosen by it alone, else by the catalog's own sequence. */
export interface Mutation {
  readonly create?: number | undefined;
  readonly update?: number | undefined;
  readonly remove?: number | undefined;
  readonly seed?: number | undefined;
}

/** What was done (less than asked where too few products live), and how many live now. */
export interface MutationCounts {
  readonly created: number;
  readonly updated: number;
  readonly removed: number;
  readonly living: number;
}

/** A product as it stands. `updatedAt`: milliseconds since 1970. */
export interface ProductState {
  readonly index: number;
  readonly version: number;
  readonly updatedAt: number;
  readonly withdrawn: boolean;
}

/** Both ends inclusive, milliseconds since 1970. */
export interface TimeRange {
  readonly from: number;
  readonly until: number;
}

export type Visit = (index: number, version: number, withdrawn: boolean) => void;

export interface Catalog {
  /** Living products. */
  readonly living: number;
  /** Withdrawn products that deltas still tell of. */
  readonly withdrawn: number;
  /**
   * Removes, then updates, then creates; no product is both removed and updated by one call.
   * @throws CatchwordError USAGE where the catalog would hold more than 20 million products in its life
   */
  mutate(mutation: Mutation): MutationCounts;
  /**
   * Visits up to `limit` products from `offset` on.
   * @param range null: the listing, in the catalog's order; else what was updated in the range, oldest update first,
   *   withdrawn products included
   * @returns how many products there are in all
   */
  list(range: TimeRange | null, offset: number, limit: number, visit: Visit): number;
  /** Null for a product that does not exist yet, or no longer. */
  find(index: number): ProductState | null;
  /** The index that `claim` would give. */
  readonly next: number;
  /**
   * A new product, not there for anybody until it is offered.
   * @throws CatchwordError USAGE where the catalog would hold more than 20 million products in its life
   */
  claim(): number;
  /** Leaves out an index that no product has had yet: its number is taken by another. */
  skip(index: number): void;
  /** Notes an update of a product now, and when it is on sale. Its version stays. */
  offer(index: number, window: OnSale): void;
}

export interface CatalogOptions {
  readonly items: number;
  readonly seed: number;
  readonly order: ListOrder;
  readonly withdrawnForMs: number;
  readonly withdrawnInListing: boolean;
  readonly clock: Pick<Clock, 'now'>;
}

const INITIAL_AGE_MS = 30 * 86_400_000;
/** From so many on, it is cheaper to go through all living products once than to look each one up. */
const MANY = 1000;
const EVERYTHING: TimeRange = { from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY };

/** Index of the first element whose update is not before `time`. */
function firstSince(products: readonly ProductState[], time: number): number {
  let low = 0;
  let high = products.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((products[middle]?.updatedAt ?? time) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function tooMany(): CatchwordError {
  return new CatchwordError('USAGE', `the sandbox holds at most ${MAX_PRODUCTS} products`);
}

/** @throws CatchwordError USAGE for more than 20 million products */
export function createCatalog(options: CatalogOptions): Catalog {
  const { items, clock, order, withdrawnForMs, withdrawnInListing } = options;
  if (items > MAX_PRODUCTS) throw tooMany();
  const ownRandom = createRandom(options.seed);
  let latest = clock.now();
  /** The untouched product `i` was last updated at this time plus `i` milliseconds. */
  const initialTime = latest - INITIAL_AGE_MS - items;
  let total = items;
  const touched = new Map<number, ProductState>();
  /** Of the initial products, those that are in `touched` or were. */
  const initialTouched = createGaps();
  const notLiving = createGaps();
  const unlisted = withdrawnInListing ? createGaps() : notLiving;
  const skipped = new Set<number>();
  const turns = createTurns();
  const windows = new Map<number, OnSale>();
  /** In order of withdrawal. */
  const withdrawals: ProductState[] = [];
  /** `touched` as arrays, made when asked for after a change: all, and those in the listing. */
  let arrays: { readonly all: ProductState[]; readonly listed: ProductState[] } | null = null;

  function touch(index: number, version: number, withdrawn: boolean): void {
    if (index < items && !initialTouched.has(index)) initialTouched.add(index);
    const state = { index, version, updatedAt: latest, withdrawn };
    if (touched.get(index)?.withdrawn) dropWithdrawal(index);
    touched.delete(index);
    touched.set(index, state);
    if (withdrawn) withdrawals.push(state);
    if (withdrawn !== notLiving.has(index)) notLiving[withdrawn ? 'add' : 'delete'](index);
    if (unlisted !== notLiving && unlisted.has(index)) unlisted.delete(index);
    arrays = null;
  }

  function dropWithdrawal(index: number): void {
    const at = withdrawals.findIndex((state) => state.index === index);
    if (at !== -1) withdrawals.splice(at, 1);
  }

  function forgetWithdrawn(now: number): void {
    const kept = withdrawals.findIndex((state) => state.updatedAt + withdrawnForMs > now);
    for (const { index } of withdrawals.splice(0, kept === -1 ? withdrawals.length : kept)) {
      touched.delete(index);
      if (withdrawnInListing) unlisted.add(index);
      arrays = null;
    }
  }

  function turn(index: number): void {
    const window = windows.get(index);
    if (window === undefined) return;
    const onSale = isOnSale(window, latest);
    if (onSale === notLiving.has(index)) touch(index, versionOf(index), !onSale);
  }

  /** Brings all to the present. */
  function settle(): void {
    const now = Math.max(latest, clock.now());
    for (let due = turns.due(now); due !== null; due = turns.due(now)) {
      latest = Math.max(latest, due.at);
      forgetWithdrawn(latest);
      turn(due.index);
    }
    latest = now;
    forgetWithdrawn(now);
  }

  function versionOf(index: number): number {
    return touched.get(index)?.version ?? 0;
  }

  /** Makes room for an index that is not living. */
  function leaveOut(index: number): void {
    notLiving.add(index);
    if (unlisted !== notLiving) unlisted.add(index);
  }

  function skipTaken(): void {
    while (skipped.delete(total)) leaveOut(total++);
  }

  function claim(): number {
    if (total >= MAX_PRODUCTS) throw tooMany();
    skipTaken();
    leaveOut(total);
    return total++;
  }

  function touchedArrays() {
    if (arrays === null) {
      const all = [...touched.values()];
      arrays = { all, listed: withdrawnInListing ? all : all.filter((state) => !state.withdrawn) };
    }
    return arrays;
  }

  function choose(random: () => number, count: number): number[] {
    const living = total - notLiving.count;
    const positions = sample(random, count, living);
    const indices: number[] = [];
    if (count < MANY) {
      for (const position of positions) notLiving.each(position, 1, (index) => indices.push(index));
      return indices;
    }
    const all = new Uint32Array(living);
    let at = 0;
    notLiving.each(0, living, (index) => {
      all[at++] = index;
    });
    return positions.map((position) => all[position] ?? 0);
  }

  /** Untouched initial products in order of index, which is the order of their update, then the touched ones. */
  function listByUpdate(range: TimeRange, states: readonly ProductState[], descending: boolean) {
    const bounded = (time: number) => Math.min(items, Math.max(0, Math.ceil(time - initialTime)));
    const firstRank = initialTouched.rank(bounded(range.from));
    const untouched = Math.max(0, initialTouched.rank(bounded(range.until + 1)) - firstRank);
    const first = firstSince(states, range.from);
    const count = untouched + Math.max(0, firstSince(states, range.until + 1) - first);

    return {
      count,
      each: (offset: number, limit: number, visit: Visit): void => {
        const size = Math.max(0, Math.min(limit, count - offset));
        const start = descending ? count - offset - size : offset;
        const found: (number | ProductState)[] = [];
        const initial = Math.max(0, Math.min(size, untouched - start));
        initialTouched.each(firstRank + start, initial, (index) => found.push(index));
        const next = first + start + initial - untouched;
        if (initial < size) found.push(...states.slice(next, next + size - initial));
        if (descending) found.reverse();
        for (const one of found) {
          if (typeof one === 'number') visit(one, 0, false);
          else visit(one.index, one.version, one.withdrawn);
        }
      },
    };
  }

  return {
    get living() {
      settle();
      return total - notLiving.count;
    },
    get withdrawn() {
      settle();
      return withdrawals.length;
    },
    mutate: ({ create = 0, update = 0, remove = 0, seed }) => {
      if (total + create > MAX_PRODUCTS) throw tooMany();
      settle();
      const random = seed === undefined ? ownRandom : createRandom(seed);
      const removed = choose(random, remove);
      for (const index of removed) touch(index, versionOf(index), true);
      const updated = choose(random, update);
      for (const index of updated) touch(index, versionOf(index) + 1, false);
      for (let n = 0; n < create; n++) touch(claim(), 0, false);
      return { created: create, updated: updated.length, removed: removed.length, living: total - notLiving.count };
    },
    list: (range, offset, limit, visit) => {
      settle();
      if (range !== null || order !== 'id') {
        const { all, listed } = touchedArrays();
        const descending = range === null && order === 'updated-desc';
        const list = listByUpdate(range ?? EVERYTHING, range === null ? listed : all, descending);
        list.each(offset, limit, visit);
        return list.count;
      }
      const count = total - unlisted.count;
      unlisted.each(offset, Math.max(0, Math.min(limit, count - offset)), (index) => {
        const state = touched.get(index);
        visit(index, state?.version ?? 0, state?.withdrawn ?? false);
      });
      return count;
    },
    find: (index) => {
      settle();
      const state = touched.get(index);
      if (state !== undefined) return state;
      if (index < 0 || index >= items || notLiving.has(index)) return null;
      return { index, version: 0, updatedAt: initialTime + index, withdrawn: false };
    },
    get next() {
      skipTaken();
      return total;
    },
    claim,
    skip: (index) => skipped.add(index),
    offer: (index, window) => {
      settle();
      windows.set(index, window);
      turns.plan(index, window, latest);
      const onSale = isOnSale(window, latest);
      if (onSale || !notLiving.has(index)) touch(index, versionOf(index), !onSale);
    },
  };
}
