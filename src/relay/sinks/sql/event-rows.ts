import { columnsOf, type Fields, partsOf } from '../../../catalog/field-values.ts';
import { PART_NAMES, type Part } from '../../../catalog/fields.ts';
import type { SinkEvent } from '../../sink.ts';

/** Values of one row. */
export type Row = readonly (string | number | boolean | null)[];

/** Rows that a batch of events makes. */
export interface ProductRows {
  /** `vbid`, the columns of `COLUMNS`, `body`, `seq`, `at`. */
  readonly living: readonly Row[];
  /** `vbid`, the columns of the part. */
  readonly parts: Readonly<Record<Part, readonly Row[]>>;
  /** `vbid`, `seq`, `at`. */
  readonly gone: readonly Row[];
}

/** What rows need of an event. */
export type Written = Pick<SinkEvent, 'vbid' | 'body' | 'seq' | 'at'>;

/**
 * Makes the rows of a batch from each product's last event.
 * @param write how the database gets a body, and a time that is milliseconds since 1970
 */
export function rowsOf(
  events: readonly Written[],
  write: { readonly body: (json: string) => string; readonly time: (ms: number) => string | number },
): ProductRows {
  const living: Row[] = [];
  const parts: Record<Part, Row[]> = { prices: [], contributors: [], identifiers: [] };
  const gone: Row[] = [];
  for (const { vbid, body, seq, at } of new Map(events.map((event) => [event.vbid, event])).values()) {
    if (body === null) {
      gone.push([vbid, seq, write.time(at)]);
      continue;
    }
    const fields = JSON.parse(body) as Fields;
    living.push([vbid, ...columnsOf(fields), write.body(body), seq, write.time(at)]);
    const found = partsOf(fields);
    for (const part of PART_NAMES) for (const row of found[part]) parts[part].push([vbid, ...row]);
  }
  return { living, parts, gone };
}
