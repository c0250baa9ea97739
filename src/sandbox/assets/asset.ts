import { parseIsoTime } from '../../iso-time.ts';
import type { OnSale } from '../catalog/sale-schedule.ts';
import type { AssetRequest } from './fields.ts';
import type { Identifiers } from './identifiers.ts';

/** An attempt to take in a file: interface, section 4.1, rule 2. Times are milliseconds since 1970. */
export interface Ingestion {
  readonly url: string;
  readonly callbackUrl: string | null;
  readonly startedAt: number;
  readonly endsAt: number;
}

/** The members of interface, section 2.1, that are kept as they were sent. */
export type AssetFields = Omit<AssetRequest, 'identifiers' | 'variants' | 'url' | 'callback_url'>;

/** An asset that was written to. Never changed, only replaced, so that whoever holds one holds it as of that moment. */
export interface Asset {
  readonly vbid: string;
  /** Of its product in the catalog. */
  readonly index: number;
  /** The API key that created it. */
  readonly owner: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Whether the catalog made it, so that what was not written to is as the catalog says. */
  readonly generated: boolean;
  /** Of the file that the catalog says it has, such as `epub`; null where the catalog did not make it. */
  readonly format: string | null;
  readonly fields: AssetFields;
  /** Null: as the catalog has them, whatever its next version says. */
  readonly identifiers: Identifiers | null;
  /** By SKU. */
  readonly channelIds: ReadonlyMap<string, string>;
  readonly ingestion: Ingestion | null;
}

/** Without a zone it is UTC. */
function timeOf(date: string | null | undefined, otherwise: number): number {
  return parseIsoTime(date ?? '') ?? otherwise;
}

/** From the beginning of `on_sale_date`, before the beginning of `off_sale_date`. */
export function onSaleOf({ on_sale_date, off_sale_date }: AssetFields): OnSale {
  return {
    from: timeOf(on_sale_date, Number.NEGATIVE_INFINITY),
    until: timeOf(off_sale_date, Number.POSITIVE_INFINITY),
  };
}

export type BuildStatus = 'none' | 'processing' | 'approved' | 'failed';

/** EPUB and PDF are taken in (interface, section 1). The sandbox fetches nothing: an address that names another type fails. */
export function fileTypeOf({ url }: Ingestion): 'epub' | 'pdf' | null {
  const [, extension = 'epub'] = /\.([a-z0-9]{1,5})$/i.exec(new URL(url).pathname) ?? [];
  return (['epub', 'pdf'] as const).find((type) => type === extension.toLowerCase()) ?? null;
}

/** How far the file has come. Products that the catalog made have theirs. */
export function buildStatusOf({ ingestion, generated }: Asset, now: number): BuildStatus {
  if (ingestion === null) return generated ? 'approved' : 'none';
  if (now < ingestion.endsAt) return 'processing';
  return fileTypeOf(ingestion) === null ? 'failed' : 'approved';
}
