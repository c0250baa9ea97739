import { columnsOf, partsOf } from '@catchword/catalog/field-values';
import { COLUMNS, PRICE_FIELDS } from '@catchword/catalog/fields';
import { expect, it } from 'vitest';

function columns(fields: object) {
  return Object.fromEntries(COLUMNS.map(({ column }, at) => [column, columnsOf({ ...fields })[at]]));
}

function prices(fields: object) {
  return partsOf({ ...fields }).prices.map((price) =>
    Object.fromEntries(PRICE_FIELDS.map(({ column }, at) => [column, price[at]])),
  );
}

it('an item has the fields that a shop shows', () => {
  const fields = {
    subtitle: 'A Tale',
    language: 'en',
    edition: 2,
    distributable: true,
    off_sale_date: null,
    contributors: [{ name: 'Ann Lee', type: 'author' }, 'Bo', { name: 'null' }, { type: 'editor' }],
    on_sale_date: '2026-01-31',
    resource_links: { cover_image: 'https://covers.example/1.jpg' },
  };
  expect(columns(fields)).toEqual({
    ...columns({}),
    distributable: true,
    subtitle: 'A Tale',
    contributors: 'Ann Lee; Bo',
    language: 'en',
    edition: '2',
    cover_url: 'https://covers.example/1.jpg',
    on_sale_date: '2026-01-31',
  });
});

it('lists of countries are JSON arrays of their texts; anything else is null', () => {
  const rights = (sales_rights: unknown) => columns({ sales_rights }).sales_rights;
  expect(rights(['US', 'GB'])).toBe('["US","GB"]');
  expect(rights([])).toBe('[]');
  expect(rights(['US', null, 7, ['GB'], ''])).toBe('["US","7"]');
  for (const other of ['US', null, { not_for_sale: ['US'] }]) expect(rights(other)).toBeNull();
  expect(columns({ exclude_sales_rights: ['US'] })).toEqual({ ...columns({}), exclude_sales_rights: '["US"]' });
});

it('contributors keep their places, and an identifier that is a list has a row for each text', () => {
  const contributors = [{ name: 'Ann Lee', type: 'author' }, { type: 'editor' }, 'Bo', { value: 'Cy' }];
  const identifiers = { e_isbn_13: '9780000000002', fpid: 12, vbid13_alias: ['A', null, 'B'], none: null, other: {} };
  expect(partsOf({ contributors, identifiers })).toEqual({
    prices: [],
    contributors: [
      [1, 'Ann Lee', 'author'],
      [3, 'Bo', null],
      [4, 'Cy', null],
    ],
    identifiers: [
      ['e_isbn_13', '9780000000002'],
      ['fpid', '12'],
      ['vbid13_alias', 'A'],
      ['vbid13_alias', 'B'],
    ],
  });
  expect(partsOf({ contributors: 'Ann', identifiers: ['A'], variants: {} })).toEqual({
    prices: [],
    contributors: [],
    identifiers: [],
  });
});

it('null stands for fields that are absent or "null"', () => {
  const nothing = { ...Object.fromEntries(COLUMNS.map(({ column }) => [column, null])), distributable: true };
  expect(columns({})).toEqual(nothing);
  expect(columns({ edition: 0 })).toEqual({ ...nothing, edition: '0' });
  const odd = { subtitle: 'null', language: '', contributors: 'Ann', resource_links: 'null', distributable: 'null' };
  expect(columns(odd)).toEqual(nothing);
});

it.each([
  [false, false],
  ['false', false],
  [true, true],
  [undefined, true],
])('distributable %j is read as %j', (distributable, expected) => {
  expect(columns({ distributable }).distributable).toBe(expected);
});

it("prices have a row each, with its variant's sku and duration", () => {
  const variants = [
    { sku: 'A', type: 'single', duration: 'perpetual', prices: [{ type: 'list', currency: 'USD', value: '12.50' }] },
    {
      sku: 'AR180',
      type: 'rental',
      distributable: 'false',
      duration: 180,
      prices: [
        { type: 'list', currency: 'USD', value: 7 },
        { currency: 'EUR', value: 'on request' },
      ],
    },
    { sku: 'NONE', prices: null },
    'odd',
  ];
  const single = { variant_type: 'single', variant_distributable: true };
  const rental = { variant_type: 'rental', variant_distributable: false };
  expect(prices({ variants })).toEqual([
    { ...single, sku: 'A', type: 'list', duration: 'perpetual', currency: 'USD', value: 12.5 },
    { ...rental, sku: 'AR180', type: 'list', duration: '180', currency: 'USD', value: 7 },
    { ...rental, sku: 'AR180', type: null, duration: '180', currency: 'EUR', value: null },
  ]);
});

it.each([
  ['1e400', null],
  ['1e2', null],
  ['', null],
  [' 3.5 ', 3.5],
  ['0x10', null],
  [true, null],
  [null, null],
  ['null', null],
])('a price of %j is read as %j', (value, expected) => {
  expect(prices({ variants: [{ prices: [{ value }] }] })[0]?.value).toBe(expected);
});
