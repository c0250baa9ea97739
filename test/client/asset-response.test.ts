import { expect, it } from 'vitest';
import { assetOf } from '../../src/client/assets/asset-response.ts';

const TEXTS =
  'vbid isbn isbn_canonical parent_id created title subtitle author_name author_first_name author_last_name description ' +
  'copyright_date e_isbn print_isbn language login_url on_sale_date off_sale_date publication_date';
const FLAGS = 'block_search custom epub_page_labels floe fro fulfillment_only sampleable vcs_authored';

/** Every field of section 2.2. */
const ANSWER = {
  ...Object.fromEntries(TEXTS.split(' ').map((name) => [name, `the ${name}`])),
  ...Object.fromEntries(FLAGS.split(' ').map((name, at) => [name, at % 2 === 0])),
  id: 71,
  asset_status: { vbk: 'built', distribution: 'initialized' },
  book_format: { name: 'ePub', value: 'epub', dash2epub: false },
  build: { available: true, source: 'server', status: 'approved' },
  copy_drm_limit: -1,
  print_drm_limit: 2,
  lifetime_print_limit: 100,
  edition: 3,
  cs_plus_discount: '12.5',
  discount_codes: ['A'],
  identifiers: { e_isbn_10: ['1402894627'], print_isbn_13: [] },
  kind: { id: 1, value: 'book' },
  related_products: { next_edition: 'n', previous_edition: 'q' },
  sales_rights: { exclusive_rights: ['US'], non_exclusive_rights: ['ROW'], not_for_sale: ['DE'] },
  imprint: { id: 5, name: 'I', resource_url: 'https://a.example/imprints/5' },
  publisher: { id: 6, name: 'P', city: 'C' },
  variants: [
    {
      product_id: 9,
      sku: '9781402894626R180',
      duration: '180',
      online_duration: 'perpetual',
      channel_ids: [{ channel: 'inclusive_access', identifier: 'ia-1' }],
      updated: '2015-08-24T15:04:05Z',
      prices: [{ price: '19.90', currency: 'USD', type: 'digital_list_price', company_id: '_all' }],
    },
  ],
};

// @rule 2.2-1..15, 2.2-18..27, 4.1-7
it('2.2: the reader of an asset returns every field', () => {
  expect(assetOf(ANSWER)).toEqual({ ...ANSWER, raw: ANSWER });
});

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
