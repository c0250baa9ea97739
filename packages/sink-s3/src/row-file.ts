import { gunzipSync, gzipSync } from 'node:zlib';
import { oneLine } from '@catchword/catalog/event';
import { columnsOf, type Fields } from '@catchword/catalog/field-values';
import { objectMembers, withoutHalves } from '@catchword/catalog/json-text';
import { parquetChunks } from '@catchword/catalog/parquet-chunks';
import { CHANGE_OPS } from '@catchword/catalog/run-types';
import { CATALOG, type Column, type Row } from '@catchword/catalog/table-columns';
import { parquetReadObjects } from 'hyparquet';
import * as z from 'zod';

/** What a file has of an event. Of two rows of a product, the one with the higher generation and then seq is newer. */
const rowSchema = z.object({
  vbid: z.string(),
  seq: z.coerce.number(),
  generation: z.coerce.number(),
  op: z.enum(CHANGE_OPS),
  /** Milliseconds since 1970. */
  at: z.coerce.date().transform(Number),
  id: z.string(),
  body: z.string().nullable(),
});
export type StoredRow = z.output<typeof rowSchema>;

/** How files hold rows. */
export interface RowFormat {
  readonly extension: string;
  readonly encode: (rows: readonly StoredRow[]) => Buffer;
  readonly decode: (bytes: Buffer) => Promise<StoredRow[]>;
}

const VALUES = CATALOG.slice(1);
const COLUMNS: readonly Column[] = [
  ...CATALOG.slice(0, 1),
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

/** For safety: another writer of the bucket could let a small file become gigabytes. A file of ours has less than a quarter. */
const UNPACKED = { maxOutputLength: 256 * 2 ** 20 };

const parquet: RowFormat = {
  extension: 'parquet',
  encode: (rows) => {
    const table = { columns: () => COLUMNS };
    return Buffer.concat([...parquetChunks([rows.map(rowOf)], table, {}, 'small')]);
  },
  decode: async (bytes) => {
    const file = new Uint8Array(bytes).buffer;
    const columns = Object.keys(rowSchema.shape);
    const compressors = { GZIP: (given: Uint8Array) => gunzipSync(given, UNPACKED) };
    // As text: parsed JSON would lose the digits of numbers.
    const parsers = { jsonFromBytes: (text: Uint8Array) => Buffer.from(text).toString() };
    return z.array(rowSchema).parse(await parquetReadObjects({ file, columns, compressors, parsers }));
  },
};

const ndjson: RowFormat = {
  extension: 'ndjson.gz',
  encode: (rows) => {
    const lines = rows.map(({ body, ...row }) => {
      const start = JSON.stringify({ ...row, at: new Date(row.at).toISOString() });
      return withoutHalves(`${start.slice(0, -1)},"body":${oneLine(body)}}\n`);
    });
    return gzipSync(lines.join(''));
  },
  decode: async (bytes) =>
    gunzipSync(bytes, UNPACKED)
      .toString()
      .split('\n')
      .slice(0, -1)
      .map((text) => {
        const body = objectMembers(text).get('body') ?? 'null';
        return rowSchema.parse({ ...JSON.parse(text), body: body === 'null' ? null : body });
      }),
};

export const FORMATS = { parquet, ndjson } as const;
