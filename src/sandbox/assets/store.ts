import type { Catalog } from '../catalog/catalog.ts';
import { canonicalIsbn } from '../catalog/isbn.ts';
import type { RenderItem } from '../catalog/item.ts';
import type { Numbering } from '../catalog/product-numbers.ts';
import type { Timeline } from '../journal/timeline.ts';
import { type Asset, type AssetFields, type Ingestion, onSaleOf } from './asset.ts';
import type { AssetRequest } from './fields.ts';
import { type GeneratedAsset, generatedAsset } from './generated.ts';
import { type Identifiers, NO_IDENTIFIERS, patchIdentifiers } from './identifiers.ts';
import { withChannelIds } from './variants.ts';

/**
 * The assets that were written to, and the catalog's own as assets. Each has one product in the catalog, whose place
 * there (`index`) it keeps for good; the numbers that the catalog gives to new products stay free of those that assets
 * were created with.
 */
export interface Assets {
  /** Null where there is none; of the catalog's own, those that are withdrawn are there until they are gone. */
  find(vbid: string): Asset | null;
  /** Where the product with this vbid is in the catalog; null where none can be. */
  indexOf(vbid: string): number | null;
  /** Those that were written, or those that its product has in the catalog. */
  identifiersOf(asset: Asset): Identifiers;
  /** Those that were written, over those that its product has in the catalog. */
  fieldsOf(asset: Asset): AssetFields;
  /** Those that were written to, by index. */
  readonly written: ReadonlyMap<number, Asset>;
  /** The identifier that a new asset gets where the caller gives none: an EAN with its check digit. */
  nextVbid(): string;
  /** Creates or updates; the caller's right to do so, and the request, were judged before. */
  put(vbid: string, apiKey: string, request: AssetRequest): Asset;
}

export interface AssetsOptions {
  readonly catalog: Catalog;
  readonly numbering: Numbering;
  readonly time: Timeline;
  /** Owner of the products that the catalog made. */
  readonly apiKey: string;
  readonly ingestionMs: number;
  /** A product of the catalog's own with all its members. */
  readonly renderFull: RenderItem;
}

function joined(...names: readonly string[]): string {
  return names.filter((name) => name !== '').join(' ');
}

/** A written ISBN is one of its lists, and goes when they no longer hold it. */
function withoutCleared(fields: AssetFields, identifiers: Identifiers | null): AssetFields {
  const { e_isbn, print_isbn, ...rest } = fields;
  const held = (isbn: string | undefined, ...lists: readonly (readonly string[])[]): isbn is string =>
    isbn !== undefined && lists.some((list) => list.includes(canonicalIsbn(isbn)));
  const lists = identifiers ?? NO_IDENTIFIERS;
  return {
    ...rest,
    ...(held(e_isbn, lists.e_isbn_10, lists.e_isbn_13) && { e_isbn }),
    ...(held(print_isbn, lists.print_isbn_10, lists.print_isbn_13) && { print_isbn }),
  };
}

/**
 * Objects inside are updated member by member, as the asset is.
 * @param whole what was written, over what the catalog made
 */
function merged(written: AssetFields, whole: AssetFields, request: AssetRequest): AssetFields {
  const { identifiers: _identifiers, variants: _variants, url: _url, callback_url: _callback, ...sent } = request;
  const { author_name, author_first_name: first, author_last_name: last } = sent;
  return {
    ...written,
    ...sent,
    ...(author_name === undefined && first !== undefined && last !== undefined && { author_name: joined(first, last) }),
    ...(sent.related_products && { related_products: { ...whole.related_products, ...sent.related_products } }),
    ...(sent.sales_rights && { sales_rights: { ...whole.sales_rights, ...sent.sales_rights } }),
  };
}

export function createAssets(options: AssetsOptions): Assets {
  const { catalog, numbering, time, apiKey, ingestionMs, renderFull } = options;
  const byVbid = new Map<string, Asset>();
  const written = new Map<number, Asset>();

  function indexOf(vbid: string): number | null {
    const asset = byVbid.get(vbid);
    if (asset !== undefined) return asset.index;
    const index = numbering.indexOf(vbid);
    // An asset that was created with a number of its own stands where this number would be.
    return index === null || written.has(index) ? null : index;
  }

  function find(vbid: string): Asset | null {
    const asset = byVbid.get(vbid);
    if (asset !== undefined) return asset;
    const index = indexOf(vbid);
    const state = index === null ? null : catalog.find(index);
    if (state === null) return null;
    const { index: at, updatedAt } = state;
    const { createdAt, format } = generatedAt(at);
    const empty = { fields: {}, identifiers: null, channelIds: new Map<string, string>(), ingestion: null };
    return { vbid, index: at, owner: apiKey, createdAt, updatedAt, generated: true, format, ...empty };
  }

  function versionOf(index: number): number {
    return catalog.find(index)?.version ?? 0;
  }

  function generatedAt(index: number): GeneratedAsset {
    return generatedAsset(renderFull(index, versionOf(index), false));
  }

  function identifiersOf({ index, identifiers }: Asset): Identifiers {
    if (identifiers !== null) return identifiers;
    const list = (isbn: string | null) => (isbn === null ? [] : [isbn]);
    return patchIdentifiers(NO_IDENTIFIERS, {
      e_isbn_13: list(numbering.eIsbn(index, versionOf(index))),
      print_isbn_13: list(numbering.printIsbn(index)),
      vbid13_alias: [numbering.vbid(index)],
    });
  }

  /** An ISBN that was written by itself goes before those of the lists. */
  function fieldsOf(asset: Asset): AssetFields {
    const own = asset.generated ? generatedAt(asset.index).fields : {};
    const { e_isbn_13, print_isbn_13 } = identifiersOf(asset);
    return { ...own, e_isbn: e_isbn_13[0], print_isbn: print_isbn_13[0], ...asset.fields };
  }

  /** What is added to (interface, 2.1.1 rule 1) is what is there, so that of the catalog's own nothing is lost. */
  function identifiersWith(held: Asset, { identifiers, e_isbn, print_isbn }: AssetRequest): Identifiers | null {
    if (identifiers === undefined && e_isbn === undefined && print_isbn === undefined) return held.identifiers;
    const patched = identifiers === null ? NO_IDENTIFIERS : patchIdentifiers(identifiersOf(held), identifiers ?? {});
    return patchIdentifiers(patched, {
      ...(e_isbn !== undefined && { e_isbn_13: [e_isbn] }),
      ...(print_isbn !== undefined && { print_isbn_13: [print_isbn] }),
    });
  }

  /** The place of an asset that does not exist yet: its own where its number has one, else the next. */
  function place(vbid: string): number {
    const own = indexOf(vbid);
    if (own !== null && own < catalog.next) return own;
    if (own !== null && own > catalog.next) catalog.skip(own);
    return catalog.claim();
  }

  function ingestionOf(request: AssetRequest, held: Ingestion | null): Ingestion | null {
    if (request.url === undefined) return held;
    const startedAt = time.now();
    return { url: request.url, callbackUrl: request.callback_url ?? null, startedAt, endsAt: startedAt + ingestionMs };
  }

  return {
    find,
    indexOf,
    identifiersOf,
    fieldsOf,
    written,
    nextVbid: () => {
      // A number that an asset took ahead of its turn is passed over.
      while (byVbid.has(numbering.vbid(catalog.next))) catalog.claim();
      return numbering.vbid(catalog.next);
    },
    put: (vbid, owner, request) => {
      const now = time.now();
      const empty = { fields: {}, identifiers: NO_IDENTIFIERS, channelIds: new Map<string, string>(), ingestion: null };
      const held: Asset = find(vbid) ?? {
        vbid,
        index: place(vbid),
        owner,
        createdAt: now,
        updatedAt: now,
        generated: false,
        format: null,
        ...empty,
      };
      const channelIds = (request.variants ?? []).flatMap(({ channel_ids = [] }) => channel_ids);
      const identifiers = identifiersWith(held, request);
      const asset: Asset = {
        ...held,
        updatedAt: now,
        fields: withoutCleared(merged(held.fields, fieldsOf(held), request), identifiers),
        identifiers,
        channelIds: withChannelIds(held.channelIds, channelIds),
        ingestion: ingestionOf(request, held.ingestion),
      };
      byVbid.set(vbid, asset);
      written.set(asset.index, asset);
      catalog.offer(asset.index, onSaleOf(asset.fields));
      return asset;
    },
  };
}
