import { expect, it } from 'vitest';
import { columnsOf, pricesOf } from '../../src/catalog/field-values.ts';
import { COLUMNS, PRICE_FIELDS } from '../../src/catalog/fields.ts';

function columns(fields: object) {
  return Object.fromEntries(COLUMNS.map(({ column }, at) => [column, columnsOf({ ...fields })[at]]));
}

function prices(fields: object) {
  return pricesOf({ ...fields }).map((price) =>
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
      duration: 180,
      prices: [
        { type: 'list', currency: 'USD', value: 7 },
        { currency: 'EUR', value: 'on request' },
      ],
    },
    { sku: 'NONE', prices: null },
    'odd',
  ];
  expect(prices({ variants })).toEqual([
    { sku: 'A', type: 'list', duration: 'perpetual', currency: 'USD', value: 12.5 },
    { sku: 'AR180', type: 'list', duration: '180', currency: 'USD', value: 7 },
    { sku: 'AR180', type: null, duration: '180', currency: 'EUR', value: null },
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
