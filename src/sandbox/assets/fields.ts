import { isUtf8 } from 'node:buffer';
import { isIP } from 'node:net';
import { z } from 'zod';
import { isPublic } from '../../address.ts';
import { isIsbn } from '../isbn.ts';

/*
 * The request of an asset: interface, section 2.1. Numbers and booleans may stand in quotes. Members that are not listed
 * are ignored, and so are the internal ones, which only the service itself sets.
 */

const text = z.string({ error: 'a text is needed' });
const bool = z
  .union([z.boolean(), z.enum(['true', 'false'])], { error: 'true or false is needed' })
  .transform((value) => value === true || value === 'true');
// A union tells the error of the one part that nearly fits, so that each part has it too.
const WHOLE = { error: 'a whole number is needed' };
const whole = z.union([z.int(), z.string().regex(/^-?\d{1,9}$/, WHOLE)], WHOLE).transform(Number);
const DECIMAL = { error: 'a decimal number is needed' };
const decimal = z
  .union([z.number().min(0, DECIMAL), z.string().regex(/^\d{1,12}(\.\d+)?$/, DECIMAL)], DECIMAL)
  .transform(Number);
const drmLimit = whole.refine((value) => value === -1 || value >= 2, {
  error: '-1 (unlimited) or at least 2 is needed',
});
/** Null takes the date away. A day begins at midnight UTC. */
const date = z
  .union([z.iso.date(), z.iso.datetime({ offset: true, local: true })], { error: 'an ISO 8601 date is needed' })
  .nullable();
const isbn = text.refine(isIsbn, { error: 'an ISBN with a right check digit is needed' });
const webAddress = z.url({ protocol: /^https?$/, error: 'an http or https URL is needed' });

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

/** Interface, section 2.1.2. */
const price = z
  .object({
    currency: z
      .string({ error: 'a currency code is needed' })
      .regex(/^[A-Z]{3}$/, { error: 'an ISO 4217 code is needed' }),
    type: text.min(1, { error: 'a price type is needed' }),
    amount: decimal,
    duration: whole.refine((value) => value >= 1, { error: 'at least 1 day is needed' }).optional(),
    tax_inclusive: bool.optional(),
  })
  .refine((value) => value.duration !== undefined || !/rental/i.test(value.type), {
    path: ['duration'],
    error: 'a rental price needs a duration',
  });

/** Interface, section 2.1.3. */
const variant = z
  .object({
    channel_ids: z.array(
      z.looseObject({ sku: text, channel_id_inclusive_access: text.optional() }).superRefine((value, context) => {
        for (const key of Object.keys(value)) {
          if (!key.startsWith('channel_id_') || key === 'channel_id_inclusive_access') continue;
          context.addIssue({ code: 'custom', path: [key], message: 'only channel_id_inclusive_access is supported' });
        }
      }),
      { error: 'an array is needed' },
    ),
  })
  .partial();

const rights = z.array(text, { error: 'an array of texts is needed' });

export const assetRequest = z.object({
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
  edition: whole.refine((value) => value >= 0 && value <= 127, { error: '0 to 127 is needed' }),
  fro: bool,
  fulfillment_only: bool,
  identifiers: identifiers.nullable(),
  imprint_id: whole.refine((value) => value >= 1, { error: 'at least 1 is needed' }),
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
export type AssetRequest = z.output<typeof assetUpdate>;
export type Price = z.output<typeof price>;
type Variants = NonNullable<AssetRequest['variants']>;
export type ChannelId = NonNullable<Variants[number]['channel_ids']>[number];

/** One message for each member that is wrong, which names it. */
function messagesOf(error: z.ZodError): string[] {
  const messages = new Map<string, string>();
  for (const { path, message } of error.issues) {
    const where = path.length === 0 ? 'body' : path.join('/');
    if (!messages.has(where)) messages.set(where, `${where}: ${message}`);
  }
  return [...messages.values()];
}

/** A name is judged when it is looked up for the call; what it shows by itself, at once. */
function refusesCallback(address: string): boolean {
  const host = new URL(address).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return isIP(host) !== 0 ? !isPublic(host) : host === 'localhost' || host.endsWith('.localhost');
}

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

export interface Reading {
  /** Whether the asset does not exist yet, so that `imprint_id` and `title` are needed. */
  readonly creates: boolean;
  readonly allowPrivateCallbacks: boolean;
}

/** @returns the members that were sent, or what is wrong with them (422) */
export function readAssetRequest(body: Buffer, { creates, allowPrivateCallbacks }: Reading): AssetRequest | string[] {
  // Else bytes that are no text would be kept as U+FFFD.
  if (!isUtf8(body)) return ['body: no UTF-8'];
  let sent: unknown;
  try {
    sent = JSON.parse(body.toString());
  } catch {
    return ['body: no JSON'];
  }
  const parsed = assetUpdate.safeParse(sent);
  const wrong = parsed.success ? [] : messagesOf(parsed.error);
  for (const name of creates && typeof sent === 'object' ? (['imprint_id', 'title'] as const) : []) {
    if ((sent as Partial<Record<typeof name, unknown>> | null)?.[name] === undefined) {
      wrong.push(`${name}: is needed to create an asset`);
    }
  }
  const callback = parsed.data?.callback_url;
  if (callback !== undefined && !allowPrivateCallbacks && refusesCallback(callback)) {
    wrong.push('callback_url: an address in the own network is not called');
  }
  return parsed.success && wrong.length === 0 ? parsed.data : wrong;
}
