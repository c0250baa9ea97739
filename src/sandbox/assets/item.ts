import { canonicalIsbn, counterpartIsbn } from '../catalog/isbn.ts';
import type { ItemShape } from '../catalog/item-details.ts';
import { type Asset, type AssetFields, fileTypeOf } from './asset.ts';
import { IDENTIFIER_KEYS } from './fields.ts';
import { publisherOf } from './response.ts';
import { CHANNEL, variantsOf } from './variants.ts';

type Members = Readonly<Record<string, unknown>>;
type BaseVariant = Members & { readonly sku?: string };

const FORMATS = { epub: 'ePub', pdf: 'pdf' } as const;

/** In 13 digits; null where there is none. The ISBN that was written by itself goes before the lists. */
function canonical([first]: readonly string[], plain = first): string | null {
  if (plain === undefined) return null;
  const isbn = canonicalIsbn(plain);
  return isbn.length === 13 ? isbn : (counterpartIsbn(isbn) ?? isbn);
}

/** The members that follow from those of interface, section 2.1.1; the others are the catalog's own. */
const WRITTEN = new Set<string>(['e_isbn', 'print_isbn', ...IDENTIFIER_KEYS]);

function identifiersOf({ identifiers, fields }: Asset, base: Members, all: boolean): Members {
  if (identifiers === null) return base;
  const print = canonical(identifiers.print_isbn_13, fields.print_isbn);
  const electronic = canonical(identifiers.e_isbn_13, fields.e_isbn);
  const lists = Object.entries(identifiers).filter(([, isbns]) => isbns.length > 0);
  return {
    ...Object.fromEntries(Object.entries(base).filter(([name]) => !WRITTEN.has(name))),
    ...{ print_isbn_canonical: print, eisbn_canonical: electronic },
    ...(all && electronic !== null && { e_isbn: electronic }),
    ...(all && print !== null && { print_isbn: print }),
    ...(all && Object.fromEntries(lists)),
  };
}

function channelIdsOf({ channelIds }: Asset, sku: string) {
  const identifier = channelIds.get(sku);
  return identifier === undefined ? [] : [{ channel: CHANNEL, identifier }];
}

function variantItems(asset: Asset, base: readonly BaseVariant[] | undefined, { currencies }: ItemShape) {
  const { vbid, updatedAt, fields, generated } = asset;
  if (fields.prices === undefined && generated) {
    return base?.map((variant) =>
      asset.channelIds.has(variant.sku ?? '')
        ? { ...variant, channel_ids: channelIdsOf(asset, variant.sku ?? '') }
        : variant,
    );
  }
  return variantsOf(vbid, fields.prices ?? []).map(({ sku, type, days, prices }) => ({
    ...{ sku, type, duration: days === null ? 'perpetual' : String(days) },
    online_duration: days === null ? 'perpetual' : String(days),
    distributable: true,
    prices: prices
      .filter(({ currency }) => currencies?.has(currency) ?? true)
      .map((price) => ({ type: price.type, value: price.amount, currency: price.currency })),
    updated: new Date(updatedAt).toISOString(),
    channel_ids: channelIdsOf(asset, sku),
  }));
}

/** The author comes first in the catalog; who follows is not told of by `author_name`. */
function contributorsOf(author: string, base: Members): readonly unknown[] {
  const [, ...others] = (base.contributors ?? []) as readonly unknown[];
  return [{ name: author, type: 'author' }, ...others];
}

/** The catalog's name of a member, and its value; undefined where it was not written. */
function plainMembers({ fields, createdAt, generated, ingestion }: Asset, base: Members): Members {
  const type = ingestion === null ? null : fileTypeOf(ingestion);
  const { author_name: author, sales_rights: rights } = fields;
  const granted = [...(rights?.exclusive_rights ?? []), ...(rights?.non_exclusive_rights ?? [])];
  return {
    kind: fields.kind ?? (generated ? undefined : 'book'),
    ...{ title: fields.title, subtitle: fields.subtitle },
    format: type === null ? undefined : FORMATS[type],
    publisher: fields.imprint_id === undefined ? undefined : publisherOf(fields.imprint_id),
    edition: fields.edition,
    contributors: author === undefined ? undefined : contributorsOf(author, base),
    language: fields.language,
    created: generated ? undefined : new Date(createdAt).toISOString(),
    ...{ on_sale_date: fields.on_sale_date, off_sale_date: fields.off_sale_date },
    ...{ print_restrictions: fields.print_drm_limit, copy_restrictions: fields.copy_drm_limit },
    sales_rights: rights === undefined ? undefined : granted,
    exclude_sales_rights: rights === undefined ? undefined : (rights.not_for_sale ?? []),
  };
}

function metadataOf({ description, publication_date, copyright_date, imprint_id }: AssetFields): Members {
  const imprint_name = imprint_id === undefined ? undefined : publisherOf(imprint_id);
  return { description, publication_date, copyright_date, imprint_name };
}

function written(members: Members): Members {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** A product as the catalog made it; `full`, with its variants, where they are told of although the shape has none. */
export interface MadeItem {
  readonly text: string;
  readonly full: string | null;
}

/** @param made null where an asset made the product */
export function assetItem(asset: Asset, made: MadeItem | null, shape: ItemShape, withdrawn: boolean): string {
  const base = JSON.parse(made?.text ?? '{}') as Record<string, unknown>;
  const priced = JSON.parse(made?.full ?? made?.text ?? '{}') as Record<string, unknown>;
  const { groups } = shape;
  const all = shape.details || groups.has('identifiers');
  const variants = variantItems(asset, priced.variants as readonly BaseVariant[] | undefined, shape);
  return JSON.stringify({
    vbid: asset.vbid,
    ...base,
    identifiers: identifiersOf(asset, (base.identifiers ?? {}) as Members, all),
    ...written(plainMembers(asset, base)),
    ...(variants !== undefined && { variants }),
    ...(groups.has('subjects') && { subjects: base.subjects ?? [] }),
    ...(groups.has('metadata') && {
      metadata: { ...(base.metadata as Members), ...written(metadataOf(asset.fields)) },
    }),
    ...(withdrawn && { distributable: false }),
  });
}
