import { isbn13 } from './isbn.ts';
import { hash } from './random.ts';

/** Three series of ISBNs share the nine digits: `3n` are vbids, `3n + 1` print editions, `3n + 2` electronic ones. */
const SERIES = 3;
/**
 * ISBNs are given out to publishers in blocks, and a publisher's titles come into a catalog together: so many neighbours
 * in the list are neighbours in number, and the blocks are in no order.
 */
const BLOCK = 100;
const BLOCKS = 3_333_333;
/** Coprime to the number of blocks, so that no two products get the same number. */
const STEP = 2_060_113;
const VERSION_STEP = 1_000_003;

export const MAX_PRODUCTS = 20_000_000;

/** Which numbers a product bears: pure functions of the seed, the product's index and its version. */
export interface Numbering {
  vbid(index: number): string;
  /** Null for one product in eight. */
  printIsbn(index: number): string | null;
  /** Differs from version to version; null for one product in sixteen, until its first update. */
  eIsbn(index: number, version: number): string | null;
  /** The index that would have this vbid; null where none below MAX_PRODUCTS has. */
  indexOf(vbid: string): number | null;
}

/** STEP to the power of -1 modulo BLOCKS: Euclid's extended algorithm. */
function inverseOfStep(): bigint {
  let [a, b, x, y] = [BigInt(STEP), BigInt(BLOCKS), 1n, 0n];
  while (b !== 0n) [a, b, x, y] = [b, a % b, y, x - (a / b) * y];
  return ((x % BigInt(BLOCKS)) + BigInt(BLOCKS)) % BigInt(BLOCKS);
}

export function createNumbering(seed: number): Numbering {
  const start = hash(seed, 0) % BLOCKS;
  const inverse = inverseOfStep();
  const number = (index: number) => ((Math.floor(index / BLOCK) * STEP + start) % BLOCKS) * BLOCK + (index % BLOCK);
  const vbid = (index: number) => isbn13(SERIES * number(index));

  return {
    vbid,
    printIsbn: (index) => (hash(seed, index, 1) % 8 === 0 ? null : isbn13(SERIES * number(index) + 1)),
    eIsbn: (index, version) =>
      version === 0 && hash(seed, index, 2) % 16 === 0
        ? null
        : isbn13(SERIES * ((number(index) + version * VERSION_STEP) % (BLOCKS * BLOCK)) + 2),
    indexOf: (text) => {
      if (!/^978\d{10}$/.test(text)) return null;
      const found = Math.floor(Number(text.slice(3, 12)) / SERIES);
      const offset = BigInt((Math.floor(found / BLOCK) - start + BLOCKS) % BLOCKS);
      const index = Number((offset * inverse) % BigInt(BLOCKS)) * BLOCK + (found % BLOCK);
      return index < MAX_PRODUCTS && vbid(index) === text ? index : null;
    },
  };
}
