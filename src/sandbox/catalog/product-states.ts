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

/**
 * The version of each product, and whether it is living, withdrawn or gone. Only changed products are kept in memory. An
 * index is claimed once, or skipped because its number is taken.
 * @param items products that live from the start: product `i` was last updated at `initialTime` plus `i` milliseconds
 */
export function createProductStates(items: number, initialTime: number, withdrawnForMs: number) {
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

  function at(index: number): Product {
    return changed.get(index) ?? { index, version: 0, updatedAt: initialTime + index, withdrawn: false };
  }

  return {
    next,
    /** Returns the index of a new product, which is not there yet. */
    claim: (): number => {
      next();
      return addAbsent();
    },
    skip: (index: number) => skipped.add(index),
    total: () => total,
    livingCount: () => total - absent.size,
    withdrawnCount: () => withdrawals.size,
    isLiving,
    at,
    find: (index: number): Product | null => {
      if (changed.has(index)) return at(index);
      return index < 0 || index >= items || !isLiving(index) ? null : at(index);
    },
    versionOf: (index: number) => changed.get(index)?.version ?? 0,
    set: (product: Product): void => {
      const { index, withdrawn } = product;
      changed.delete(index);
      changed.set(index, product);
      if (withdrawn === isLiving(index)) living = null;
      for (const indices of [absent, withdrawals]) {
        indices.delete(index);
        if (withdrawn) indices.add(index);
      }
      updates = null;
    },
    /** Forgets products that were withdrawn long enough ago: these are gone. */
    forgetWithdrawn: (now: number): void => {
      for (const index of withdrawals) {
        if ((changed.get(index)?.updatedAt ?? now) + withdrawnForMs > now) return;
        withdrawals.delete(index);
        changed.delete(index);
        updates = null;
      }
    },
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
      if (updates?.key === key) return updates.indices;
      const all = updatedIn(range ?? EVERYTHING);
      const indices = range === null ? all.filter(isLiving) : all;
      updates = { key, indices };
      return indices;
    },
  };
}
