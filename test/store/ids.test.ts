import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeIds, encodeIds } from '../../src/store/rows/ids.ts';

it('any ids in any order are decoded as they were encoded', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 31 - 1 })), (ids) => {
      expect(decodeIds(encodeIds(ids))).toEqual(ids);
    }),
  );
});

it('consecutive ids take one byte each', () => {
  expect(encodeIds(Array.from({ length: 1000 }, (_, index) => 1_000_000 + index)).length).toBeLessThan(1010);
});
