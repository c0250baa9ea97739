import { columnsOf, type Fields, partsOf } from '@catchword/catalog/field-values';
import { PART_NAMES, type Part } from '@catchword/catalog/fields';
import type { SinkEvent } from '@catchword/sink-kit/sink';

/** Values of one row. */
export type Row = readonly (string | number | boolean | null)[];

/** Rows that a batch of events makes. */
export interface ProductRows<Made> {
  /** `vbid`, the columns of `COLUMNS`, `body`, `seq`, `at`. */
  readonly living: readonly Made[];
  /** `vbid`, the columns of the part. */
  readonly parts: Readonly<Record<Part, readonly Made[]>>;
  /** `vbid`, `seq`, `at`. */
  readonly gone: readonly Made[];
}

/** What rows need of an event. */
export type Written = Pick<SinkEvent, 'vbid' | 'body' | 'seq' | 'at'>;

/**
 * Makes the rows of a batch from each product's last event.
 * @param write how the database gets a body, a time that is milliseconds since 1970, and a row
 */
export function rowsOf<Made>(
  events: readonly Written[],
  write: {
    readonly body: (json: string) => string;
    readonly time: (ms: number) => string | number;
    readonly row: (values: Row) => Made;
  },
): ProductRows<Made> {
  const living: Made[] = [];
  const parts: Record<Part, Made[]> = { prices: [], contributors: [], identifiers: [] };
  const gone: Made[] = [];
  for (const { vbid, body, seq, at } of new Map(events.map((event) => [event.vbid, event])).values()) {
    if (body === null) {
      gone.push(write.row([vbid, seq, write.time(at)]));
      continue;
    }
    const fields = JSON.parse(body) as Fields;
    living.push(write.row([vbid, ...columnsOf(fields), write.body(body), seq, write.time(at)]));
    const found = partsOf(fields);
    for (const part of PART_NAMES) for (const row of found[part]) parts[part].push(write.row([vbid, ...row]));
  }
  return { living, parts, gone };
}
