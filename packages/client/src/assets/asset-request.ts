import { recordOf } from '@catchword/base/record-of';
import * as z from 'zod';
import type { JsonObject } from '../http/answer.ts';
import { parseInput, UNCHECKED_HINT, uncheckedFields } from '../input/parse-input.ts';
import { day, decimal, flag, httpUrl, name, only, text, texts, whole, written } from '../input/request-fields.ts';

/* The request fields of an asset (interface, section 2.1, with the limits of section 8). */

const drmLimit = whole('must be -1 (unlimited) or a whole number of 2 or more', (value) => value === -1 || value >= 2);

/** New values are added. `[]` changes nothing; null clears, and the service refills from the other 10/13 form. */
const isbns = z.array(name, 'must be an array of texts, or null').nullable().optional();

/** 2.1.1 */
const identifiers = only({
  ...recordOf(isbns, 'e_isbn_10', 'e_isbn_13', 'print_isbn_10', 'print_isbn_13', 'vbid10_alias', 'vbid13_alias'),
});

/** 2.1.2 */
const price = only({
  currency: written('must be a currency code of three capital letters, such as USD', /^[A-Z]{3}$/),
  type: name,
  amount: decimal,
  duration: whole('must be a whole number of days, 1 or more', (days) => days >= 1).optional(),
  tax_inclusive: flag.optional(),
}).superRefine(({ type, duration }, context) => {
  if (!/rental/i.test(type) || duration !== undefined) return;
  const message = `must be the days of the rental, since the price is of type ${type}`;
  context.addIssue({ code: 'custom', path: ['duration'], message, input: undefined });
});

/** 2.1.3: `inclusive_access` is the only channel. */
const channelId = only({ sku: name, channel_id_inclusive_access: name });

const channelIds = z.array(channelId, 'must be an array of {sku, channel_id_inclusive_access}');

/** Only `channel_ids` of a variant can be set. A single channel identifier is accepted instead of the variant. */
const variant = z.preprocess(
  (given) => (typeof given === 'object' && given !== null && 'sku' in given ? { channel_ids: [given] } : given),
  only({ channel_ids: channelIds }),
);

const jurisdictions = z.array(
  written('must be a two-letter country code, ROW or WORLD', /^([A-Z]{2}|ROW|WORLD)$/),
  'must be an array of two-letter country codes, ROW or WORLD',
);

const salesRights = only({
  exclusive_rights: jurisdictions.optional(),
  non_exclusive_rights: jurisdictions.optional(),
  not_for_sale: jurisdictions.nullable().optional(),
});

const relatedProducts = only({ next_edition: name.optional(), previous_edition: name.optional() });

const assetStatus = only({ vbk: text.optional(), distribution: text.optional() });

/** Only the internal systems of the service can set these. */
export const INTERNAL_FIELDS = {
  asset_status: assetStatus.optional(),
  discount_codes: texts.optional(),
  ...recordOf(flag.optional(), 'block_search', 'custom', 'epub_page_labels', 'floe', 'vcs_authored'),
};

export const PUBLIC_FIELDS = {
  imprint_id: whole('must be a whole number').optional(),
  ...recordOf(text.optional(), 'author_name', 'author_first_name', 'author_last_name', 'description', 'subtitle'),
  cs_plus_discount_code: text.optional(),
  ...recordOf(name.optional(), 'e_isbn', 'print_isbn', 'parent_isbn', 'kind', 'title'),
  ...recordOf(flag.optional(), 'fro', 'fulfillment_only', 'sampleable'),
  ...recordOf(httpUrl.optional(), 'login_url', 'callback_url', 'url'),
  // null, which the interface does not show, removes a date, so that a withdrawn asset can return.
  ...recordOf(day.nullable().optional(), 'on_sale_date', 'off_sale_date', 'publication_date'),
  ...recordOf(drmLimit.optional(), 'copy_drm_limit', 'print_drm_limit'),
  copyright_date: written('must be a year of four digits, as a text', /^\d{4}$/).optional(),
  edition: whole('must be a whole number from 0 to 127', (value) => value >= 0 && value <= 127).optional(),
  /** null clears them all; the interface shows it for one list (2.1.1 rule 4). */
  identifiers: identifiers.nullable().optional(),
  language: written('must be a language code such as en or pt-BR', /^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/).optional(),
  related_products: relatedProducts.optional(),
  sales_rights: salesRights.optional(),
  prices: z.array(price, 'must be an array of prices').optional(),
  variants: z.array(variant, 'must be an array of {channel_ids: [{sku, channel_id_inclusive_access}]}').optional(),
};

const internal = z
  .never('can only be set by internal systems of the service; pass allowInternal to send it')
  .optional();

const rejected = Object.fromEntries(Object.keys(INTERNAL_FIELDS).map((key) => [key, internal]));
const NAMES = Object.keys(PUBLIC_FIELDS);
const ALL = only({ ...PUBLIC_FIELDS, ...INTERNAL_FIELDS }, NAMES);
const NO_INTERNAL = only({ ...PUBLIC_FIELDS, ...rejected }, NAMES);
/** `required()` would replace the messages. */
const NEEDED = {
  imprint_id: whole('must be a whole number to create an asset'),
  title: z.string('must be a text to create an asset').regex(/\S/, 'must not be empty'),
};

/** Read-only at every depth. */
type Given<T> = T extends readonly (infer One)[]
  ? readonly Given<One>[]
  : T extends object
    ? { readonly [Key in keyof T]: Given<T[Key]> }
    : T;

/**
 * The fields as a caller passes them: whole numbers and booleans may be in quotes.
 * @rule 2.1-1..39, 2.1.1-1, 2.1.1-4..5, 2.1.2-1..5, 2.1.3-1..3, 3-1, 8-3..5, 8-7
 */
export type AssetFields = Omit<Given<z.input<typeof ALL>>, 'variants'> & {
  readonly variants?: readonly (ChannelId | { readonly channel_ids: readonly ChannelId[] })[] | undefined;
};

export type ChannelId = Given<z.input<typeof channelIds>[number]>;

export type AssetPrice = Given<z.input<typeof price>>;

export const ASSET_FORMS: ReadonlyMap<string, z.ZodType> = new Map(Object.entries(ALL.shape));

/** Fields whose value is an object or an array. */
export const STRUCTURED_FIELDS: ReadonlySet<string> = new Set(
  'identifiers prices variants sales_rights related_products asset_status discount_codes'.split(' '),
);

/**
 * @param rules `create` requires `imprint_id` and `title`; `unchecked` leaves everything to the service
 * @returns the body to send: whole numbers and booleans without quotes, all else as given
 * @throws CatchwordError USAGE naming every invalid field by its path
 */
export function checkAsset(
  fields: unknown,
  rules: { create: boolean; allowInternal?: boolean; unchecked?: boolean },
): JsonObject {
  if (rules.unchecked === true) return uncheckedFields('the asset', ALL.shape, fields);
  const schema = rules.allowInternal === true ? ALL : NO_INTERNAL;
  return parseInput('the asset', rules.create ? schema.extend(NEEDED) : schema, fields, UNCHECKED_HINT);
}
