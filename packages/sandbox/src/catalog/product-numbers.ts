import { isbn13 } from '@catchword/base/isbn';
import { hash } from './random.ts';

/** Three series of ISBNs share the nine digits: `3n` for vbids, `3n + 1` for print editions, `3n + 2` for electronic ones. */
const SERIES = 3;
/** Publishers get ISBNs in blocks, so neighbours in the list are often neighbours in number. The order is arbitrary. */
const BLOCK = 100;
const BLOCKS = 3_333_333;
/** Coprime to the number of blocks, so that no two products get the same number. */
const STEP = 2_060_113;
/** STEP times this is 1 modulo BLOCKS. */
const INVERSE = 1_227_850n;
const VERSION_STEP = 1_000_003;

/** @rule 4.1-3 */
export const MAX_PRODUCTS = 20_000_000;

/** The numbers of a product: pure functions of the seed, the product's index and its version. */
export function createNumbering(seed: number) {
  const start = hash(seed, 0) % BLOCKS;
  const number = (index: number) => ((Math.floor(index / BLOCK) * STEP + start) % BLOCKS) * BLOCK + (index % BLOCK);
  const vbid = (index: number): string => isbn13(SERIES * number(index));

  return {
    vbid,
    /** Null for one product in eight. */
    printIsbn: (index: number): string | null =>
      hash(seed, index, 1) % 8 === 0 ? null : isbn13(SERIES * number(index) + 1),
    /** Differs from version to version; null for one product in sixteen, until its first update. */
    eIsbn: (index: number, version: number): string | null =>
      version === 0 && hash(seed, index, 2) % 16 === 0
        ? null
        : isbn13(SERIES * ((number(index) + version * VERSION_STEP) % (BLOCKS * BLOCK)) + 2),
    /** Returns the index of the product with this vbid. Null if no index below MAX_PRODUCTS has it. */
    indexOf: (text: string): number | null => {
      if (!/^978\d{10}$/.test(text)) return null;
      const found = Math.floor(Number(text.slice(3, 12)) / SERIES);
      const offset = BigInt((Math.floor(found / BLOCK) - start + BLOCKS) % BLOCKS);
      const index = Number((offset * INVERSE) % BigInt(BLOCKS)) * BLOCK + (found % BLOCK);
      return index < MAX_PRODUCTS && vbid(index) === text ? index : null;
    },
  };
}

export type Numbering = ReturnType<typeof createNumbering>;
