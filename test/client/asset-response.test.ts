// @module-tag service
import { expect, it } from 'vitest';
import { assetOf } from '../../src/client/assets/asset-response.ts';

// @rule 2.2-16
it('2.2: kind is an object', () => {
  expect(assetOf({ kind: { id: '4', value: 'chapter' } })?.kind).toEqual({ id: 4, value: 'chapter' });
  expect(assetOf({ kind: ['chapter'] }).kind).toBeUndefined();
});

// @rule 2.2-17
it('2.2: language is a code or a full name', () => {
  for (const language of ['en', 'English']) expect(assetOf({ language })?.language).toBe(language);
});

// @rule 2.2-14, 2.2-27
it('2.2: a decimal may be a number or a text, and keeps every digit', () => {
  const prices = (price: unknown) =>
    assetOf({ variants: [{ prices: [{ price }] }] })?.variants?.[0]?.prices?.[0]?.price;
  expect(prices('19.90')).toBe('19.90');
  expect(prices(19.9)).toBe('19.9');
  expect(prices('12345678901234567.10')).toBe('12345678901234567.10');
  expect(prices('free')).toBeUndefined();
  expect(assetOf({ cs_plus_discount: 12.5 })?.cs_plus_discount).toBe('12.5');
});

it('2.2: numbers and booleans may be in quotes', () => {
  const asset = assetOf({ edition: '0', copy_drm_limit: '-1', fro: 'true', vbid: 9781402894626 });
  expect(asset).toMatchObject({ edition: 0, copy_drm_limit: -1, fro: true, vbid: '9781402894626' });
});

it('2.2: a field that is missing, null, "null" or of another form is undefined, and raw has every field', () => {
  const answer = {
    vbid: 'a',
    title: null,
    isbn: 'null',
    edition: 'third',
    build: 'yes',
    variants: [7],
    rating: { x: 1 },
  };
  const asset = assetOf(answer);
  expect(asset).toMatchObject({ vbid: 'a', variants: [], raw: answer });
  for (const key of ['title', 'isbn', 'edition', 'build', 'kind', 'prices'] as const) {
    expect(asset, key).not.toHaveProperty([key], expect.anything());
  }
  expect(asset?.raw.rating).toEqual({ x: 1 });
  expect(assetOf(undefined).raw).toEqual({});
});
