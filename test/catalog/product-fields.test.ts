import { expect, it } from 'vitest';
import { detailsOf, pricesOf } from '../../src/catalog/product-fields.ts';

it('reads the fields that a shop shows', () => {
  const fields = {
    subtitle: 'A Tale',
    language: 'en',
    edition: 2,
    distributable: true,
    off_sale_date: null,
    contributors: [
      {
        name: 'Ann Lee',
        type: 'author',
      },
      'Bo',
      { name: 'null' },
      { type: 'editor' },
    ],
    on_sale_date: '2026-01-31',
    resource_links: { cover_image: 'https://covers.example/1.jpg' },
  };
  expect(detailsOf(fields)).toEqual({
    distributable: true,
    subtitle: 'A Tale',
    contributors: 'Ann Lee; Bo',
    language: 'en',
    edition: '2',
    coverUrl: 'https://covers.example/1.jpg',
    onSaleDate: '2026-01-31',
    offSaleDate: null,
  });
});

it('returns null for fields that are absent or "null"', () => {
  const nothing = { subtitle: null, contributors: null, language: null, edition: null, coverUrl: null };
  const expected = { distributable: true, ...nothing, onSaleDate: null, offSaleDate: null };
  expect(detailsOf({})).toEqual(expected);
  const odd = { subtitle: 'null', language: '', contributors: 'Ann', resource_links: 'null', distributable: 'null' };
  expect(detailsOf(odd)).toEqual(expected);
});

it.each([
  [false, false],
  ['false', false],
  [true, true],
  [undefined, true],
])('distributable %j is read as %j', (distributable, expected) => {
  expect(detailsOf({ distributable }).distributable).toBe(expected);
});

it('keeps edition 0', () => {
  expect(detailsOf({ edition: 0 }).edition).toBe('0');
});

it("returns one row for each price, with its variant's sku and duration", () => {
  const variants = [
    { sku: 'A', type: 'single', duration: 'perpetual', prices: [{ type: 'list', currency: 'USD', value: '12.50' }] },
    {
      sku: 'AR180',
      duration: 180,
      prices: [
        { type: 'list', currency: 'USD', value: 7 },
        { currency: 'EUR', value: 'on request' },
      ],
    },
    { sku: 'NONE', prices: null },
    'odd',
  ];
  expect(pricesOf({ variants })).toEqual([
    { sku: 'A', type: 'list', duration: 'perpetual', currency: 'USD', value: 12.5 },
    { sku: 'AR180', type: 'list', duration: '180', currency: 'USD', value: 7 },
    { sku: 'AR180', type: null, duration: '180', currency: 'EUR', value: null },
  ]);
});

it.each([
  ['1e400', null],
  ['', null],
  [' 3.5 ', 3.5],
  ['0x10', null],
  [true, null],
  [null, null],
  ['null', null],
])('a price of %j is read as %j', (value, expected) => {
  expect(pricesOf({ variants: [{ prices: [{ value }] }] })[0]?.value).toBe(expected);
});
