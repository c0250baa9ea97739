import { parseIsoTime } from '@catchword/base/iso-time';
import type { TimeRange } from '../catalog/product-states.ts';
import { PUBLISHERS } from '../catalog/title-words.ts';
import type { AssetRequest } from './asset-fields.ts';
import type { Identifiers } from './identifiers.ts';

/** An attempt to ingest a file: interface, section 4.1, rule 2. Times are milliseconds since 1970. @rule 1-2 */
export interface Ingestion {
  readonly url: string;
  readonly callbackUrl: string | null;
  readonly startedAt: number;
  readonly endsAt: number;
}

/** The fields of interface, section 2.1, that are kept as they were sent. */
export type AssetFields = Omit<AssetRequest, 'identifiers' | 'variants' | 'url' | 'callback_url'>;

/** An asset. It is replaced, never modified. */
export interface Asset {
  readonly vbid: string;
  /** Index of its product in the catalog. */
  readonly index: number;
  /** The API key that created it. */
  readonly owner: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Whether the catalog generated it. Then the fields that were not written come from the catalog. */
  readonly generated: boolean;
  /** The file format that the catalog generated, such as `epub`. Null if it did not generate the asset. */
  readonly format: string | null;
  /** Only the fields that were written. */
  readonly fields: AssetFields;
  /** Null: the identifiers of the product in the catalog, in its current version. */
  readonly identifiers: Identifiers | null;
  /** By SKU. */
  readonly channelIds: ReadonlyMap<string, string>;
  readonly ingestion: Ingestion | null;
}

/** From the beginning of `on_sale_date`, before the beginning of `off_sale_date`. */
export function onSaleOf({ on_sale_date, off_sale_date }: AssetFields): TimeRange {
  return {
    from: parseIsoTime(on_sale_date ?? '') ?? Number.NEGATIVE_INFINITY,
    until: parseIsoTime(off_sale_date ?? '') ?? Number.POSITIVE_INFINITY,
  };
}

export function publisherOf(imprintId: number): string {
  return PUBLISHERS[(imprintId - 1) % PUBLISHERS.length] ?? '';
}

/** EPUB and PDF are accepted (interface, section 1). The sandbox fetches nothing: the extension of the URL decides. */
export function fileTypeOf({ url }: Ingestion): 'epub' | 'pdf' | null {
  const [, extension = 'epub'] = /\.([a-z0-9]{1,5})$/i.exec(new URL(url).pathname) ?? [];
  return (['epub', 'pdf'] as const).find((type) => type === extension.toLowerCase()) ?? null;
}

/** The state of the asset's file. Generated products have one from the beginning. */
export function buildStatusOf({ ingestion, generated }: Asset, now: number) {
  if (ingestion === null) return generated ? 'approved' : 'none';
  if (now < ingestion.endsAt) return 'processing';
  return fileTypeOf(ingestion) === null ? 'failed' : 'approved';
}
