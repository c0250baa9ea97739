/**
 * Measures exports of products of 2 kB in each format, as whole processes: time, peak memory, size of the file.
 * `npx tsx bench/export.ts [products]`, default 1,000,000; needs 6 kB of disk for each. A mirror in CATCHWORD_DB is used
 * instead of a new one.
 */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { size, table } from '../src/report/text.ts';
import { CLI, environment, inDirectory, measure, measureSync, print, serveSandbox } from './process.ts';

const ITEMS = process.argv[2] ?? '1000000';
const FILES = [['a.ndjson'], ['a.ndjson.gz'], ['a.csv'], ['b.csv', '--fields', 'title,variants'], ['a.parquet']];

await inDirectory(async (directory) => {
  const db = process.env.CATCHWORD_DB ?? join(directory, 'catalog.db');
  if (process.env.CATCHWORD_DB === undefined) {
    const sandbox = await serveSandbox('--items', ITEMS);
    await measureSync(environment(sandbox.url, db), '--full');
    await sandbox.stop();
  }
  const rows: (readonly string[])[] = [];
  for (const [name = '', ...options] of FILES) {
    const path = join(directory, name);
    const { wallMs, peakBytes } = await measure([CLI, 'export', path, ...options, '--json'], { CATCHWORD_DB: db });
    const took = `${(wallMs / 1e3).toFixed(1)} s`;
    rows.push([[name, ...options].join(' '), took, `${(peakBytes / 1e6).toFixed(0)} MB`, size(statSync(path).size)]);
  }
  print(table(['export', 'time', 'peak memory', 'file'], rows));
});
