import { canonicalIsbn, isIsbn } from '@catchword/base/isbn';
import { recordOf } from '@catchword/base/record-of';
import * as z from 'zod';
import { hash } from '../catalog/random.ts';
import { KINDS, PUBLISHERS } from '../catalog/title-words.ts';
import type { Stores } from '../sandbox-stores.ts';
import { assetUpdate, ECHOED_FLAGS, ECHOED_TEXTS, IDENTIFIER_KEYS } from './asset-fields.ts';
import { type Asset, type AssetFields, buildStatusOf, fileTypeOf, onSaleOf, publisherOf } from './kept-asset.ts';
import { channelIdsOf, variantsOf } from './variants.ts';

const text = z.string().nullable().default(null);
const TEXTS = ['isbn', 'isbn_canonical', 'parent_id', 'cs_plus_discount', ...Object.keys(ECHOED_TEXTS)];
/** Only the service sets these. */
const INTERNAL_FLAGS = ['block_search', 'custom', 'epub_page_labels', 'floe', 'vcs_authored'];

const named = z.looseObject({ id: z.int(), name: z.string() });
const { related_products, sales_rights } = assetUpdate.shape;

const variant = z.object({
  product_id: z.int(),
  sku: z.string(),
  channel_ids: z.array(z.object({ channel: z.string(), identifier: z.string() })),
  duration: z.string(),
  online_duration: z.string(),
  updated: z.iso.datetime(),
  prices: z.array(z.object({ price: z.number(), currency: z.string(), type: z.string(), company_id: z.string() })),
});

/**
 * Interface, section 2.2. The defaults are what the sandbox answers for fields that were not written.
 * @rule 2.1-13, 2.2-1..16, 2.2-18..19, 2.2-21, 2.2-23..27, 4.1-7, 8-6
 */
export const assetResponseSchema = z.object({
  vbid: z.string(),
  id: z.int(),
  ...recordOf(text, ...TEXTS),
  ...recordOf(z.boolean().default(false), ...Object.keys(ECHOED_FLAGS), ...INTERNAL_FLAGS),
  created: z.iso.datetime(),
  edition: z.int().min(0).max(127).nullable().default(null),
  copy_drm_limit: z.int().default(-1),
  print_drm_limit: z.int().default(-1),
  lifetime_print_limit: z.int().min(10).max(100).default(100),
  related_products: related_products.unwrap().default({}),
  sales_rights: sales_rights.unwrap().default({}),
  discount_codes: z.array(z.string()).default([]),
  kind: z.object({ id: z.int(), value: z.string() }),
  identifiers: z.record(z.enum(IDENTIFIER_KEYS), z.array(z.string())),
  asset_status: z.object({ vbk: z.string(), distribution: z.string() }),
  build: z.object({ available: z.boolean(), source: z.string(), status: z.string() }),
  book_format: z.object({ name: text, value: text, dash2epub: z.boolean() }),
  imprint: named.extend({ resource_url: z.string() }),
  publisher: named.extend({ city: z.string() }),
  variants: z.array(variant),
});

const FORMAT_NAMES: Readonly<Record<string, string>> = { epub: 'ePub', pdf: 'PDF' };
/** Ids of assets and of their products are in different ranges. */
const FIRST_ID = 1_000_000;

/** The sandbox's discount is the number in the code: `CS20` is 20 percent. Without one, or above 100, it is 10. */
function discountOf(code: string | undefined): string | null {
  if (code === undefined) return null;
  const percent = Number(/\d+/.exec(code)?.[0] ?? '10');
  return String(percent <= 100 ? percent : 10);
}

/** The id of a kind that the catalog does not have depends on its name alone. */
function kindOf(value: string) {
  const known = [...new Set(KINDS)].indexOf(value);
  const id = known === -1 ? 100 + (Buffer.from(value).reduce((sum, byte) => hash(sum, byte), 0) % 900) : 1 + known;
  return { id, value };
}

function bookFormatOf({ ingestion, format }: Asset) {
  const value = (ingestion === null ? null : fileTypeOf(ingestion)) ?? format;
  return { name: value === null ? null : (FORMAT_NAMES[value] ?? value), value, dash2epub: false };
}

function variantElements({ vbid, index, updatedAt, channelIds }: Asset, { prices }: AssetFields) {
  return variantsOf(vbid, prices).map(({ sku, duration, prices }, at) => ({
    product_id: (FIRST_ID + index) * 10 + at,
    sku,
    channel_ids: channelIdsOf(channelIds, sku),
    duration,
    online_duration: duration,
    updated: new Date(updatedAt).toISOString(),
    prices: prices.map(({ amount, currency, type }) => ({ price: amount, currency, type, company_id: '_all' })),
  }));
}

/** `initialized`: comes on sale later. */
function distributionOf({ catalog, time }: Pick<Stores, 'catalog' | 'time'>, { index, fields }: Asset) {
  if (catalog.find(index)?.withdrawn === false) return 'distributed';
  return onSaleOf(fields).from > time.now() ? 'initialized' : 'withdrawn';
}

/** The response of section 2.2, as it is now. Fields of the request that it does not have are removed by the schema. */
export function assetResponse(stores: Pick<Stores, 'assets' | 'catalog' | 'time'>, asset: Asset) {
  const fields = stores.assets.fieldsOf(asset);
  const { imprint_id: imprintId = 1, kind = 'book' } = fields;
  const isbn = isIsbn(asset.vbid) ? asset.vbid : (fields.e_isbn ?? null);
  const publisher = publisherOf(imprintId);
  const build = buildStatusOf(asset, stores.time.now());
  return assetResponseSchema.parse({
    ...fields,
    vbid: asset.vbid,
    id: FIRST_ID + asset.index,
    isbn,
    isbn_canonical: isbn === null ? null : canonicalIsbn(isbn),
    parent_id: fields.parent_isbn,
    created: new Date(asset.createdAt).toISOString(),
    cs_plus_discount: discountOf(fields.cs_plus_discount_code),
    kind: kindOf(kind),
    identifiers: stores.assets.identifiersOf(asset),
    asset_status: { vbk: build, distribution: distributionOf(stores, asset) },
    build: { available: build === 'approved', source: 'sandbox', status: build },
    book_format: bookFormatOf(asset),
    imprint: { id: imprintId, name: publisher, resource_url: `https://resources.example.org/v4/imprints/${imprintId}` },
    publisher: { id: 1 + ((imprintId - 1) % PUBLISHERS.length), name: publisher, city: 'Springfield' },
    variants: variantElements(asset, fields),
  });
}
