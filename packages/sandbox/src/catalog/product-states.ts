import { CatchwordError } from '@catchword/base/errors';
import { MAX_PRODUCTS } from './product-numbers.ts';

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

export const EVERYTHING: TimeRange = { from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY };
const INITIAL_AGE_MS = 30 * 86_400_000;

/**
 * The version of each product, and whether it is living, withdrawn or gone. Only changed products are kept in memory. An
 * index is claimed once, or skipped because its number is taken.
 * @param items products that live from the start: product `i` was last updated at `initialTime` plus `i` milliseconds
 */
export function createProductStates(items: number, withdrawnForMs: number, beginning: number) {
  let latest = beginning;
  const initialTime = beginning - INITIAL_AGE_MS - items;
  /** Number of products that are living or were, and of indices that were claimed or skipped. */
  let total = items;
  const absent = new Set<number>();
  const skipped = new Set<number>();
  /** In order of update: a product that changes again moves to the end. */
  const changed = new Map<number, Product>();
  /** In order of withdrawal. */
  const withdrawals = new Set<number>();
  /** Kept until a product comes or goes. */
  let living: readonly number[] | null = null;
  /** The last list by update, with its range; kept until the next change. */
  let updates: { readonly key: string; readonly indices: readonly number[] } | null = null;

  const isLiving = (index: number) => !absent.has(index);
  reserve(0);

  /** @throws CatchwordError USAGE if the catalog would hold more than 20 million products in its life */
  function reserve(count: number): void {
    if (total + count > MAX_PRODUCTS)
      throw new CatchwordError('USAGE', `the sandbox holds at most ${MAX_PRODUCTS} products`);
  }

  function addAbsent(): number {
    absent.add(total);
    living = null;
    return total++;
  }

  /** The index that `claim` would return. */
  function next(): number {
    while (skipped.delete(total)) addAbsent();
    return total;
  }

  function at(index: number): Product {
    return changed.get(index) ?? { index, version: 0, updatedAt: initialTime + index, withdrawn: false };
  }

  /** Notes an update of a product now. */
  function touch(index: number, lives: boolean, versions = 0): void {
    const { version } = at(index);
    changed.delete(index);
    changed.set(index, { index, version: version + versions, updatedAt: latest, withdrawn: !lives });
    if (lives !== isLiving(index)) living = null;
    for (const indices of [absent, withdrawals]) {
      indices.delete(index);
      if (!lives) indices.add(index);
    }
    updates = null;
  }

  /** Changes from now on are of the time `to`. Forgets products that were withdrawn long enough ago: these are gone. */
  function advance(to: number): void {
    latest = to;
    for (const index of withdrawals) {
      if (at(index).updatedAt + withdrawnForMs > to) return;
      withdrawals.delete(index);
      changed.delete(index);
      updates = null;
    }
  }

  /** Unchanged products come first, in order of index: that is the order of their updates. */
  function updatedIn({ from, until }: TimeRange): number[] {
    const indices: number[] = [];
    const first = Math.max(0, Math.ceil(from - initialTime));
    const last = Math.min(items - 1, until - initialTime);
    for (let index = first; index <= last; index++) {
      if (isLiving(index) && !changed.has(index)) indices.push(index);
    }
    for (const { index, updatedAt } of changed.values()) {
      if (updatedAt >= from && updatedAt <= until) indices.push(index);
    }
    return indices;
  }

  return {
    reserve,
    next,
    /** Returns the index of a new product, which is not there until it is offered. */
    claim: (): number => {
      reserve(1);
      next();
      return addAbsent();
    },
    skip: (index: number) => skipped.add(index),
    livingCount: () => total - absent.size,
    at,
    isLiving,
    touch,
    advance,
    /** Milliseconds since 1970. */
    latest: () => latest,
    find: (index: number): Product | null =>
      changed.has(index) || (index >= 0 && index < items && isLiving(index)) ? at(index) : null,
    /** The living products, in order of index. */
    byIndex: (): readonly number[] => {
      if (living !== null) return living;
      const indices: number[] = [];
      for (let index = 0; index < total; index++) if (isLiving(index)) indices.push(index);
      living = indices;
      return living;
    },
    /** The products that were updated in the range, oldest update first; null: the living ones. */
    byUpdate: (range: TimeRange | null): readonly number[] => {
      const key = range === null ? 'living' : `${range.from} ${range.until}`;
      if (updates?.key !== key) {
        const all = updatedIn(range ?? EVERYTHING);
        updates = { key, indices: range === null ? all.filter(isLiving) : all };
      }
      return updates.indices;
    },
  };
}
