const BLOCK = 1024;

/**
 * The whole numbers from 0 up, with gaps. Only the gaps are stored, and how many there are in each block of 1,024, so
 * that the k-th number of a million is found in at most a thousand steps, and a page costs what it holds.
 */
export interface Gaps {
  readonly count: number;
  has(index: number): boolean;
  /** Takes a number out; it must not be a gap yet. */
  add(index: number): void;
  /** Puts a number back; it must be a gap. */
  delete(index: number): void;
  /** How many numbers below `index` are left. */
  rank(index: number): number;
  /** Calls `visit` with `count` numbers in ascending order, from the one that has `rank` others below it. */
  each(rank: number, count: number, visit: (index: number) => void): void;
}

export function createGaps(): Gaps {
  const gaps = new Set<number>();
  const perBlock: number[] = [];

  return {
    get count() {
      return gaps.size;
    },
    has: (index) => gaps.has(index),
    add: (index) => {
      gaps.add(index);
      const block = Math.floor(index / BLOCK);
      while (perBlock.length <= block) perBlock.push(0);
      perBlock[block] = (perBlock[block] ?? 0) + 1;
    },
    delete: (index) => {
      gaps.delete(index);
      const block = Math.floor(index / BLOCK);
      perBlock[block] = (perBlock[block] ?? 0) - 1;
    },
    rank: (index) => {
      const block = Math.floor(index / BLOCK);
      let below = index;
      for (let at = 0; at < block && at < perBlock.length; at++) below -= perBlock[at] ?? 0;
      for (let at = block * BLOCK; at < index; at++) if (gaps.has(at)) below--;
      return below;
    },
    each: (rank, count, visit) => {
      let left = rank;
      let block = 0;
      while (block < perBlock.length) {
        const size = BLOCK - (perBlock[block] ?? 0);
        if (left < size) break;
        left -= size;
        block++;
      }
      let index = block * BLOCK;
      if (block === perBlock.length) {
        // No gaps from here on.
        index += left;
        left = 0;
      }
      for (let visited = 0; visited < count; index++) {
        if (gaps.has(index)) continue;
        if (left > 0) left--;
        else {
          visit(index);
          visited++;
        }
      }
    },
  };
}
