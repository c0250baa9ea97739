import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeIds, decodeShown, encodeIds } from '../../src/store/rows/ids.ts';

it('any ids in any order are decoded as they were encoded', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 31 - 1 })), (ids) => {
      expect(decodeIds(encodeIds(ids))).toEqual(ids);
    }),
  );
});

it('digests are decoded with the product before them, apart from the ids', () => {
  const bytes = encodeIds([5, -(2 ** 32), 0, 6, 2 ** 31 - 1, -1]);
  expect(decodeIds(bytes)).toEqual([5, 0, 6, 2 ** 31 - 1]);
  expect([...decodeShown(bytes)]).toEqual([
    [5, 2 ** 32],
    [2 ** 31 - 1, 1],
  ]);
});

it('consecutive ids take one byte each', () => {
  expect(encodeIds(Array.from({ length: 1000 }, (_, index) => 1_000_000 + index)).length).toBeLessThan(1010);
});
