import type { ItemShape } from '../details.ts';
import { canonicalIsbn, counterpartIsbn } from '../isbn.ts';
import { type Asset, type AssetFields, fileTypeOf } from './asset.ts';
import { publisherOf } from './response.ts';
import { CHANNEL, variantsOf } from './variants.ts';

type Members = Readonly<Record<string, unknown>>;
type BaseVariant = Members & { readonly sku?: string };

const FORMATS = { epub: 'ePub', pdf: 'pdf' } as const;

/** In 13 digits; undefined where there is none. */
function canonical(plain: string | undefined, list: readonly string[]): string | undefined {
  const [first = plain] = list;
  if (first === undefined) return undefined;
  const isbn = canonicalIsbn(plain ?? first);
  return isbn.length === 13 ? isbn : (counterpartIsbn(isbn) ?? isbn);
}

function identifiersOf(asset: Asset, base: Members, all: boolean): Members {
  const print = canonical(asset.fields.print_isbn, asset.identifiers.print_isbn_13);
  const electronic = canonical(asset.fields.e_isbn, asset.identifiers.e_isbn_13);
  const none = { print_isbn_canonical: null, eisbn_canonical: null };
  const lists = Object.entries(asset.identifiers).filter(([, isbns]) => isbns.length > 0);
  return {
    ...(asset.generated ? base : none),
    ...(print !== undefined && { print_isbn_canonical: print }),
    ...(electronic !== undefined && { eisbn_canonical: electronic }),
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

/** The catalog's name of a member, and its value; undefined where it was not written. */
function plainMembers({ fields, createdAt, generated, ingestion }: Asset): Members {
  const type = ingestion === null ? null : fileTypeOf(ingestion);
  const { author_name: author, sales_rights: rights } = fields;
  const granted = [...(rights?.exclusive_rights ?? []), ...(rights?.non_exclusive_rights ?? [])];
  return {
    kind: fields.kind ?? (generated ? undefined : 'book'),
    ...{ title: fields.title, subtitle: fields.subtitle },
    format: type === null ? undefined : FORMATS[type],
    publisher: fields.imprint_id === undefined ? undefined : publisherOf(fields.imprint_id),
    edition: fields.edition,
    contributors: author === undefined ? undefined : [{ name: author, type: 'author' }],
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

/** @param text the product as the catalog made it; null where an asset made it */
export function assetItem(asset: Asset, text: string | null, shape: ItemShape, withdrawn: boolean): string {
  const base = text === null ? {} : (JSON.parse(text) as Record<string, unknown>);
  const { groups } = shape;
  const all = shape.details || groups.has('identifiers');
  const variants = variantItems(asset, base.variants as readonly BaseVariant[] | undefined, shape);
  return JSON.stringify({
    vbid: asset.vbid,
    ...base,
    identifiers: identifiersOf(asset, (base.identifiers ?? {}) as Members, all),
    ...written(plainMembers(asset)),
    ...(variants !== undefined && { variants }),
    ...(groups.has('subjects') && { subjects: base.subjects ?? [] }),
    ...(groups.has('metadata') && {
      metadata: { ...(base.metadata as Members), ...written(metadataOf(asset.fields)) },
    }),
    ...(withdrawn && { distributable: false }),
  });
}
