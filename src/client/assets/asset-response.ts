import { z } from 'zod';
import {
  decimalOf,
  flagOf,
  listOf,
  nameOf,
  numberedOf,
  objectOf,
  textOf,
  textsOf,
  wholeOf,
} from '../input/response-fields.ts';

/*
 * The response fields of an asset (interface, section 2.2). All may be missing; what has another form than the interface
 * gives it is missing too. Names are the interface's own. Fields that it does not name are in `raw`.
 */

const variants = listOf({
  product_id: wholeOf,
  /** The asset's identifier, or that with a rental marker such as R180. */
  sku: textOf,
  channel_ids: listOf({ channel: textOf, identifier: textOf }),
  /** Such as a number of days, or perpetual. */
  duration: textOf,
  online_duration: textOf,
  updated: textOf,
  /** `price` as text, to the digit; `company_id` is `_all` or a company's number. */
  prices: listOf({ price: decimalOf, currency: textOf, type: textOf, company_id: textOf }),
});

const ASSET = z.object({
  vbid: textOf,
  id: wholeOf,
  isbn: textOf,
  isbn_canonical: textOf,
  parent_id: textOf,
  created: textOf,
  title: textOf,
  subtitle: textOf,
  author_name: textOf,
  author_first_name: textOf,
  author_last_name: textOf,
  description: textOf,
  block_search: flagOf,
  custom: flagOf,
  epub_page_labels: flagOf,
  floe: flagOf,
  fro: flagOf,
  fulfillment_only: flagOf,
  sampleable: flagOf,
  vcs_authored: flagOf,
  asset_status: objectOf({ vbk: textOf, distribution: textOf }),
  book_format: objectOf({ name: textOf, value: textOf, dash2epub: flagOf }),
  build: objectOf({ available: flagOf, source: textOf, status: textOf }),
  copy_drm_limit: wholeOf,
  print_drm_limit: wholeOf,
  /** Percentage of the pages that a user may print over the period of ownership, 10 to 100. */
  lifetime_print_limit: wholeOf,
  copyright_date: textOf,
  /** Percentage that corresponds to the cs_plus_discount_code sent. */
  cs_plus_discount: decimalOf,
  discount_codes: textsOf,
  e_isbn: textOf,
  print_isbn: textOf,
  edition: wholeOf,
  identifiers: objectOf({
    ...{ e_isbn_10: textsOf, e_isbn_13: textsOf, print_isbn_10: textsOf, print_isbn_13: textsOf },
    ...{ vbid10_alias: textsOf, vbid13_alias: textsOf },
  }),
  kind: numberedOf('value'),
  /** A code or a full name, as the service sends it. */
  language: nameOf,
  login_url: textOf,
  on_sale_date: textOf,
  off_sale_date: textOf,
  publication_date: textOf,
  related_products: objectOf({ next_edition: textOf, previous_edition: textOf }),
  sales_rights: objectOf({ exclusive_rights: textsOf, non_exclusive_rights: textsOf, not_for_sale: textsOf }),
  imprint: objectOf({ id: wholeOf, name: textOf, resource_url: textOf }),
  publisher: objectOf({ id: wholeOf, name: textOf, city: textOf }),
  variants,
});

export const ASSET_FIELDS: readonly string[] = Object.keys(ASSET.shape);

/** An asset as the service shows it. */
export type Asset = z.output<typeof ASSET> & {
  /** The answer as it was received, with the fields that the interface does not name. */
  readonly raw: Readonly<Record<string, unknown>>;
};

/** An asset of a parsed answer; undefined where the answer is no object. */
export function assetOf(value: unknown): Asset | undefined {
  const parsed = ASSET.safeParse(value);
  return parsed.success ? { ...parsed.data, raw: value as Readonly<Record<string, unknown>> } : undefined;
}
