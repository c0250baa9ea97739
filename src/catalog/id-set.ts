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
    add: (id: number): void => {
      if (id >> 3 >= bits.length) {
        const grown = new Uint8Array(2 * (id >> 3) + 1);
        grown.set(bits);
        bits = grown;
      }
      const byte = bits[id >> 3] ?? 0;
      const bit = 1 << (id & 7);
      if ((byte & bit) !== 0) return;
      bits[id >> 3] = byte | bit;
      size++;
    },
  };
}
