import { canonicalIsbn, isIsbn } from '@catchword/base/isbn';
import { EVERY_MEMBER, itemRenderer } from '../catalog/catalog-item.ts';
import type { Catalog } from '../catalog/changing-catalog.ts';
import type { Numbering } from '../catalog/product-numbers.ts';
import type { Timeline } from '../journal/journal.ts';
import type { SandboxOptions } from '../options.ts';
import type { AssetRequest } from './asset-fields.ts';
import { generatedAsset } from './generated.ts';
import { type Identifiers, NO_IDENTIFIERS, patchIdentifiers } from './identifiers.ts';
import { type Asset, type AssetFields, onSaleOf, publisherOf } from './kept-asset.ts';

/** Nothing was written yet. */
const EMPTY = { fields: {}, channelIds: new Map<string, string>(), ingestion: null };
const GENERATED = { ...EMPTY, generated: true, identifiers: null };
const NEW = { ...EMPTY, generated: false, identifiers: NO_IDENTIFIERS, format: null };

type Options = Pick<SandboxOptions, 'seed' | 'apiKey' | 'ingestionMs'>;

/** Removes an ISBN that was written by itself when its lists no longer hold it. */
function withoutCleared(fields: AssetFields, identifiers: Identifiers | null): AssetFields {
  const kept = { ...fields };
  const lists = identifiers ?? NO_IDENTIFIERS;
  for (const name of ['e_isbn', 'print_isbn'] as const) {
    const listed = [...lists[`${name}_10`], ...lists[`${name}_13`]];
    if (!listed.includes(canonicalIsbn(fields[name] ?? ''))) delete kept[name];
  }
  return kept;
}

/** Updates objects inside the asset member by member, as the asset itself is. `whole` has the generated fields, too. */
function merge(written: AssetFields, whole: AssetFields, request: AssetRequest): AssetFields {
  const { identifiers: _identifiers, variants: _variants, url: _url, callback_url: _callback, ...sent } = request;
  const { author_name, author_first_name: first, author_last_name: last } = sent;
  const full = first === undefined || last === undefined ? undefined : `${first} ${last}`.trim();
  return {
    ...written,
    ...sent,
    ...(author_name === undefined && full !== undefined && { author_name: full }),
    ...(sent.related_products && { related_products: { ...whole.related_products, ...sent.related_products } }),
    ...(sent.sales_rights && { sales_rights: { ...whole.sales_rights, ...sent.sales_rights } }),
  };
}

/** Adds to what the product has already (interface, 2.1.1 rule 1). Null: the identifiers of the catalog. */
function identifiersWith(held: Asset, whole: Identifiers, { identifiers, e_isbn, print_isbn }: AssetRequest) {
  if (identifiers === undefined && e_isbn === undefined && print_isbn === undefined) return held.identifiers;
  const patched = identifiers === null ? NO_IDENTIFIERS : patchIdentifiers(whole, identifiers ?? {});
  return patchIdentifiers(patched, {
    ...(e_isbn !== undefined && { e_isbn_13: [e_isbn] }),
    ...(print_isbn !== undefined && { print_isbn_13: [print_isbn] }),
  });
}

/**
 * The assets that were written to, and generated products as assets, which the main key owns. Each asset has one
 * product in the catalog, and keeps its index there. New products never get a number that an asset already has.
 * @rule 1-1, 2.1-3
 */
export function createAssets(options: Options, catalog: Catalog, numbering: Numbering, time: Timeline) {
  const renderFull = itemRenderer(options.seed, numbering, EVERY_MEMBER);
  const byVbid = new Map<string, Asset>();
  const written = new Map<number, Asset>();

  /** Returns the index of the product with this vbid. Null if there cannot be one. */
  function indexOf(vbid: string): number | null {
    const asset = byVbid.get(vbid);
    if (asset !== undefined) return asset.index;
    const index = numbering.indexOf(vbid);
    // The index may belong to an asset that was created with another number.
    return index === null || written.has(index) ? null : index;
  }

  const versionOf = (index: number) => catalog.find(index)?.version ?? 0;
  const generatedAt = (index: number) =>
    generatedAsset(renderFull({ index, version: versionOf(index), withdrawn: false }));

  /** Null if there is none. A generated product that was withdrawn is found until it is gone. */
  function find(vbid: string): Asset | null {
    const asset = byVbid.get(vbid);
    if (asset !== undefined) return asset;
    const product = catalog.find(indexOf(vbid) ?? -1);
    if (product === null) return null;
    const { index, updatedAt } = product;
    const { createdAt, format } = generatedAt(index);
    return { ...GENERATED, vbid, index, owner: options.apiKey, createdAt, updatedAt, format };
  }

  /** The written identifiers, or the identifiers of the product in the catalog. */
  function identifiersOf({ index, identifiers }: Asset): Identifiers {
    if (identifiers !== null) return identifiers;
    const list = (isbn: string | null) => (isbn === null ? [] : [isbn]);
    return patchIdentifiers(NO_IDENTIFIERS, {
      e_isbn_13: list(numbering.eIsbn(index, versionOf(index))),
      print_isbn_13: list(numbering.printIsbn(index)),
      vbid13_alias: [numbering.vbid(index)],
    });
  }

  /** The written fields, over the fields of the catalog. An ISBN written by itself precedes the ISBNs of the lists. */
  function fieldsOf(asset: Asset): AssetFields {
    const own = asset.generated ? generatedAt(asset.index).fields : {};
    const { e_isbn_13, print_isbn_13 } = identifiersOf(asset);
    return { ...own, e_isbn: e_isbn_13[0], print_isbn: print_isbn_13[0], ...asset.fields };
  }

  /** Returns the index of a new asset: the index of its number if it has one, else the next. */
  function claimIndex(vbid: string): number {
    const own = indexOf(vbid);
    if (own !== null && own < catalog.next()) return own;
    if (own !== null && own > catalog.next()) catalog.skip(own);
    return catalog.claim();
  }

  function changed(held: Asset, request: AssetRequest, now: number): Asset {
    const { url, callback_url: callbackUrl = null, variants = [] } = request;
    const endsAt = now + options.ingestionMs;
    const channelIds = variants.flatMap(({ channel_ids = [] }) =>
      channel_ids.map(({ sku, channel_id_inclusive_access: id }) => [sku, id] as const),
    );
    const identifiers = identifiersWith(held, identifiersOf(held), request);
    return {
      ...held,
      updatedAt: now,
      fields: withoutCleared(merge(held.fields, fieldsOf(held), request), identifiers),
      identifiers,
      channelIds: new Map([...held.channelIds, ...channelIds]),
      ingestion: url === undefined ? held.ingestion : { url, callbackUrl, startedAt: now, endsAt },
    };
  }

  return {
    find,
    indexOf,
    identifiersOf,
    fieldsOf,
    /** What a license repeats of an asset, on sale or not. Null if none has this vbid. */
    titleOf: (vbid: string) => {
      const asset = find(vbid);
      if (asset === null) return null;
      const { title = '', kind = 'book', imprint_id: imprint } = fieldsOf(asset);
      const publisher = imprint === undefined ? '' : publisherOf(imprint);
      return { name: title, publisher, kind, isbn: isIsbn(vbid) ? vbid : '' };
    },
    written: written as ReadonlyMap<number, Asset>,
    /** Returns the identifier of a new asset for which the caller gives none: an EAN with its check digit. */
    nextVbid: (): string => {
      // Skips numbers that assets were created with.
      while (byVbid.has(numbering.vbid(catalog.next()))) catalog.claim();
      return numbering.vbid(catalog.next());
    },
    /** Creates or updates an asset. The caller has checked the request and the right to write. */
    put: (vbid: string, owner: string, request: AssetRequest): Asset => {
      const now = time.now();
      const held = find(vbid) ?? { ...NEW, vbid, index: claimIndex(vbid), owner, createdAt: now, updatedAt: now };
      const asset = changed(held, request, now);
      byVbid.set(vbid, asset);
      written.set(asset.index, asset);
      catalog.offer(asset.index, onSaleOf(asset.fields));
      return asset;
    },
  };
}

export type Assets = ReturnType<typeof createAssets>;
