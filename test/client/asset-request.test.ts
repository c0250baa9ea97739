import { expect, it } from 'vitest';
import { CatchwordError } from '../../src/base/errors.ts';
import { checkAsset } from '../../src/client/assets/asset-request.ts';

const update = { create: false };

function refusal(fields: unknown, rules: { create: boolean; allowInternal?: boolean } = update): CatchwordError {
  try {
    checkAsset(fields, rules);
  } catch (error) {
    if (error instanceof CatchwordError) return error;
    throw error;
  }
  throw new Error(`${JSON.stringify(fields)} was taken`);
}

/** Checks that each invalid value is rejected by the path of its field, and each valid one accepted. */
function bounds(field: string, taken: readonly unknown[], refused: readonly unknown[], allowed: string): void {
  for (const value of taken) expect(checkAsset({ [field]: value }, update), String(value)).toHaveProperty(field);
  for (const value of refused) {
    const error = refusal({ [field]: value });
    expect(error).toMatchObject({ code: 'USAGE', exitCode: 2, retryable: false });
    expect(error.message, String(value)).toMatch(new RegExp(`^the asset: ${field}(\\[|\\.|: )`));
    expect(error.message).toContain(allowed);
    expect(error.hint).toMatch(/\.$/);
  }
}

const DRM: readonly unknown[] = [-2, 0, 1, '0', '1', 2.5, 'many', '', true, null, [2]];
const NO_DATES = ['2023-02-29', '2026-13-01', '2026-04-31', '01/02/2026', '2026-1-2', '2026-01-01T00:00:00Z', 20260101];
const TEXT_FIELDS =
  'author_name author_first_name author_last_name description cs_plus_discount_code e_isbn kind parent_isbn print_isbn title subtitle';

// @rule 2.1-3..5, 2.1-7..9, 2.1-11, 2.1-13..15, 2.1-18..19, 2.1-21..29, 2.1-32..34, 2.1-38..39, 4.1-10, 8-3..5
it.each<[string, string, readonly unknown[], readonly unknown[]]>([
  ['copy_drm_limit print_drm_limit', '-1 (unlimited)', [-1, '-1', 2, '2', 100], DRM],
  ['edition', 'from 0 to 127', [0, 127, '0', '127'], [-1, 128, '128', 1.5, 'second', '1e1', '0x10']],
  ['copyright_date', 'four digits', ['2015', '0999'], ['15', '20155', '2015-01-01', ' 2015', '٢٠١٥', 2015]],
  ['on_sale_date off_sale_date publication_date', 'ISO 8601 date', ['2026-01-31', '2024-02-29', null], NO_DATES],
  ['fro fulfillment_only sampleable', 'true or false', [true, false, 'true'], ['yes', 1, 0, 'TRUE', '', null]],
  [TEXT_FIELDS, 'text', ['a text', 'Ünïcode & <marks>'], [5, true, null, {}, ['a']]],
  ['imprint_id', 'whole number', [12, '12'], ['twelve', 1.5, null, 2 ** 60]],
  ['language', 'language code', ['en', 'eng', 'pt-BR', 'zh-Hant'], ['', 'e', 'English language', 5]],
  [
    'url callback_url login_url',
    'http',
    ['https://files.example/a.epub', 'http://a.example'],
    ['file:///a', 'a.epub', 5],
  ],
])('2.1, 8: the fields %s must be: %s', (fields, allowed, taken, refused) => {
  for (const field of fields.split(' ')) bounds(field, taken, refused, allowed);
});

it.each(['url', 'callback_url', 'login_url'])('2.1: an error about %s does not show the address', (field) => {
  expect(refusal({ [field]: 'ftp://user:secret@files.example' }).message).not.toContain('secret');
});

// @rule 2.1-30
it('2.1: related_products holds next_edition and previous_edition', () => {
  expect(checkAsset({ related_products: { next_edition: '9781402894626' } }, update)).toBeTruthy();
  const error = refusal({ related_products: { next_edtion: '9781402894626' } });
  expect(error.message).toContain('related_products.next_edtion: unknown field');
  expect(error.hint).toContain('next_edition');
  bounds('related_products', [{}], ['9781402894626', { previous_edition: 5 }, []], 'must be');
});

// @rule 2.1-31
it('2.1: sales_rights names countries, ROW and WORLD; not_for_sale may be null', () => {
  const taken = [
    { exclusive_rights: ['US', 'CA'], non_exclusive_rights: ['ROW'], not_for_sale: null },
    { exclusive_rights: ['WORLD'], not_for_sale: ['DE'] },
  ];
  const refused = [{ exclusive_rights: ['USA'] }, { exclusive_rights: ['us'] }, { non_exclusive_rights: 'US' }];
  bounds('sales_rights', taken, [...refused, { exclusive_rights: null }, { not_for_sale: 'US' }], 'two-letter');
  expect(refusal({ sales_rights: { exclusive: [] } }).hint).toContain('exclusive_rights, non_exclusive_rights');
});

// @rule 2.1-1..2, 2.1-6, 2.1-10, 2.1-12, 2.1-16..17, 2.1-37, 3-1
it('2.1: the check of an asset rejects internal fields unless allowInternal is set', () => {
  const internal = {
    asset_status: { vbk: 'a', distribution: 'initialized' },
    block_search: true,
    custom: 'false',
    discount_codes: ['A'],
    epub_page_labels: false,
    floe: false,
    vcs_authored: true,
  };
  for (const [field, value] of Object.entries(internal)) {
    expect(refusal({ [field]: value }).message, field).toMatch(new RegExp(`^the asset: ${field}: .*internal systems`));
    expect(checkAsset({ [field]: value }, { create: false, allowInternal: true })).toHaveProperty(field);
  }
  expect(checkAsset(internal, { create: false, allowInternal: true })).toEqual({ ...internal, custom: false });
  expect(() => checkAsset({ floe: 'perhaps' }, { create: false, allowInternal: true })).toThrow('true or false');
});

// @rule 2.1-21, 2.1-33
it('2.1: create needs imprint_id and title, update does not', () => {
  expect(refusal({}, { create: true }).message).toMatch(
    /^the asset: imprint_id: missing, .* to create an asset; title: missing, .* to create an asset/,
  );
  expect(refusal({ title: ' ', imprint_id: 1 }, { create: true }).message).toContain('title');
  expect(checkAsset({ title: 'A', imprint_id: '1' }, { create: true })).toEqual({ title: 'A', imprint_id: 1 });
  expect(checkAsset({}, update)).toEqual({});
});

// @rule 2.1-20, 2.1.1-1, 2.1.1-4..5
it('2.1.1: identifiers holds the six keys, each an array of texts, [] or null', () => {
  const six = ['e_isbn_10', 'e_isbn_13', 'print_isbn_10', 'print_isbn_13', 'vbid10_alias', 'vbid13_alias'];
  for (const key of six) {
    for (const value of [['0306406152'], [], null]) {
      expect(checkAsset({ identifiers: { [key]: value } }, update)).toEqual({ identifiers: { [key]: value } });
    }
    expect(refusal({ identifiers: { [key]: '0306406152' } }).message).toContain(`identifiers.${key}: `);
    expect(refusal({ identifiers: { [key]: [306406152] } }).message).toContain(`identifiers.${key}[0]: 306406152`);
  }
  const error = refusal({ identifiers: { print_isbn13: ['x'] } });
  expect(error.message).toContain('identifiers.print_isbn13: unknown field');
  expect(error.hint).toContain('print_isbn_13');
});

// @rule 2.1-35, 2.1.2-1..5
it('2.1.2: a price has currency, type and amount; a rental price a duration too', () => {
  const price = { currency: 'USD', type: 'digital_list_price', amount: '19.90' };
  const rental = { ...price, type: 'digital_rental_price', duration: '180', tax_inclusive: 'false' };
  const prices = [price, { ...price, amount: 0 }, rental];
  expect(checkAsset({ prices }, update)).toEqual({
    prices: [price, { ...price, amount: 0 }, { ...rental, duration: 180, tax_inclusive: false }],
  });
  const wrong = (more: object) => refusal({ prices: [price, { ...price, ...more }] }).message;
  expect(wrong({ type: 'digital_rental_price' })).toContain('prices[1].duration: missing, ');
  expect(wrong({ currency: 'dollars' })).toContain('prices[1].currency: "dollars" is not valid');
  for (const currency of [undefined, null, 5]) {
    expect(wrong({ currency })).toMatch(/prices\[1\].currency: .*, must be a currency code of three capital letters/);
  }
  for (const right of [undefined, null, 5]) {
    const { message } = refusal({ sales_rights: { exclusive_rights: [right] } });
    expect(message).toContain(', must be a two-letter country code, ROW or WORLD');
  }
  expect(wrong({ amount: '19,90' })).toContain('prices[1].amount: "19,90"');
  expect(wrong({ amount: -1 })).toContain('prices[1].amount: -1');
  expect(wrong({ amount: undefined })).toContain('prices[1].amount: missing');
  expect(wrong({ duration: 0 })).toContain('prices[1].duration: 0');
  expect(wrong({ territory: 'US' })).toContain('prices[1].territory: unknown field');
  expect(refusal({ prices: price }).message).toContain('must be an array of prices');
  expect(refusal({ prices: [{}] }).message).toMatch(/prices\[0\].currency: .*prices\[0\].type: .*prices\[0\].amount: /);
});

// @rule 2.1.2-3, 2.1.2-6
it('2.1.2: the check of an asset accepts numbers and booleans in quotes, and keeps every digit of a decimal', () => {
  const quoted = { copy_drm_limit: '-1', print_drm_limit: '50', fro: 'true', edition: '3' };
  expect(checkAsset(quoted, update)).toEqual({ copy_drm_limit: -1, print_drm_limit: 50, fro: true, edition: 3 });
  const prices = [{ currency: 'USD', type: 'list', amount: '12345678901234567.10' }];
  expect(checkAsset({ prices }, update)).toEqual({ prices });
});

// @rule 2.1.3-1..3, 8-7
it('2.1.3, 8: the check of an asset accepts no channel identifier but channel_id_inclusive_access', () => {
  const channelId = { sku: '9781402894626R180', channel_id_inclusive_access: 'ia-1' };
  const variants = [{ channel_ids: [channelId] }];
  expect(checkAsset({ variants }, update)).toEqual({ variants });
  expect(checkAsset({ variants: [channelId] }, update)).toEqual({ variants });
  const error = refusal({ variants: [{ channel_ids: [channelId, { sku: 'a', channel_id_elsewhere: 'x' }] }] });
  expect(error.message).toContain('variants[0].channel_ids[1].channel_id_elsewhere: unknown field');
  expect(error.message).toContain('variants[0].channel_ids[1].channel_id_inclusive_access: missing');
  expect(error.hint).toContain('channel_id_inclusive_access');
  expect(refusal({ variants: [{ channel_ids: [{ channel_id_inclusive_access: 'x' }] }] }).message).toContain(
    'sku: missing',
  );
});

// @rule 2.1-36, 2.1.3-1
it('2.1: the check of an asset accepts no field of a variant but channel_ids', () => {
  const error = refusal({ variants: [{ channel_ids: [], duration: 'perpetual' }] });
  expect(error.message).toContain('variants[0].duration: unknown field');
  expect(error.hint).toContain('channel_ids');
  for (const variants of [{}, 'a', [5], [{}], [{ channel_ids: {} }]]) {
    expect(refusal({ variants }).message).toMatch(/^the asset: variants/);
  }
});

it('the check of an asset sends every field as it is with unchecked, and those that fit as usual', () => {
  const fields = { imprint_id: '5', edition: '300', sales_rights: { exclusive_rights: ['EMEA'] }, future: { a: 1 } };
  const sent = checkAsset(fields, { create: true, unchecked: true });
  expect(sent).toEqual({ ...fields, imprint_id: 5 });
  expect(refusal(fields).hint).toContain('unchecked (--force)');
  expect(() => checkAsset([], { create: false, unchecked: true })).toThrow('must be an object');
  const odd = JSON.parse('{"__proto__":{"title":"A"},"constructor":1}');
  expect(JSON.stringify(checkAsset(odd, { create: false, unchecked: true }))).toBe(JSON.stringify(odd));
});

// @rule 2.1.1-5
it('2.1.1 rule 4: identifiers may be null', () => {
  expect(checkAsset({ identifiers: null }, update)).toEqual({ identifiers: null });
});

it('the check of an asset lists every invalid field, and suggests known names', () => {
  const error = refusal({ titel: 'A', printDrmLimit: 5, edition: 300, vbid: '1', __proto__x: 1 });
  for (const path of ['titel', 'printDrmLimit', 'edition', 'vbid', '__proto__x']) expect(error.message).toContain(path);
  expect(error.hint).toContain('Did you mean title instead of titel?');
  expect(error.hint).toContain('Did you mean print_drm_limit instead of printDrmLimit?');
  expect(refusal(JSON.parse('{"__proto__":{"title":"A"}}')).message).toContain('__proto__');
  for (const none of [null, [], 'title', 5, undefined]) expect(refusal(none)).toMatchObject({ code: 'USAGE' });
});
