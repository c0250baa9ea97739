import { limitOf } from '@catchword/catalog/product-limit';
import { expect, it } from 'vitest';

it.each([
  [{ products: 7 }, 1_000_000, 7],
  [{ products: 0 }, 1_000_000, 0],
  [{ percent: 1 }, 50_000, 500],
  [{ percent: 1 }, 10_099, 100],
  [{ products: Number.POSITIVE_INFINITY }, 1_000_000, Number.POSITIVE_INFINITY],
  [{ percent: 0 }, 1_000_000, 100],
])('the limit %j of %i living products is %i', (given, living, limit) => {
  expect(limitOf(given, living)).toBe(limit);
});
