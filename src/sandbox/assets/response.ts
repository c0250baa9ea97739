import { canonicalIsbn, isIsbn } from '../catalog/isbn.ts';
import { hash } from '../catalog/random.ts';
import { KINDS, PUBLISHERS } from '../catalog/words.ts';
import { type Asset, type AssetFields, type BuildStatus, fileTypeOf } from './asset.ts';
import type { Identifiers } from './identifiers.ts';
import { CHANNEL, variantsOf } from './variants.ts';

/** What is known of an asset besides what was written to it. */
export interface Standing {
  /** Written members over those that the catalog made. */
  readonly fields: AssetFields;
  readonly identifiers: Identifiers;
  readonly build: BuildStatus;
  readonly distribution: 'initialized' | 'distributed' | 'withdrawn';
}

const FORMAT_NAMES = new Map([
  ['epub', 'ePub'],
  ['pdf', 'PDF'],
]);
/** Products and kinds have numbers of their own, apart from those of assets. */
const FIRST_ID = 1_000_000;

function iso(time: number): string {
  return new Date(time).toISOString();
}

/** The sandbox's discounts are the number in the code: `CS20` is 20 percent. 10 where there is none, or one above 100. */
function discountOf(code: string | undefined): string | null {
  if (code === undefined) return null;
  const percent = Number(/\d+/.exec(code)?.[0] ?? '10');
  return String(percent <= 100 ? percent : 10);
}

/** Names outside the sandbox's own list have a number that depends on the name alone. */
function kindOf(name: string) {
  const known = [...new Set<string>(KINDS)].indexOf(name);
  const id = known === -1 ? 100 + (Buffer.from(name).reduce((sum, byte) => hash(sum, byte), 0) % 900) : 1 + known;
  return { id, value: name };
}

export function publisherOf(imprintId: number): string {
  return PUBLISHERS[(imprintId - 1) % PUBLISHERS.length] ?? '';
}

function variantElements({ vbid, index, updatedAt, channelIds }: Asset, fields: AssetFields) {
  return variantsOf(vbid, fields.prices ?? []).map(({ sku, days, prices }, at) => ({
    product_id: (FIRST_ID + index) * 10 + at,
    sku,
    channel_ids: channelIds.has(sku) ? [{ channel: CHANNEL, identifier: channelIds.get(sku) }] : [],
    duration: days === null ? 'perpetual' : String(days),
    online_duration: days === null ? 'perpetual' : String(days),
    updated: iso(updatedAt),
    prices: prices.map(({ amount, currency, type }) => ({ price: amount, currency, type, company_id: '_all' })),
  }));
}

function isbnOf({ vbid }: Asset, { e_isbn }: AssetFields): string | null {
  return isIsbn(vbid) ? vbid : (e_isbn ?? null);
}

/** Of the file that was sent, where it is one that is taken in; else as the catalog has it. */
function bookFormatOf({ ingestion, format }: Asset) {
  const type = ingestion === null ? null : fileTypeOf(ingestion);
  const value = type ?? format;
  return { name: value === null ? null : (FORMAT_NAMES.get(value) ?? value), value, dash2epub: false };
}

/** Members that only the service sets, and those that a request sets to true or false: interface, section 2.1. */
function flagsOf({ fro = false, fulfillment_only = false, sampleable = false }: AssetFields) {
  const internal = { block_search: false, custom: false, epub_page_labels: false, floe: false, vcs_authored: false };
  return { ...internal, fro, fulfillment_only, sampleable };
}

/** Interface, section 2.2. What was not written is null; what only the service sets has a default. */
export function assetResponse(asset: Asset, { fields, identifiers, build, distribution }: Standing) {
  const {
    prices: _prices,
    imprint_id: imprintId = 1,
    parent_isbn,
    cs_plus_discount_code,
    kind = 'book',
    ...echo
  } = fields;
  const isbn = isbnOf(asset, fields);
  const [publisher, text] = [publisherOf(imprintId), null];
  return {
    vbid: asset.vbid,
    id: FIRST_ID + asset.index,
    isbn,
    isbn_canonical: isbn === null ? null : canonicalIsbn(isbn),
    parent_id: parent_isbn ?? null,
    created: iso(asset.createdAt),
    ...{ author_name: text, author_first_name: text, author_last_name: text, title: text, subtitle: text },
    ...{ description: text, copyright_date: text, publication_date: text, on_sale_date: text, off_sale_date: text },
    ...{ edition: null, language: text, login_url: text },
    ...{ copy_drm_limit: -1, print_drm_limit: -1, related_products: {}, sales_rights: {} },
    ...echo,
    ...{ e_isbn: fields.e_isbn ?? null, print_isbn: fields.print_isbn ?? null },
    ...flagsOf(fields),
    lifetime_print_limit: 100,
    discount_codes: [],
    cs_plus_discount: discountOf(cs_plus_discount_code),
    kind: kindOf(kind),
    identifiers,
    asset_status: { vbk: build, distribution },
    build: { available: build === 'approved', source: 'sandbox', status: build },
    book_format: bookFormatOf(asset),
    imprint: { id: imprintId, name: publisher, resource_url: `https://resources.example.org/v4/imprints/${imprintId}` },
    publisher: { id: 1 + ((imprintId - 1) % PUBLISHERS.length), name: publisher, city: 'Springfield' },
    variants: variantElements(asset, fields),
  };
}
