import { canonicalIsbn } from '../../base/isbn.ts';
import type { AssetRequest } from './asset-fields.ts';
import { type Identifiers, NO_IDENTIFIERS, patchIdentifiers } from './identifiers.ts';
import type { Asset, AssetFields, Ingestion } from './kept-asset.ts';

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

/**
 * Updates objects inside the asset member by member, as the asset itself is.
 * @param whole the written fields over the generated ones
 */
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

function ingestionOf({ url, callback_url }: AssetRequest, startedAt: number, ms: number): Ingestion | null {
  return url === undefined ? null : { url, callbackUrl: callback_url ?? null, startedAt, endsAt: startedAt + ms };
}

/**
 * The asset after a request.
 * @param whole the written fields and identifiers over the generated ones
 * @param now milliseconds since 1970
 */
export function changedAsset(
  held: Asset,
  whole: { readonly fields: AssetFields; readonly identifiers: Identifiers },
  request: AssetRequest,
  now: number,
  ingestionMs: number,
): Asset {
  const channelIds = (request.variants ?? []).flatMap(({ channel_ids = [] }) =>
    channel_ids.map(({ sku, channel_id_inclusive_access: id }) => [sku, id] as const),
  );
  const identifiers = identifiersWith(held, whole.identifiers, request);
  return {
    ...held,
    updatedAt: now,
    fields: withoutCleared(merge(held.fields, whole.fields, request), identifiers),
    identifiers,
    channelIds: new Map([...held.channelIds, ...channelIds]),
    ingestion: ingestionOf(request, now, ingestionMs) ?? held.ingestion,
  };
}
