// @module-tag service

import { isbn10, isbn13 } from '@catchword/base/isbn';
import { createNumbering } from '@catchword/sandbox/catalog/product-numbers';
import { expect, it } from 'vitest';

function checksum(isbn: string): number {
  return Array.from(isbn).reduce((sum, digit, at) => sum + Number(digit) * (at % 2 === 0 ? 1 : 3), 0) % 10;
}

it('ISBNs have the right check digit', () => {
  expect(isbn13(30_640_615)).toBe('9780306406157');
  for (const body of [0, 7, 999, 1000, 123_456_789, 999_999_999]) expect(checksum(isbn13(body))).toBe(0);
});

it('ISBNs have the ISBN-10 of the same book', () => {
  expect(isbn10('9780306406157')).toBe('0306406152');
  expect(isbn10('9780804429573')).toBe('080442957X');
});

const numbering = createNumbering(7);

// @rule 2.5-3
it('the numbering gives every product different numbers', () => {
  const seen = new Set<string>();
  let given = 0;
  for (let index = 0; index < 20_000; index++) {
    for (const isbn of [numbering.vbid(index), numbering.printIsbn(index), numbering.eIsbn(index, 0)]) {
      if (isbn === null) continue;
      given++;
      seen.add(isbn);
      expect(checksum(isbn)).toBe(0);
    }
  }
  expect(seen.size).toBe(given);
});

it('the numbering finds a product only by its vbid', () => {
  for (const index of [0, 1, 999_999, 19_999_999]) expect(numbering.indexOf(numbering.vbid(index))).toBe(index);
  const vbid = numbering.vbid(5);
  const wrongCheckDigit = vbid.slice(0, 12) + ((Number(vbid[12]) + 1) % 10);
  for (const other of [wrongCheckDigit, numbering.eIsbn(5, 1) ?? '', 'L-999-70031', '']) {
    expect(numbering.indexOf(other)).toBeNull();
  }
});

it('the numbering depends on the seed', () => {
  expect(createNumbering(8).vbid(0)).not.toBe(numbering.vbid(0));
  expect(createNumbering(7).vbid(0)).toBe(numbering.vbid(0));
});

it('the numbering gives every version a different electronic ISBN', () => {
  for (let index = 0; index < 100; index++) {
    const versions = Array.from({ length: 20 }, (_, version) => numbering.eIsbn(index, version));
    expect(new Set(versions).size).toBe(20);
  }
});
