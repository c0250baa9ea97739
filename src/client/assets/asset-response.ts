import * as z from 'zod';
import type { JsonObject } from '../http/answer.ts';
import { canonicalIdentifier } from '../input/identifier.ts';
import { decimalOf, flagOf, listOf, objectOf, textOf, textsOf, wholeOf } from '../input/response-fields.ts';

/*
 * The response fields of an asset (interface, section 2.2), by their names there. Each may be missing, and is undefined if
 * its form differs from the interface. Other fields are in `raw`.
 */

const variants = listOf({
  product_id: wholeOf,
  /** The identifier of the asset, for a rental followed by a marker such as R180. */
  sku: textOf,
  channel_ids: listOf({ channel: textOf, identifier: textOf }),
  /** A number of days, or `perpetual`. */
  duration: textOf,
  online_duration: textOf,
  updated: textOf,
  /** `price` as text with every digit; `company_id` is `_all` or the number of a company. */
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
  /** Percentage of the pages that a user may print in total, 10 to 100. */
  lifetime_print_limit: wholeOf,
  copyright_date: textOf,
  /** Percentage for the cs_plus_discount_code that was sent. */
  cs_plus_discount: decimalOf,
  discount_codes: textsOf,
  e_isbn: textOf,
  print_isbn: textOf,
  edition: wholeOf,
  identifiers: objectOf({
    e_isbn_10: textsOf,
    e_isbn_13: textsOf,
    print_isbn_10: textsOf,
    print_isbn_13: textsOf,
    vbid10_alias: textsOf,
    vbid13_alias: textsOf,
  }),
  kind: objectOf({ id: wholeOf, value: textOf }),
  /** A code or a full name. */
  language: textOf,
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

/** @rule 2.2-1..16, 2.2-18..27, 4.1-7 */
export const ASSET_FIELDS: readonly string[] = Object.keys(ASSET.shape);

/** An asset as the service returns it. */
export type Asset = z.output<typeof ASSET> & {
  /** The answer as received, with fields that are not in the interface. */
  readonly raw: JsonObject;
};

/** Whether the asset has this identifier, in any of the fields for one. */
export function isIdentifiedBy(asset: Asset, vbid: string): boolean {
  const { isbn, isbn_canonical, e_isbn, print_isbn, identifiers = {} } = asset;
  const own = [asset.vbid, isbn, isbn_canonical, e_isbn, print_isbn, ...Object.values(identifiers).flat()];
  const wanted = canonicalIdentifier(vbid);
  return own.some((one) => one !== undefined && canonicalIdentifier(one) === wanted);
}

/** @param raw empty if the answer has no body */
export function assetOf(raw: JsonObject = {}): Asset {
  return { ...ASSET.parse(raw), raw };
}
