import { deserialize, serialize, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as zlib from 'node:zlib';
import { recordOf } from '@catchword/base/record-of';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { withoutHalves } from './json-text.ts';
import type { Column, Row, Table } from './table-columns.ts';

type Element = ParquetWriter['schema'][number];

/** Characters of a row group, all of which is in memory. Readers such as DuckDB take as long for each group as for 5 MB. */
const GROUP_CHARS = 32_000_000;

/** Node.js 22.15 and newer have it. */
const { zstdCompressSync } = zlib as { zstdCompressSync?: (bytes: Uint8Array) => Uint8Array };
type Packing = Required<Pick<ConstructorParameters<typeof ParquetWriter>[0], 'codec' | 'compressors'>>;
const PACKINGS: Readonly<Record<'small' | 'fast', Packing>> = {
  small: { codec: 'GZIP', compressors: { GZIP: (bytes) => zlib.gzipSync(bytes) } },
  fast: zstdCompressSync
    ? { codec: 'ZSTD', compressors: { ZSTD: zstdCompressSync } }
    : // Of the writer's own.
      { codec: 'SNAPPY', compressors: {} },
};

const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } } as const;
const JSON_TEXT = { type: 'BYTE_ARRAY', logical_type: { type: 'JSON' } } as const;
const UTC = { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' } as const;
const TYPES = {
  ...recordOf(TEXT, 'key', 'text'),
  ...recordOf(JSON_TEXT, 'json', 'body'),
  flag: { type: 'BOOLEAN' },
  number: { type: 'DOUBLE' },
  whole: { type: 'INT32' },
  seq: { type: 'INT64' },
  time: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS', logical_type: UTC },
} as const;

function elementOf({ name, form, isNullable = ['text', 'json', 'number'].includes(form) }: Column): Element {
  return { name, ...TYPES[form], repetition_type: isNullable ? 'OPTIONAL' : 'REQUIRED' };
}

/** Rows in groups, by column; the last group may be empty. JSON as bytes: kept as texts it takes more memory (measured). */
function* groups(batches: Iterable<readonly Row[]>, { columns }: Pick<Table, 'columns'>) {
  let data: (Row[number] | Buffer)[][] = [];
  let chars = 0;
  for (const rows of batches) {
    for (const row of rows) {
      for (const [at, value = null] of row.entries()) {
        const isText = typeof value === 'string';
        chars += isText ? value.length : 1;
        data[at] ??= [];
        data[at].push(
          isText && TYPES[columns()[at]?.form ?? 'text'] === JSON_TEXT ? Buffer.from(withoutHalves(value)) : value,
        );
      }
      if (chars < GROUP_CHARS) continue;
      yield data;
      data = [];
      chars = 0;
    }
  }
  yield data;
}

/** Packs what describes the columns of the newest group until the end: 1 kB instead of 11. Forgets indexes, which are empty. */
function packNewest(parquet: ParquetWriter): void {
  parquet.pendingIndexes = [];
  const group = parquet.row_groups.pop();
  if (group === undefined) return;
  const packed = zlib.deflateRawSync(serialize(group.columns)).toString('latin1');
  const unpack = (): unknown => deserialize(zlib.inflateRawSync(Buffer.from(packed, 'latin1')));
  parquet.row_groups.push(Object.defineProperty(group, 'columns', { get: unpack }));
}

/** Writes rows as Parquet. @param metadata what is known of them: stored as `catchword.<name>`, null as an empty text */
export function* parquetChunks(
  batches: Iterable<readonly Row[]>,
  table: Pick<Table, 'columns'>,
  metadata: Readonly<Record<string, string | null>>,
  packing: keyof typeof PACKINGS,
): Generator<Uint8Array> {
  const writer = new ByteWriter();
  let parquet: ParquetWriter | undefined;
  // V8 lets unused buffers pile up: 262 MB with a million products, 189 MB with a collection between groups. One takes longer
  // than to write a small group, so a file of one group is written without.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (const data of groups(batches, table)) {
    if (parquet !== undefined) collect();
    const columns = table.columns();
    parquet ??= new ParquetWriter({
      writer,
      schema: [{ name: 'catalog', num_children: columns.length }, ...columns.map(elementOf)],
      ...PACKINGS[packing],
      statistics: false,
      kvMetadata: Object.entries(metadata).map(([name, value]) => ({ key: `catchword.${name}`, value: value ?? '' })),
      createdBy: 'catchword',
    });
    // No two products have the same body.
    const plain = { encoding: 'PLAIN' } as const;
    const columnData = columns.map(({ name, form }, at) => {
      return { name, data: data[at] ?? [], offsetIndex: false, ...(form === 'body' && plain) };
    });
    // Not asynchronous: this writer does not flush.
    void parquet.write({ columnData, rowGroupSize: Math.max(1, data[0]?.length ?? 0) });
    packNewest(parquet);
    yield writer.getBytes().slice();
    writer.index = 0;
  }
  // Some readers need it. Earlier, the writer would take a text for a value, and quote it.
  for (const one of parquet?.schema ?? []) if (one.logical_type?.type === 'JSON') one.converted_type = 'JSON';
  void parquet?.finish();
  yield writer.getBytes();
}
