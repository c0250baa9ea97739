import { gunzipSync, gzipSync } from 'node:zlib';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import * as z from 'zod';
import { oneLine } from '../../../catalog/event.ts';
import { columnsOf, type Fields } from '../../../catalog/field-values.ts';
import { objectMembers } from '../../../catalog/json-text.ts';
import { parquetChunks } from '../../../catalog/parquet-chunks.ts';
import type { ChangeOp } from '../../../catalog/run-types.ts';
import { CATALOG, type Column, type Row } from '../../../catalog/table-columns.ts';

/** What a file has of an event. Of two rows of a product, the one with the higher generation and then seq is newer. */
export interface StoredRow {
  readonly vbid: string;
  readonly seq: number;
  readonly generation: number;
  readonly op: ChangeOp;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly id: string;
  readonly body: string | null;
}

/** How files hold rows. */
export interface RowFormat {
  readonly extension: string;
  readonly encode: (rows: readonly StoredRow[]) => Buffer;
  readonly decode: (bytes: Buffer) => Promise<StoredRow[]>;
}

const [KEY, ...VALUES] = CATALOG;
const COLUMNS: readonly Column[] = [
  ...(KEY === undefined ? [] : [KEY]),
  { name: 'seq', form: 'seq' },
  { name: 'generation', form: 'seq' },
  { name: 'op', form: 'key' },
  { name: 'at', form: 'time' },
  { name: 'id', form: 'key' },
  // A removal has none of them.
  ...VALUES.map((column) => ({ ...column, isNullable: true })),
  { name: 'body', form: 'body', isNullable: true },
];

function rowOf({ vbid, seq, generation, op, at, id, body }: StoredRow): Row {
  const values = body === null ? VALUES.map(() => null) : columnsOf(JSON.parse(body) as Fields);
  return [vbid, BigInt(seq), BigInt(generation), op, BigInt(at), id, ...values, body];
}

const number = z.bigint().transform(Number);
const time = z.date().transform((date) => date.getTime());
const op = z.enum(['created', 'updated', 'removed', 'restored']);
const body = z
  .string()
  .nullish()
  .transform((text) => text ?? null);
const parquetRows = z.array(
  z.object({ vbid: z.string(), seq: number, generation: number, op, at: time, id: z.string(), body }),
);

const parquet: RowFormat = {
  extension: 'parquet',
  encode: (rows) => {
    const table = { columns: () => COLUMNS };
    return Buffer.concat([...parquetChunks([rows.map(rowOf)], table, {})]);
  },
  decode: async (bytes) => {
    const file = new Uint8Array(bytes).buffer;
    const metadata = parquetMetadata(file);
    // As text: parsed JSON would lose the digits of numbers.
    for (const element of metadata.schema) {
      if (element.logical_type?.type === 'JSON')
        Object.assign(element, { converted_type: 'UTF8', logical_type: undefined });
    }
    const columns = ['vbid', 'seq', 'generation', 'op', 'at', 'id', 'body'];
    const compressors = { GZIP: (given: Uint8Array) => gunzipSync(given) };
    return parquetRows.parse(await parquetReadObjects({ file, metadata, columns, compressors }));
  },
};

const line = z.object({
  vbid: z.string(),
  seq: z.number(),
  generation: z.number(),
  op,
  at: z.string().transform((text) => Date.parse(text)),
  id: z.string(),
});

const ndjson: RowFormat = {
  extension: 'ndjson.gz',
  encode: (rows) => {
    const lines = rows.map(({ body, ...row }) => {
      const start = JSON.stringify({ ...row, at: new Date(row.at).toISOString() });
      return `${start.slice(0, -1)},"body":${oneLine(body)}}\n`;
    });
    return gzipSync(lines.join(''));
  },
  decode: async (bytes) =>
    gunzipSync(bytes)
      .toString()
      .split('\n')
      .slice(0, -1)
      .map((text) => {
        const body = objectMembers(text).get('body') ?? 'null';
        return { ...line.parse(JSON.parse(text)), body: body === 'null' ? null : body };
      }),
};

export const FORMATS = { parquet, ndjson } as const;
