import type { Clock } from '../../clock.ts';
import { CatchwordError } from '../../errors.ts';
import { MAX_PRODUCTS } from './product-numbers.ts';
import { createRandom, sample } from './random.ts';

/**
 * Which products exist, in which version and order. Their content is a pure function (`item.ts`), so only changed
 * products are kept in memory.
 *
 * A product is *living*, then *withdrawn* for a while (included in deltas and found by point lookup), then gone. A
 * claimed product is not there at all until it is offered for sale. An offered product lives while it is on sale. It
 * comes and goes at exactly the moments of the offer: every access first applies the moments that have passed, in order.
 * Offered again, it comes back.
 */
export type ListOrder = 'id' | 'updated-asc' | 'updated-desc';

/** How many products to change, each at least 0. `seed`: the only source of the choice; default: the catalog's own. */
export interface Mutation {
  readonly create?: number | undefined;
  readonly update?: number | undefined;
  readonly remove?: number | undefined;
  readonly seed?: number | undefined;
}

export interface Product {
  readonly index: number;
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  readonly withdrawn: boolean;
}

/** Milliseconds since 1970, or infinite. Of a list, both ends are included; of a sale window, `until` is not. */
export interface TimeRange {
  readonly from: number;
  readonly until: number;
}

export interface CatalogOptions {
  readonly items: number;
  readonly seed: number;
  readonly order: ListOrder;
  readonly withdrawnForMs: number;
  readonly clock: Pick<Clock, 'now'>;
}

const INITIAL_AGE_MS = 30 * 86_400_000;
const EVERYTHING: TimeRange = { from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY };

function isOnSale({ from, until }: TimeRange, now: number): boolean {
  return from <= now && now < until;
}

function tooMany(): CatchwordError {
  return new CatchwordError('USAGE', `the sandbox holds at most ${MAX_PRODUCTS} products`);
}

/** @throws CatchwordError USAGE for more than 20 million products */
export function createCatalog(options: CatalogOptions) {
  const { items, clock, order, withdrawnForMs } = options;
  if (items > MAX_PRODUCTS) throw tooMany();
  const ownRandom = createRandom(options.seed);
  let latest = clock.now();
  /** The unchanged product `i` was last updated at this time plus `i` milliseconds. */
  const initialTime = latest - INITIAL_AGE_MS - items;
  let total = items;
  /** In order of update: a product that changes again moves to the end. */
  const changed = new Map<number, Product>();
  /** Indices below `total` of products that are not living. */
  const absent = new Set<number>();
  /** In order of withdrawal. */
  const withdrawals = new Set<number>();
  const skipped = new Set<number>();
  /** Sale windows that begin or end at a known time. */
  const windows = new Map<number, TimeRange>();
  /** The first moment after `latest` at which a window begins or ends. */
  let nextTurn = Number.POSITIVE_INFINITY;
  /** Kept until `absent` or `total` changes. */
  let livingIndices: readonly number[] | null = null;
  /** The last list by update, with its range; kept until the next change. */
  let updates: { readonly key: string; readonly indices: readonly number[] } | null = null;

  function setPresence(index: number, present: boolean): void {
    if (present === !absent.has(index)) return;
    if (present) absent.delete(index);
    else absent.add(index);
    livingIndices = null;
  }

  function touch(index: number, version: number, withdrawn: boolean): void {
    changed.delete(index);
    changed.set(index, { index, version, updatedAt: latest, withdrawn });
    withdrawals.delete(index);
    if (withdrawn) withdrawals.add(index);
    setPresence(index, !withdrawn);
    updates = null;
  }

  function versionOf(index: number): number {
    return changed.get(index)?.version ?? 0;
  }

  function forgetWithdrawn(now: number): void {
    for (const index of withdrawals) {
      if ((changed.get(index)?.updatedAt ?? now) + withdrawnForMs > now) return;
      withdrawals.delete(index);
      changed.delete(index);
      updates = null;
    }
  }

  function findNextTurn(): void {
    const turns = [...windows.values()].flatMap(({ from, until }) => [from, until]).filter((at) => at > latest);
    nextTurn = turns.reduce((first, at) => Math.min(first, at), Number.POSITIVE_INFINITY);
  }

  /** Applies everything that has happened by now. */
  function settle(): void {
    const now = Math.max(latest, clock.now());
    while (nextTurn <= now) {
      latest = nextTurn;
      forgetWithdrawn(latest);
      for (const [index, window] of windows) {
        if (window.from !== latest && window.until !== latest) continue;
        const onSale = isOnSale(window, latest);
        if (onSale === absent.has(index)) touch(index, versionOf(index), !onSale);
      }
      findNextTurn();
    }
    latest = now;
    forgetWithdrawn(now);
  }

  function addAbsent(): number {
    absent.add(total);
    livingIndices = null;
    return total++;
  }

  function skipTaken(): void {
    while (skipped.delete(total)) addAbsent();
  }

  /**
   * Returns the index of a new product, which is not there until it is offered.
   * @throws CatchwordError USAGE if the catalog would hold more than 20 million products in its life
   */
  function claim(): number {
    if (total >= MAX_PRODUCTS) throw tooMany();
    skipTaken();
    return addAbsent();
  }

  function living(): readonly number[] {
    if (livingIndices === null) {
      const indices: number[] = [];
      for (let index = 0; index < total; index++) if (!absent.has(index)) indices.push(index);
      livingIndices = indices;
    }
    return livingIndices;
  }

  function choose(random: () => number, count: number): number[] {
    if (count === 0) return [];
    const indices = living();
    return sample(random, count, indices.length).map((position) => indices[position] ?? 0);
  }

  function productAt(index: number): Product {
    return changed.get(index) ?? { index, version: 0, updatedAt: initialTime + index, withdrawn: false };
  }

  /** Unchanged products come first, in order of index: that is the order of their updates. */
  function updatedIn({ from, until }: TimeRange): number[] {
    const indices: number[] = [];
    const first = Math.max(0, Math.ceil(from - initialTime));
    const last = Math.min(items - 1, until - initialTime);
    for (let index = first; index <= last; index++) {
      if (!absent.has(index) && !changed.has(index)) indices.push(index);
    }
    for (const { index, updatedAt } of changed.values()) {
      if (updatedAt >= from && updatedAt <= until) indices.push(index);
    }
    return indices;
  }

  function byUpdate(range: TimeRange | null): readonly number[] {
    const key = range === null ? 'living' : `${range.from} ${range.until}`;
    if (updates?.key === key) return updates.indices;
    const all = updatedIn(range ?? EVERYTHING);
    const indices = range === null ? all.filter((index) => !absent.has(index)) : all;
    if (range === null && order === 'updated-desc') indices.reverse();
    updates = { key, indices };
    return indices;
  }

  return {
    /** Number of living products. */
    get living() {
      settle();
      return total - absent.size;
    },
    /** Number of withdrawn products that deltas still include. */
    get withdrawn() {
      settle();
      return withdrawals.size;
    },
    /**
     * Removes, then updates, then creates. One call never removes and updates the same product. Returns what was done,
     * which is less than asked if too few products live, and how many live now.
     * @throws CatchwordError USAGE if the catalog would hold more than 20 million products in its life
     */
    mutate: ({ create = 0, update = 0, remove = 0, seed }: Mutation) => {
      if (total + create > MAX_PRODUCTS) throw tooMany();
      settle();
      const random = seed === undefined ? ownRandom : createRandom(seed);
      const removed = choose(random, remove);
      for (const index of removed) touch(index, versionOf(index), true);
      const updated = choose(random, update);
      for (const index of updated) touch(index, versionOf(index) + 1, false);
      for (let n = 0; n < create; n++) touch(claim(), 0, false);
      return { created: create, updated: updated.length, removed: removed.length, living: total - absent.size };
    },
    /**
     * Returns up to `limit` products from `offset` on, and how many there are in all.
     * @param range null: the living products in the catalog's order; else all that were updated in the range, oldest
     *   update first, including withdrawn ones
     */
    list: (range: TimeRange | null, offset: number, limit: number) => {
      settle();
      const indices = range === null && order === 'id' ? living() : byUpdate(range);
      return { count: indices.length, products: indices.slice(offset, offset + limit).map(productAt) };
    },
    /** Null for a product that does not exist yet, or no longer. */
    find: (index: number): Product | null => {
      settle();
      if (changed.has(index)) return productAt(index);
      return index < 0 || index >= items || absent.has(index) ? null : productAt(index);
    },
    /** The index that `claim` would return. */
    get next() {
      skipTaken();
      return total;
    },
    claim,
    /** Skips an index that no product has had yet, because its number is taken. */
    skip: (index: number) => skipped.add(index),
    /** Notes an update of a product now, and when it is on sale. Its version stays. */
    offer: (index: number, window: TimeRange): void => {
      settle();
      if (window.from === EVERYTHING.from && window.until === EVERYTHING.until) windows.delete(index);
      else windows.set(index, window);
      findNextTurn();
      const onSale = isOnSale(window, latest);
      if (onSale || !absent.has(index)) touch(index, versionOf(index), !onSale);
    },
  };
}

export type Catalog = ReturnType<typeof createCatalog>;
