import { z } from 'zod';
import { assetUpdate, IDENTIFIER_KEYS } from './fields.ts';

/*
 * The answer of an asset (interface, section 2.2), for the OpenAPI document. What was not written is null. Services may
 * send more.
 */

const text = z.string().nullable();
/** As it was sent: with a time of day or without. */
const date = z.string().nullable();
const { related_products, sales_rights } = assetUpdate.shape;
const named = z.looseObject({ id: z.int(), name: z.string() });

const variant = z.object({
  product_id: z.int(),
  sku: z.string(),
  channel_ids: z.array(z.object({ channel: z.string(), identifier: z.string() })),
  duration: z.string(),
  online_duration: z.string(),
  updated: z.iso.datetime(),
  prices: z.array(z.object({ price: z.number(), currency: z.string(), type: z.string(), company_id: z.string() })),
});

export const assetResponseSchema = z.looseObject({
  vbid: z.string(),
  id: z.int(),
  ...{ isbn: text, isbn_canonical: text, e_isbn: text, print_isbn: text, parent_id: text },
  created: z.iso.datetime(),
  ...{ author_name: text, author_first_name: text, author_last_name: text, title: text, subtitle: text },
  ...{ description: text, language: text, login_url: text, copyright_date: text },
  ...{ publication_date: date, on_sale_date: date, off_sale_date: date },
  edition: z.int().min(0).max(127).nullable(),
  ...{ block_search: z.boolean(), custom: z.boolean(), epub_page_labels: z.boolean(), floe: z.boolean() },
  ...{ fro: z.boolean(), fulfillment_only: z.boolean(), sampleable: z.boolean(), vcs_authored: z.boolean() },
  copy_drm_limit: z.int(),
  print_drm_limit: z.int(),
  lifetime_print_limit: z.int().min(10).max(100),
  discount_codes: z.array(z.string()),
  cs_plus_discount: text,
  kind: z.object({ id: z.int(), value: z.string() }),
  identifiers: z.record(z.enum(IDENTIFIER_KEYS), z.array(z.string())),
  related_products: related_products.unwrap(),
  sales_rights: sales_rights.unwrap(),
  asset_status: z.object({ vbk: z.string(), distribution: z.string() }),
  build: z.object({ available: z.boolean(), source: z.string(), status: z.string() }),
  book_format: z.object({ name: text, value: text, dash2epub: z.boolean() }),
  imprint: named.extend({ resource_url: z.string() }),
  publisher: named.extend({ city: z.string() }),
  variants: z.array(variant),
});
