import { z } from 'zod';
import { inputError, PARSING } from '../input/input-error.ts';
import { day, decimal, flag, httpUrl, name, only, text, texts, whole } from '../input/request-fields.ts';

/*
 * The request fields of an asset (interface, section 2.1, with the limits of section 8). Nothing is sent that does not fit:
 * a wrong field would be refused with 422 at the cost of a request, and a misspelt one perhaps not at all.
 */

const drmLimit = whole(
  '-1 (unlimited), or a whole number of 2 or more, is needed',
  (value) => value === -1 || value >= 2,
);

/** Additive: what is not named stays. `[]` changes nothing; null clears, and is refilled from the other 10/13 form. */
const isbns = z.array(name, 'an array of texts, or null, is needed').nullable().optional();

/** 2.1.1 */
const IDENTIFIERS = {
  e_isbn_10: isbns,
  e_isbn_13: isbns,
  print_isbn_10: isbns,
  print_isbn_13: isbns,
  vbid10_alias: isbns,
  vbid13_alias: isbns,
};

const CURRENCY = 'a currency code of three capital letters, such as USD, is needed';

/** 2.1.2 */
const PRICE = {
  currency: z.string(CURRENCY).regex(/^[A-Z]{3}$/, CURRENCY),
  type: name,
  amount: decimal,
  duration: whole('a whole number of days, 1 or more, is needed', (days) => days >= 1).optional(),
  tax_inclusive: flag.optional(),
};

/** 2.1.3: of channels, `inclusive_access` is the only one. */
const CHANNEL_ID = { sku: name, channel_id_inclusive_access: name };

const channelIds = z.array(only(CHANNEL_ID), 'an array of {sku, channel_id_inclusive_access} is needed');

/** Of a variant only `channel_ids` can be set; one element of it may stand in place of the variant. */
const variant = z.preprocess(
  (given) => (typeof given === 'object' && given !== null && 'sku' in given ? { channel_ids: [given] } : given),
  only({ channel_ids: channelIds }),
);

const JURISDICTION = 'a two-letter country code, ROW or WORLD is needed';

const jurisdictions = z.array(
  z.string(JURISDICTION).regex(/^([A-Z]{2}|ROW|WORLD)$/, JURISDICTION),
  'an array of two-letter country codes, ROW or WORLD is needed',
);

const SALES_RIGHTS = {
  exclusive_rights: jurisdictions.optional(),
  non_exclusive_rights: jurisdictions.optional(),
  not_for_sale: jurisdictions.nullable().optional(),
};

const RELATED_PRODUCTS = { next_edition: name.optional(), previous_edition: name.optional() };

const ASSET_STATUS = { vbk: text.optional(), distribution: text.optional() };

/** Only the service's own systems can set these. */
const INTERNAL = {
  asset_status: only(ASSET_STATUS).optional(),
  block_search: flag.optional(),
  custom: flag.optional(),
  discount_codes: texts.optional(),
  epub_page_labels: flag.optional(),
  floe: flag.optional(),
  vcs_authored: flag.optional(),
};

const RENTAL = /rental/i;

const price = only(PRICE).superRefine((value, context) => {
  if (!RENTAL.test(value.type) || value.duration !== undefined) return;
  context.addIssue({
    code: 'custom',
    path: ['duration'],
    message: `a price of type ${value.type} needs the rental's days`,
    input: undefined,
  });
});

const PUBLIC = {
  author_name: text.optional(),
  author_first_name: text.optional(),
  author_last_name: text.optional(),
  copy_drm_limit: drmLimit.optional(),
  print_drm_limit: drmLimit.optional(),
  copyright_date: z
    .string('a year of four digits, as a text, is needed')
    .regex(/^\d{4}$/, 'four digits are needed')
    .optional(),
  description: text.optional(),
  cs_plus_discount_code: text.optional(),
  e_isbn: name.optional(),
  edition: whole('a whole number from 0 to 127 is needed', (value) => value >= 0 && value <= 127).optional(),
  fro: flag.optional(),
  fulfillment_only: flag.optional(),
  identifiers: only(IDENTIFIERS).optional(),
  imprint_id: whole('a whole number is needed').optional(),
  kind: name.optional(),
  language: z
    .string('a language code is needed')
    .regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, 'a language code such as en or pt-BR is needed')
    .optional(),
  login_url: httpUrl.optional(),
  // Not shown: null takes a date away, or what was withdrawn could never come back.
  off_sale_date: day.nullable().optional(),
  on_sale_date: day.nullable().optional(),
  parent_isbn: name.optional(),
  print_isbn: name.optional(),
  publication_date: day.nullable().optional(),
  related_products: only(RELATED_PRODUCTS).optional(),
  sales_rights: only(SALES_RIGHTS).optional(),
  sampleable: flag.optional(),
  title: name.optional(),
  subtitle: text.optional(),
  prices: z.array(price, 'an array of prices is needed').optional(),
  variants: z.array(variant, 'an array of {channel_ids: [{sku, channel_id_inclusive_access}]} is needed').optional(),
  callback_url: httpUrl.optional(),
  url: httpUrl.optional(),
};

const refused = z.never("it is set by the service's internal systems; others cannot rely on it").optional();

function without<K extends string>(shape: Readonly<Record<K, z.ZodType>>): Record<K, typeof refused> {
  return Object.fromEntries(Object.keys(shape).map((key) => [key, refused])) as Record<K, typeof refused>;
}

const ALL = only({ ...PUBLIC, ...INTERNAL });
const NO_INTERNAL = only({ ...PUBLIC, ...without(INTERNAL) });
/** Not `required()`: its error is zod's own. */
const NEEDED = {
  imprint_id: whole('to create an asset, a whole number is needed'),
  title: z.string('to create an asset, a text is needed').regex(/\S/, 'a text that is not empty is needed'),
};
const ALL_TO_CREATE = ALL.extend(NEEDED);
const NO_INTERNAL_TO_CREATE = NO_INTERNAL.extend(NEEDED);

/** What is only read may be read-only, at every depth. */
type Given<T> = T extends readonly (infer One)[]
  ? readonly Given<One>[]
  : T extends object
    ? { readonly [Key in keyof T]: Given<T[Key]> }
    : T;

/** The fields as a caller gives them: whole numbers and booleans in quotes or without. */
export type AssetFields = Omit<Given<z.input<typeof ALL>>, 'variants'> & {
  readonly variants?: readonly (ChannelId | { readonly channel_ids: readonly ChannelId[] })[] | undefined;
};

/** An element of `variants/channel_ids` (2.1.3). */
export type ChannelId = Given<z.input<typeof channelIds>[number]>;

/** One price of `prices`. */
export type AssetPrice = Given<z.input<typeof price>>;

/** The fields as they are sent. */
export type AssetBody = z.output<typeof ALL>;

export interface AssetRules {
  /** A new asset: `imprint_id` and `title` are needed. */
  readonly create: boolean;
  /** Take the fields that only the service's internal systems can set. Default: refuse them. */
  readonly allowInternal?: boolean;
}

const KNOWN = {
  '': Object.keys(PUBLIC),
  identifiers: Object.keys(IDENTIFIERS),
  prices: Object.keys(PRICE),
  variants: ['channel_ids'],
  'variants.channel_ids': Object.keys(CHANNEL_ID),
  sales_rights: Object.keys(SALES_RIGHTS),
  related_products: Object.keys(RELATED_PRODUCTS),
  asset_status: Object.keys(ASSET_STATUS),
};

/** Fields that hold an object or an array. */
export const STRUCTURED_FIELDS: ReadonlySet<string> = new Set([
  ...['identifiers', 'prices', 'variants', 'sales_rights', 'related_products', 'asset_status', 'discount_codes'],
]);

/**
 * Checks the request fields of an asset.
 * @returns the body to send: whole numbers and booleans without quotes, all else as given
 * @throws CatchwordError USAGE naming every wrong field by its path, what is wrong with it and what is allowed
 */
export function checkAsset(fields: unknown, { create, allowInternal = false }: AssetRules): AssetBody {
  const schema = allowInternal ? (create ? ALL_TO_CREATE : ALL) : create ? NO_INTERNAL_TO_CREATE : NO_INTERNAL;
  const parsed = schema.safeParse(fields, PARSING);
  if (parsed.success) return parsed.data;
  throw inputError('the asset', parsed.error.issues, KNOWN);
}
