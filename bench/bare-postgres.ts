import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { columnsOf, type Fields, pricesOf } from '../src/catalog/field-values.ts';
import {
  ensureLayout,
  PRICE_COLUMNS,
  PRODUCT_COLUMNS,
  resolveNames,
} from '../src/relay/sinks/postgres/postgres-layout.ts';
import { programs } from '../test/support/postgres.ts';

interface Product {
  readonly vbid: string;
  readonly body: string;
  readonly seq: number;
}

const COLUMNS = ['vbid', ...Object.keys(PRODUCT_COLUMNS), 'body', 'seq', 'changed_at', 'fill'].join();
const PRICES = ['vbid', ...Object.keys(PRICE_COLUMNS)].join();

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
  const files = { rows: join(directory, 'rows'), prices: join(directory, 'prices') };
  for (const file of Object.values(files)) rmSync(file, { force: true });
  const now = new Date().toISOString();
  for (const chunk of chunks) {
    let rows = '';
    let prices = '';
    for (const { vbid, body, seq } of chunk) {
      const fields = JSON.parse(body) as Fields;
      rows += line([vbid, ...columnsOf(fields), body, seq, now, 1]);
      for (const price of pricesOf(fields)) prices += line([vbid, ...price]);
    }
    appendFileSync(files.rows, rows);
    appendFileSync(files.prices, prices);
  }
  const client = new pg.Client({ connectionString: address });
  await client.connect();
  await client.query('DROP TABLE IF EXISTS floor, floor_prices');
  const names = await resolveNames(client, 'floor');
  await ensureLayout(client, names);
  await client.end();
  const copies = [
    `\\copy ${names.table} (${COLUMNS}) from '${files.rows}'`,
    `\\copy ${names.prices} (${PRICES}) from '${files.prices}'`,
  ];
  const commands = copies.flatMap((copy) => ['-c', copy]);
  return () => {
    execFileSync(`${programs()}psql`, ['-q', '-v', 'ON_ERROR_STOP=1', ...commands, address], { stdio: 'inherit' });
  };
}
