import { createLivingIndices } from './living-indices.ts';
import { EVERYTHING, type TimeRange } from './sale-windows.ts';

export interface Product {
  readonly index: number;
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  readonly withdrawn: boolean;
}

/**
 * The version of each product, and whether it is living, withdrawn or gone. Only changed products are kept in memory.
 * @param items products that live from the start: product `i` was last updated at `initialTime` plus `i` milliseconds
 */
export function createProductStates(items: number, initialTime: number, withdrawnForMs: number) {
  const living = createLivingIndices(items);
  /** In order of update: a product that changes again moves to the end. */
  const changed = new Map<number, Product>();
  /** In order of withdrawal. */
  const withdrawals = new Set<number>();
  /** The last list by update, with its range; kept until the next change. */
  let updates: { readonly key: string; readonly indices: readonly number[] } | null = null;

  /** Unchanged products come first, in order of index: that is the order of their updates. */
  function updatedIn({ from, until }: TimeRange): number[] {
    const indices: number[] = [];
    const first = Math.max(0, Math.ceil(from - initialTime));
    const last = Math.min(items - 1, until - initialTime);
    for (let index = first; index <= last; index++) {
      if (living.has(index) && !changed.has(index)) indices.push(index);
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
    living,
    withdrawnCount: () => withdrawals.size,
    at,
    find: (index: number): Product | null => {
      if (changed.has(index)) return at(index);
      return index < 0 || index >= items || !living.has(index) ? null : at(index);
    },
    versionOf: (index: number) => changed.get(index)?.version ?? 0,
    set: (product: Product): void => {
      const { index, withdrawn } = product;
      changed.delete(index);
      changed.set(index, product);
      withdrawals.delete(index);
      if (withdrawn) withdrawals.add(index);
      living.set(index, !withdrawn);
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
    /** The products that were updated in the range, oldest update first; null: the living ones. */
    byUpdate: (range: TimeRange | null): readonly number[] => {
      const key = range === null ? 'living' : `${range.from} ${range.until}`;
      if (updates?.key === key) return updates.indices;
      const all = updatedIn(range ?? EVERYTHING);
      const indices = range === null ? all.filter(living.has) : all;
      updates = { key, indices };
      return indices;
    },
  };
}
