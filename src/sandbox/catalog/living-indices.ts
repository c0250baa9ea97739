/** Which indices have a living product, in order. An index is claimed once, or skipped because its number is taken. */
export function createLivingIndices(items: number) {
  let total = items;
  /** Kept until a product comes or goes. */
  let list: readonly number[] | null = null;
  const absent = new Set<number>();
  const skipped = new Set<number>();

  function addAbsent(): number {
    absent.add(total);
    list = null;
    return total++;
  }

  /** The index that `claim` would return. */
  function next(): number {
    while (skipped.delete(total)) addAbsent();
    return total;
  }

  return {
    next,
    /** Returns the index of a new product, which is not there yet. */
    claim: (): number => {
      next();
      return addAbsent();
    },
    skip: (index: number) => skipped.add(index),
    /** Number of products that are living or were, and of indices that were claimed or skipped. */
    total: () => total,
    count: () => total - absent.size,
    has: (index: number) => !absent.has(index),
    set: (index: number, isLiving: boolean): void => {
      if (isLiving === absent.has(index)) list = null;
      if (isLiving) absent.delete(index);
      else absent.add(index);
    },
    list: (): readonly number[] => {
      if (list !== null) return list;
      const indices: number[] = [];
      for (let index = 0; index < total; index++) if (!absent.has(index)) indices.push(index);
      list = indices;
      return list;
    },
  };
}
