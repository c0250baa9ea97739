import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeIds, encodeIds } from '../../src/store/rows/ids.ts';

it('encodes and decodes any ids in any order', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 31 - 1 })), (ids) => {
      expect(decodeIds(encodeIds(ids))).toEqual(ids);
    }),
  );
});

it('encodes consecutive ids in one byte each', () => {
  expect(encodeIds(Array.from({ length: 1000 }, (_, index) => 1_000_000 + index)).length).toBeLessThan(1010);
});
