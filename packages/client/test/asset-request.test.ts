// @module-tag service

import { CatchwordError } from '@catchword/base/errors';
import { checkAsset } from 'catchword-client/assets/asset-request';
import { expect, it } from 'vitest';

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

it.each([
  [{ related_products: { next_edtion: 'x' } }, 'related_products.next_edtion: unknown field', 'next_edition'],
  [{ identifiers: { print_isbn13: ['x'] } }, 'identifiers.print_isbn13: unknown field', 'print_isbn_13'],
  [{ sales_rights: { exclusive: [] } }, 'sales_rights.exclusive: ', 'exclusive_rights, non_exclusive_rights'],
  [{ variants: [{ duration: 'perpetual' }] }, 'variants[0].duration: unknown field', 'channel_ids'],
  [{ variants: [{ channel_ids: [{ channel_id_x: '' }] }] }, 'channel_ids[0].channel_id_x: unknown', 'inclusive_access'],
  [{ prices: [{ type: 'rental' }] }, 'prices[0].currency: missing, must be a currency code', 'unchecked'],
])('the check of an asset names the members of %j, and those that are known', (fields, message, hint) => {
  const error = refusal(fields);
  expect(error.message).toContain(message);
  expect(error.hint).toContain(hint);
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

it('the check of an asset lists every invalid field, and suggests known names', () => {
  const error = refusal({ titel: 'A', printDrmLimit: 5, edition: 300, vbid: '1', __proto__x: 1 });
  for (const path of ['titel', 'printDrmLimit', 'edition', 'vbid', '__proto__x']) expect(error.message).toContain(path);
  expect(error.hint).toContain('Did you mean title instead of titel?');
  expect(error.hint).toContain('Did you mean print_drm_limit instead of printDrmLimit?');
  expect(refusal(JSON.parse('{"__proto__":{"title":"A"}}')).message).toContain('__proto__');
  for (const none of [null, [], 'title', 5, undefined]) expect(refusal(none)).toMatchObject({ code: 'USAGE' });
});
