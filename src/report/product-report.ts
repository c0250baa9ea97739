import { iso } from '@catchword/base/iso-time';
import { STORED, type StoredColumns, SUMMARY, type SummaryColumns } from '@catchword/catalog/fields';
import type { ProductRow, SearchHit } from '../store/rows/product-rows.ts';
import type { SinkProduct } from './sink-product.ts';

/** A product by the names of its columns. */
function columnsOf<T>(fields: typeof STORED, row: SearchHit) {
  const values: Readonly<Record<string, unknown>> = { ...row };
  const members = fields.map(({ column, name }) => [column, values[name]]);
  return { vbid: row.vbid, ...(Object.fromEntries(members) as T) };
}

/**
 * A product as one JSON document. Bodies are inserted as the service sent them, so that no number is rounded.
 * @param history the texts of its change events
 * @param atSink what the store of a sink has of it
 */
export function productJson(row: ProductRow, history?: readonly string[], atSink?: SinkProduct): string {
  const { body, firstSeenAt, changedAt, changedSeq, removedAt } = row;
  const head = JSON.stringify({
    ...columnsOf<StoredColumns>(STORED, row),
    first_seen_at: iso(firstSeenAt),
    changed_at: iso(changedAt),
    changed_seq: changedSeq,
    removed_at: iso(removedAt),
  });
  const tail = history === undefined ? '' : `,"history":[${history.join(',')}]`;
  const { has, gets, ...rest } = atSink ?? {};
  const sink =
    atSink && `,"sink":${JSON.stringify(rest).slice(0, -1)},"has":${has ?? 'null'},"gets":${gets ?? 'null'}}`;
  return `${head.slice(0, -1)},"body":${removedAt === null ? body : 'null'}${tail}${sink ?? ''}}`;
}

export function hitJson(hit: SearchHit) {
  return columnsOf<SummaryColumns>(SUMMARY, hit);
}
