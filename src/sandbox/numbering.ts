import { isbn13 } from './isbn.ts';
import { hash } from './random.ts';

/** Three series of ISBNs share the nine digits: `3n` are vbids, `3n + 1` print editions, `3n + 2` electronic ones. */
const SERIES = 3;
const MODULUS = 333_333_333;
/** Coprime to the modulus, so that no two products get the same number; products below stay exact in a double. */
const STEP = 206_011_330;
const VERSION_STEP = 1_000_003;

/** More would lose digits in `index * STEP`. */
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

/** STEP to the power of -1: Euclid's extended algorithm. */
function inverseOfStep(): bigint {
  let [a, b, x, y] = [BigInt(STEP), BigInt(MODULUS), 1n, 0n];
  while (b !== 0n) [a, b, x, y] = [b, a % b, y, x - (a / b) * y];
  return ((x % BigInt(MODULUS)) + BigInt(MODULUS)) % BigInt(MODULUS);
}

export function createNumbering(seed: number): Numbering {
  const start = hash(seed, 0) % MODULUS;
  const inverse = inverseOfStep();
  const vbid = (index: number) => isbn13(SERIES * ((index * STEP + start) % MODULUS));

  return {
    vbid,
    printIsbn: (index) =>
      hash(seed, index, 1) % 8 === 0 ? null : isbn13(SERIES * ((index * STEP + start) % MODULUS) + 1),
    eIsbn: (index, version) =>
      version === 0 && hash(seed, index, 2) % 16 === 0
        ? null
        : isbn13(SERIES * ((index * STEP + start + version * VERSION_STEP) % MODULUS) + 2),
    indexOf: (text) => {
      if (!/^978\d{10}$/.test(text)) return null;
      const number = Math.floor(Number(text.slice(3, 12)) / SERIES);
      const offset = BigInt((number - start + MODULUS) % MODULUS);
      const index = Number((offset * inverse) % BigInt(MODULUS));
      return index < MAX_PRODUCTS && vbid(index) === text ? index : null;
    },
  };
}
