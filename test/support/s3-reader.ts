import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import * as z from 'zod';

const rowSchema = z.looseObject({ vbid: z.string(), seq: z.string(), body: z.string() });

const PAGE = readFileSync(fileURLToPath(new URL('../../docs/stores/s3.md', import.meta.url)), 'utf8');
/** The statements that docs/stores/s3.md gives to readers. */
const SQL = [...PAGE.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, code = '']) => code);

/**
 * What a reader of a bucket has who follows docs/stores/s3.md, with the objects below `prefix` as files of a directory.
 * @param asked makes another query of the page's
 * @returns the rows of the present products
 */
export async function readBucket(
  objects: ReadonlyMap<string, Buffer>,
  prefix: string,
  asked: (sql: string) => string = (sql) => sql,
) {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-bucket-'));
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
  const connection = await instance.connect();
  try {
    for (const [key, bytes] of objects) {
      if (key.startsWith(prefix)) writeFileSync(join(directory, basename(key)), bytes);
    }
    const manifest = JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8')) as {
      readonly format: string;
      readonly files: readonly unknown[];
    };
    // The query of the page needs a file.
    if (manifest.files.length === 0) return [];
    const local = SQL.map((sql) => sql.replaceAll('s3://books/catalog', directory));
    await connection.run(local[0] ?? '');
    const [, parquet = '', ndjson = ''] = local;
    const read = await connection.runAndReadAll(asked(manifest.format === 'parquet' ? parquet : ndjson));
    return z.array(rowSchema).parse(read.getRowObjectsJson());
  } finally {
    connection.closeSync();
    instance.closeSync();
    rmSync(directory, { recursive: true, force: true });
  }
}
