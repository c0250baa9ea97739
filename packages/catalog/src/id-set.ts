export type IdSet = ReturnType<typeof createIdSet>;

/** Creates a set of product ids, which takes one bit for each id. Allocates room for ids up to `highest` at once. */
export function createIdSet(highest: number) {
  let bits = new Uint8Array((highest >> 3) + 1);
  let size = 0;

  return {
    get size() {
      return size;
    },
    has: (id: number): boolean => ((bits[id >> 3] ?? 0) & (1 << (id & 7))) !== 0,
    /** Adds the ids of a window; 0 stands for a rejected item. */
    addAll: (ids: readonly number[]): void => {
      for (let at = 0; at < ids.length; at++) {
        const id = ids[at] ?? 0;
        if (id >> 3 >= bits.length) {
          const small = bits;
          bits = new Uint8Array(2 * (id >> 3) + 1);
          bits.set(small);
        }
        const byte = bits[id >> 3] ?? 0;
        const bit = 1 << (id & 7);
        if (id === 0 || (byte & bit) !== 0) continue;
        bits[id >> 3] = byte | bit;
        size++;
      }
    },
  };
}
