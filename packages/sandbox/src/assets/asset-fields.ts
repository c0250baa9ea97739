import { isIsbn } from '@catchword/base/isbn';
import { isoTime } from '@catchword/base/iso-time';
import { recordOf } from '@catchword/base/record-of';
import * as z from 'zod';

/*
 * The request of an asset: interface, section 2.1. Numbers and booleans may be in quotes. Unknown fields are ignored, and
 * so are the internal ones, which only the service sets.
 */

/**
 * A number that may be in quotes (interface, 2.1.2). Both parts state the bounds, so that the OpenAPI document does too.
 * @param error the message of every check: a union repeats the message of the part that nearly fits
 * @rule 2.1-1..2, 2.1-4..12, 2.1-14..19, 2.1-21..34, 2.1-36..37, 2.1.1-1, 2.1.2-1..6, 2.1.3-1
 * @rule 2.1.3-3, 3-1, 4.1-6, 7-3, 8-3..5, 8-7
 */
export function quotable(error: string, number: (params: { error: string }) => z.ZodType<number>, quoted: RegExp) {
  return z.union([number({ error }), z.string({ error }).regex(quoted, { error })], { error }).transform(Number);
}

export const positive = quotable(
  'must be a whole number of at least 1',
  (params) => z.int(params).min(1, params),
  /^0*[1-9]\d{0,8}$/,
);
const text = z.string();
const matching = (error: string, pattern: RegExp) => z.string({ error }).regex(pattern, { error });
const bool = z
  .union([z.boolean(), z.enum(['true', 'false'])], { error: 'must be true or false' })
  .transform((value) => value === true || value === 'true');
const decimal = quotable('must be a decimal number', (params) => z.number(params).min(0, params), /^\d{1,12}(\.\d+)?$/);
const drmLimit = quotable(
  'must be -1 (unlimited) or at least 2',
  (params) => z.union([z.literal(-1, params), z.int(params).min(2, params)], params),
  /^(-1|0*([2-9]|[1-9]\d{1,8}))$/,
);
const edition = quotable(
  'must be 0 to 127',
  (params) => z.int(params).min(0, params).max(127, params),
  /^0*(\d|[1-9]\d|1[01]\d|12[0-7])$/,
);
/** Null removes the date. A day begins at midnight UTC. */
const date = z.union(isoTime.options, { error: 'must be an ISO 8601 date' }).nullable();
const isbn = text.refine(isIsbn, 'must be an ISBN with the right check digit');
const httpUrl = 'must be an http or https URL';
const webAddress = matching(httpUrl, /^[Hh][Tt][Tt][Pp][Ss]?:\/\//).refine((url) => URL.canParse(url), httpUrl);

/** Interface, section 2.1.1. Null clears; an empty array changes nothing. */
const isbns = z.array(isbn).nullable().optional();
export const IDENTIFIER_KEYS = [
  'e_isbn_10',
  'e_isbn_13',
  'print_isbn_10',
  'print_isbn_13',
  'vbid10_alias',
  'vbid13_alias',
] as const;
export type IdentifierKey = (typeof IDENTIFIER_KEYS)[number];
const identifiers = z.object(recordOf(isbns, ...IDENTIFIER_KEYS));

/** Runs a check of an object even if members of it are wrong, so that every problem is named. */
const ALWAYS = { when: ({ value }: { value: unknown }) => typeof value === 'object' && value !== null };

/** Interface, section 2.1.2. */
const price = z
  .object({
    currency: matching('must be an ISO 4217 code', /^[A-Z]{3}$/),
    type: text.min(1),
    amount: decimal,
    duration: positive.optional(),
    tax_inclusive: bool.optional(),
  })
  .refine(({ duration, type }) => duration !== undefined || !/rental/i.test(String(type)), {
    ...ALWAYS,
    path: ['duration'],
    error: 'is required for a rental price',
  })
  .meta({
    if: { properties: { type: { pattern: '[Rr][Ee][Nn][Tt][Aa][Ll]' } } },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: { required: ['duration'] },
  });

function without<T extends z.ZodObject>(schema: T, pattern: RegExp, message: string): T {
  const check = (value: object, context: z.core.$RefinementCtx) => {
    for (const key of Object.keys(value).filter((name) => pattern.test(name))) {
      context.addIssue({ code: 'custom', path: [key], message });
    }
  };
  return schema.superRefine(check, ALWAYS).meta({ patternProperties: { [pattern.source]: false } });
}

/** Interface, section 2.1.3. */
const channelId = without(
  z.looseObject({ sku: text, channel_id_inclusive_access: text }),
  /^channel_id_(?!inclusive_access$)/,
  'only channel_id_inclusive_access is supported',
);
const variant = without(
  z.looseObject({ channel_ids: z.array(channelId).optional() }),
  /^channel_id_/,
  'must be in an element of channel_ids',
);

const jurisdictions = z.array(text);

/** Texts that the response repeats, or null. */
export const ECHOED_TEXTS = {
  e_isbn: isbn,
  print_isbn: isbn,
  title: text.min(1),
  subtitle: text,
  description: text,
  language: matching('must be a language code', /^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/),
  author_name: text,
  author_first_name: text,
  author_last_name: text,
  copyright_date: matching('must be a 4-digit year', /^\d{4}$/),
  login_url: webAddress,
  publication_date: date,
  on_sale_date: date,
  off_sale_date: date,
};
/** Booleans that the response repeats, or false. */
export const ECHOED_FLAGS = { fro: bool, fulfillment_only: bool, sampleable: bool };

const assetRequest = z.object({
  copy_drm_limit: drmLimit,
  print_drm_limit: drmLimit,
  cs_plus_discount_code: text,
  edition,
  identifiers: identifiers.nullable(),
  imprint_id: positive,
  kind: text.min(1),
  parent_isbn: isbn,
  ...ECHOED_TEXTS,
  ...ECHOED_FLAGS,
  related_products: z.object({ next_edition: isbn.nullable(), previous_edition: isbn.nullable() }).partial(),
  sales_rights: z
    .object({
      exclusive_rights: jurisdictions,
      non_exclusive_rights: jurisdictions,
      not_for_sale: jurisdictions.nullable(),
    })
    .partial(),
  prices: z.array(price),
  variants: z.array(variant),
  callback_url: webAddress,
  url: webAddress,
});

export const assetUpdate = assetRequest.partial();
const TO_CREATE = { error: 'is required to create an asset' };
/** The request for an asset that does not exist yet: interface, section 4.1, rule 1. */
export const assetCreation = assetUpdate.extend({
  imprint_id: z.nonoptional(assetUpdate.shape.imprint_id, TO_CREATE),
  title: z.nonoptional(assetUpdate.shape.title, TO_CREATE),
});
/** Not every vbid is an ISBN: letters and dashes occur too. */
export const assetId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 letters, digits, dots, dashes and underscores');
export type AssetRequest = z.output<typeof assetUpdate>;
export type Price = z.output<typeof price>;
export type Variants = NonNullable<AssetRequest['variants']>;
