import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { columnsOf, type Fields, partsOf } from '@catchword/catalog/field-values';
import { PART_NAMES } from '@catchword/catalog/fields';
import { createConnectionLife } from '@catchword/sink-kit/connection-scope';
import { connect } from '@catchword/sink-sql/postgres/postgres-connection';
import { ensureLayout, LAYOUT, resolveNames } from '@catchword/sink-sql/postgres/postgres-layout';
import { programs } from '@catchword/testing/postgres';
import pg from 'pg';

interface Product {
  readonly vbid: string;
  readonly body: string;
  readonly seq: number;
}

const COLUMNS = ['vbid', ...Object.keys(LAYOUT.products), 'body', 'seq', 'changed_at', 'fill'].join();

function line(row: readonly (string | number | boolean | null)[]): string {
  const cells = row.map((value) =>
    value === null
      ? '\\N'
      : String(value).replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t'),
  );
  return `${cells.join('\t')}\n`;
}

/** Writes what the server still has in memory, so that it need not do so during the next measurement. */
export async function checkpoint(address: string): Promise<void> {
  const client = new pg.Client({ connectionString: address });
  await client.connect();
  await client.query('CHECKPOINT');
  await client.end();
}

/**
 * Creates the tables of a sink, with its indexes, and files with the rows that a sink would write.
 * @returns a function that copies the files into the tables, as fast as PostgreSQL's own client can
 */
export async function prepareCopy(
  address: string,
  directory: string,
  chunks: readonly (readonly Product[])[],
): Promise<() => void> {
  const rowFile = join(directory, 'rows');
  const partFile = (part: string): string => join(directory, part);
  for (const file of [rowFile, ...PART_NAMES.map(partFile)]) rmSync(file, { force: true });
  const now = new Date().toISOString();
  for (const chunk of chunks) {
    let rows = '';
    const parts = { prices: '', contributors: '', identifiers: '' };
    for (const { vbid, body, seq } of chunk) {
      const fields = JSON.parse(body) as Fields;
      rows += line([vbid, ...columnsOf(fields), body, seq, now, 1]);
      const found = partsOf(fields);
      for (const part of PART_NAMES) for (const row of found[part]) parts[part] += line([vbid, ...row]);
    }
    appendFileSync(rowFile, rows);
    for (const part of PART_NAMES) appendFileSync(partFile(part), parts[part]);
  }
  const life = createConnectionLife();
  const db = await connect({ connectionString: address }, life);
  await db.query('DROP TABLE IF EXISTS floor, floor_prices, floor_contributors, floor_identifiers');
  const names = await resolveNames(db, 'floor');
  await ensureLayout(db, names);
  await db.end();
  life.end();
  const copies = [
    `\\copy ${names.table} (${COLUMNS}) from '${rowFile}'`,
    ...PART_NAMES.map(
      (part) => `\\copy ${names[part]} (${Object.keys(LAYOUT.parts[part]).join()}) from '${partFile(part)}'`,
    ),
  ];
  const commands = copies.flatMap((copy) => ['-c', copy]);
  return () => {
    execFileSync(`${programs()}psql`, ['-q', '-v', 'ON_ERROR_STOP=1', ...commands, address], { stdio: 'inherit' });
  };
}
