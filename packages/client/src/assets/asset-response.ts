import { canonicalIdentifier } from '@catchword/base/isbn';
import { recordOf } from '@catchword/base/record-of';
import * as z from 'zod';
import type { JsonObject } from '../http/answer.ts';
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
  ...recordOf(textOf, 'vbid', 'isbn', 'isbn_canonical', 'e_isbn', 'print_isbn', 'parent_id', 'title', 'subtitle'),
  ...recordOf(textOf, 'author_name', 'author_first_name', 'author_last_name', 'description', 'login_url'),
  ...recordOf(textOf, 'created', 'copyright_date', 'on_sale_date', 'off_sale_date', 'publication_date'),
  /** A code or a full name. */
  language: textOf,
  ...recordOf(flagOf, 'block_search', 'custom', 'epub_page_labels', 'floe', 'fro', 'fulfillment_only', 'sampleable'),
  ...recordOf(flagOf, 'vcs_authored'),
  ...recordOf(wholeOf, 'id', 'edition', 'copy_drm_limit', 'print_drm_limit'),
  /** Percentage of the pages that a user may print in total, 10 to 100. */
  lifetime_print_limit: wholeOf,
  /** Percentage for the cs_plus_discount_code that was sent. */
  cs_plus_discount: decimalOf,
  discount_codes: textsOf,
  asset_status: objectOf({ vbk: textOf, distribution: textOf }),
  book_format: objectOf({ name: textOf, value: textOf, dash2epub: flagOf }),
  build: objectOf({ available: flagOf, source: textOf, status: textOf }),
  identifiers: objectOf({
    ...recordOf(textsOf, 'e_isbn_10', 'e_isbn_13', 'print_isbn_10', 'print_isbn_13', 'vbid10_alias', 'vbid13_alias'),
  }),
  kind: objectOf({ id: wholeOf, value: textOf }),
  related_products: objectOf({ next_edition: textOf, previous_edition: textOf }),
  sales_rights: objectOf({ exclusive_rights: textsOf, non_exclusive_rights: textsOf, not_for_sale: textsOf }),
  imprint: objectOf({ id: wholeOf, name: textOf, resource_url: textOf }),
  publisher: objectOf({ id: wholeOf, name: textOf, city: textOf }),
  variants,
});

/** @rule 2.2-1..16, 2.2-18..27, 4.1-7 */
export const ASSET_FIELDS: readonly string[] = Object.keys(ASSET.shape);

/** An asset as the service returns it; `raw` is the answer as received, with fields that are not in the interface. */
export type Asset = z.output<typeof ASSET> & { readonly raw: JsonObject };

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
