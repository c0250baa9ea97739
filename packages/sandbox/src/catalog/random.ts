/** Returns a well mixed whole number from 0 to 2^32 - 1. The same arguments give the same number. */
export function hash(seed: number, a: number, b = 0): number {
  let h = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(a, 0xc2b2ae35) ^ Math.imul(b, 0x27d4eb2f);
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/** At least 0, below 1. */
export type Random = () => number;

/** Creates a sequence that depends only on the seed. */
export function createRandom(seed: number): Random {
  let step = 0;
  return () => hash(seed, ++step) / 2 ** 32;
}

/** Returns `count` of the numbers, or all if there are fewer, in any order (Floyd's algorithm: exactly `count` draws). */
export function sample(random: Random, count: number, numbers: readonly number[]): number[] {
  const chosen = new Set<number>();
  for (let last = Math.max(0, numbers.length - count); last < numbers.length; last++) {
    const drawn = Math.floor(random() * (last + 1));
    chosen.add(chosen.has(drawn) ? last : drawn);
  }
  return [...chosen].map((position) => numbers[position] ?? 0);
}
