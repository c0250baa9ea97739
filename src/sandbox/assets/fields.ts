import { z } from 'zod';
import { isoTime } from '../../iso-time.ts';
import { isIsbn } from '../catalog/isbn.ts';
import { fromOne, quotable } from '../quotable.ts';

/*
 * The request of an asset: interface, section 2.1. Numbers and booleans may stand in quotes. Members that are not listed
 * are ignored, and so are the internal ones, which only the service itself sets.
 */

const text = z.string({ error: 'a text is needed' });
const bool = z
  .union([z.boolean(), z.enum(['true', 'false'])], { error: 'true or false is needed' })
  .transform((value) => value === true || value === 'true');
const decimal = quotable('a decimal number is needed', (words) => z.number(words).min(0, words), /^\d{1,12}(\.\d+)?$/);
const drmLimit = quotable(
  '-1 (unlimited) or at least 2 is needed',
  (words) => z.union([z.literal(-1, words), z.int(words).min(2, words)], words),
  /^(-1|0*([2-9]|[1-9]\d{1,8}))$/,
);
const edition = quotable(
  '0 to 127 is needed',
  (words) => z.int(words).min(0, words).max(127, words),
  /^0*(\d|[1-9]\d|1[01]\d|12[0-7])$/,
);
/** Null takes the date away. A day begins at midnight UTC. */
const date = isoTime.nullable();
const isbn = text.refine(isIsbn, { error: 'an ISBN with a right check digit is needed' });
const WEB = { error: 'an http or https URL is needed' };
const webAddress = z
  .string(WEB)
  .regex(/^[Hh][Tt][Tt][Pp][Ss]?:\/\//, WEB)
  .refine((address) => URL.canParse(address), WEB);

/** Interface, section 2.1.1. Null clears; an empty array changes nothing. */
const isbns = z.array(isbn, { error: 'an array of ISBNs, or null, is needed' }).nullable().optional();
export const IDENTIFIER_KEYS = [
  'e_isbn_10',
  'e_isbn_13',
  'print_isbn_10',
  'print_isbn_13',
  'vbid10_alias',
  'vbid13_alias',
] as const;
export type IdentifierKey = (typeof IDENTIFIER_KEYS)[number];
const identifiers = z.object({
  e_isbn_10: isbns,
  e_isbn_13: isbns,
  print_isbn_10: isbns,
  print_isbn_13: isbns,
  vbid10_alias: isbns,
  vbid13_alias: isbns,
});

/** For a check on several members of an object: made although one of them is wrong, since each wrong one is to be named. */
const EVEN_SO = { when: ({ value }: { value: unknown }) => typeof value === 'object' && value !== null };

/** Interface, section 2.1.2. */
const price = z
  .object({
    currency: z
      .string({ error: 'a currency code is needed' })
      .regex(/^[A-Z]{3}$/, { error: 'an ISO 4217 code is needed' }),
    type: text.min(1, { error: 'a price type is needed' }),
    amount: decimal,
    duration: fromOne('at least 1 day is needed').optional(),
    tax_inclusive: bool.optional(),
  })
  .refine(({ duration, type }) => duration !== undefined || !/rental/i.test(String(type)), {
    ...EVEN_SO,
    path: ['duration'],
    error: 'a rental price needs a duration',
  })
  .meta({
    if: { properties: { type: { pattern: '[Rr][Ee][Nn][Tt][Aa][Ll]' } } },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: { required: ['duration'] },
  });

function refuseKeys(pattern: RegExp, message: string) {
  return (value: object, context: z.core.$RefinementCtx) => {
    for (const key of Object.keys(value)) {
      if (pattern.test(key)) context.addIssue({ code: 'custom', path: [key], message });
    }
  };
}

/** Interface, section 2.1.3. */
const OTHER_CHANNEL = /^channel_id_(?!inclusive_access$)/;
const channelId = z
  .looseObject({ sku: text, channel_id_inclusive_access: text })
  .superRefine(refuseKeys(OTHER_CHANNEL, 'only channel_id_inclusive_access is supported'), EVEN_SO)
  .meta({ patternProperties: { [OTHER_CHANNEL.source]: false } });
const ANY_CHANNEL = /^channel_id_/;
const variant = z
  .looseObject({ channel_ids: z.array(channelId, { error: 'an array is needed' }).optional() })
  .superRefine(refuseKeys(ANY_CHANNEL, 'belongs into an element of channel_ids'), EVEN_SO)
  .meta({ patternProperties: { [ANY_CHANNEL.source]: false } });

const rights = z.array(text, { error: 'an array of texts is needed' });

const assetRequest = z.object({
  author_name: text,
  author_first_name: text,
  author_last_name: text,
  copy_drm_limit: drmLimit,
  print_drm_limit: drmLimit,
  copyright_date: z
    .string({ error: 'a 4-digit year is needed' })
    .regex(/^\d{4}$/, { error: 'a 4-digit year is needed' }),
  description: text,
  cs_plus_discount_code: text,
  e_isbn: isbn,
  edition,
  fro: bool,
  fulfillment_only: bool,
  identifiers: identifiers.nullable(),
  imprint_id: fromOne('a whole number of at least 1 is needed'),
  kind: text.min(1, { error: 'a kind is needed' }),
  language: z
    .string({ error: 'a language code is needed' })
    .regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, { error: 'a language code is needed' }),
  login_url: webAddress,
  off_sale_date: date,
  on_sale_date: date,
  parent_isbn: isbn,
  print_isbn: isbn,
  publication_date: date,
  related_products: z.object({ next_edition: isbn.nullable(), previous_edition: isbn.nullable() }).partial(),
  sales_rights: z
    .object({ exclusive_rights: rights, non_exclusive_rights: rights, not_for_sale: rights.nullable() })
    .partial(),
  sampleable: bool,
  title: text.min(1, { error: 'a title is needed' }),
  subtitle: text,
  prices: z.array(price, { error: 'an array of prices is needed' }),
  variants: z.array(variant, { error: 'an array is needed' }),
  callback_url: webAddress.refine(isCallable, { error: 'user and password must be percent-encoded UTF-8' }),
  url: webAddress,
});

export const assetUpdate = assetRequest.partial();
const TO_CREATE = { error: 'is needed to create an asset' };
/** Of an asset that does not exist yet: interface, section 4.1, rule 1. */
export const assetCreation = assetUpdate.extend({
  imprint_id: z.nonoptional(assetUpdate.shape.imprint_id, TO_CREATE),
  title: z.nonoptional(assetUpdate.shape.title, TO_CREATE),
});
/** Letters too, and dashes: not every vbid is an ISBN. */
export const assetId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
  error: '1 to 64 letters, digits, dots, dashes and underscores are needed',
});
export type AssetRequest = z.output<typeof assetUpdate>;
export type Price = z.output<typeof price>;
export type Variants = NonNullable<AssetRequest['variants']>;
export type ChannelId = NonNullable<Variants[number]['channel_ids']>[number];

/** Whether user and password of an address, if any, are encoded well: a call decodes them. */
function isCallable(address: string): boolean {
  // Told of as no URL already.
  if (!URL.canParse(address)) return true;
  const { username, password } = new URL(address);
  try {
    decodeURIComponent(username);
    decodeURIComponent(password);
    return true;
  } catch {
    return false;
  }
}
