/** Seeds of histories that take seconds. */
export const LONG_SEEDS: readonly number[] = [16, 17, 18, 19, 31, 32, 70, 86, 88, 90, 91, 100, 108];

/** Seeds of the histories that `npm test` simulates. */
export const QUICK_SEEDS: readonly number[] = Array.from({ length: 111 }, (_, at) => 1 + at).filter(
  (seed) => !LONG_SEEDS.includes(seed),
);
