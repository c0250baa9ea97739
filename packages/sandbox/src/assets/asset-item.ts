import { canonicalIdentifier } from '@catchword/base/isbn';
import type { ItemShape } from '../catalog/catalog-item.ts';
import { IDENTIFIER_KEYS } from './asset-fields.ts';
import { type Asset, fileTypeOf, publisherOf } from './kept-asset.ts';
import { channelIdsOf, variantsOf } from './variants.ts';

type Members = Readonly<Record<string, unknown>>;
type BaseVariant = Members & { readonly sku?: string };

const FORMATS = { epub: 'ePub', pdf: 'pdf' } as const;

/** Returns an ISBN with 13 digits. @param alone the ISBN that was written by itself, which takes precedence */
function canonical([first]: readonly string[], alone = first): string | null {
  return alone === undefined ? null : canonicalIdentifier(alone);
}

/** Members that follow from the identifiers of interface, section 2.1.1. The others are the catalog's own. */
const WRITTEN = new Set<string>(['e_isbn', 'print_isbn', ...IDENTIFIER_KEYS]);

function identifiersOf({ identifiers, fields }: Asset, base: Members, all: boolean): Members {
  if (identifiers === null) return base;
  const print = canonical(identifiers.print_isbn_13, fields.print_isbn);
  const electronic = canonical(identifiers.e_isbn_13, fields.e_isbn);
  const lists = Object.entries(identifiers).filter(([, isbns]) => isbns.length > 0);
  return {
    ...Object.fromEntries(Object.entries(base).filter(([name]) => !WRITTEN.has(name))),
    print_isbn_canonical: print,
    eisbn_canonical: electronic,
    ...(all && electronic !== null && { e_isbn: electronic }),
    ...(all && print !== null && { print_isbn: print }),
    ...(all && Object.fromEntries(lists)),
  };
}

function variantItems(asset: Asset, base: readonly BaseVariant[] | undefined, { currencies }: ItemShape) {
  const { vbid, updatedAt, fields, generated, channelIds } = asset;
  if (fields.prices === undefined && generated) {
    return base?.map((variant) => {
      const own = channelIdsOf(channelIds, variant.sku ?? '');
      return own.length === 0 ? variant : { ...variant, channel_ids: own };
    });
  }
  return variantsOf(vbid, fields.prices).map(({ sku, type, duration, prices }) => ({
    sku,
    type,
    duration,
    online_duration: duration,
    distributable: true,
    prices: prices
      .filter(({ currency }) => currencies?.has(currency) ?? true)
      .map((price) => ({ type: price.type, value: price.amount, currency: price.currency })),
    updated: new Date(updatedAt).toISOString(),
    channel_ids: channelIdsOf(channelIds, sku),
  }));
}

/** Fields by their names in the catalog. Undefined: not written. */
function plainMembers({ fields, createdAt, generated, ingestion }: Asset, base: Members): Members {
  const type = ingestion === null ? null : fileTypeOf(ingestion);
  const { author_name: author, sales_rights: rights, imprint_id: imprint } = fields;
  // The author comes first in the catalog; `author_name` says nothing about the others.
  const [, ...others] = (base.contributors ?? []) as readonly unknown[];
  return {
    kind: fields.kind ?? (generated ? undefined : 'book'),
    title: fields.title,
    subtitle: fields.subtitle,
    format: type === null ? undefined : FORMATS[type],
    publisher: imprint === undefined ? undefined : publisherOf(imprint),
    edition: fields.edition,
    contributors: author === undefined ? undefined : [{ name: author, type: 'author' }, ...others],
    language: fields.language,
    created: generated ? undefined : new Date(createdAt).toISOString(),
    on_sale_date: fields.on_sale_date,
    off_sale_date: fields.off_sale_date,
    print_restrictions: fields.print_drm_limit,
    copy_restrictions: fields.copy_drm_limit,
    sales_rights: rights && [...(rights.exclusive_rights ?? []), ...(rights.non_exclusive_rights ?? [])],
    exclude_sales_rights: rights && (rights.not_for_sale ?? []),
  };
}

function written(members: Members): Members {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/**
 * Renders a product that was written to.
 * @param text the product as the catalog generated it; `{}` if it did not
 * @param priced the same with its variants if the asset has channel identifiers, which are members of variants
 */
export function assetItem(asset: Asset, text: string, priced: string, shape: ItemShape, withdrawn: boolean): string {
  const item = JSON.parse(text) as Members;
  const { variants: base } = JSON.parse(priced) as { readonly variants?: readonly BaseVariant[] };
  const { groups } = shape;
  const variants = variantItems(asset, base, shape);
  const plain = written(plainMembers(asset, item));
  const { description, publication_date, copyright_date } = asset.fields;
  const metadata = written({ description, publication_date, copyright_date, imprint_name: plain.publisher });
  const allIdentifiers = shape.details || groups.has('identifiers');
  return JSON.stringify({
    vbid: asset.vbid,
    ...item,
    identifiers: identifiersOf(asset, (item.identifiers ?? {}) as Members, allIdentifiers),
    ...plain,
    variants,
    ...(groups.has('subjects') && { subjects: item.subjects ?? [] }),
    ...(groups.has('metadata') && { metadata: { ...(item.metadata as Members), ...metadata } }),
    ...(withdrawn && { distributable: false }),
  });
}
