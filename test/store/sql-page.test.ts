import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { query } from '@catchword/testing/sqlite';
import { sqliteToolsAvailable } from '@catchword/testing/sqlite-tools';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { blocksOf } from '../docs/blocks.ts';
import { openedStore } from './opened-store.ts';

const execute = promisify(execFile);
const PAGE = readFileSync(new URL('../../docs/sql.md', import.meta.url), 'utf8');

function columnsOf(db: string, view: string): string[] {
  return query<{ name: string }>(db, 'SELECT name FROM pragma_table_info(?)', view).map(({ name }) => name);
}

it('docs/sql.md lists the columns of the view catalog, in their order', () => {
  const columns = columnsOf(openedStore().path, 'catalog');
  const [, table = ''] = /this table: catalog -->\n\n(.*?)\n\n/s.exec(PAGE) ?? [];
  const listed = table
    .split('\n')
    .flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name));
  expect(listed).toEqual(columns);
});

describe.skipIf(!sqliteToolsAvailable)('with sqlite3', () => {
  it('docs/sql.md has examples, like the README, that wait while another program locks the mirror for a moment', {
    tags: ['slow'],
  }, async () => {
    const cwd = temporaryDirectory();
    mkdirSync(join(cwd, 'data'));
    const db = join(cwd, 'data/catalog.db');
    openStore(db).close();
    // Like a program that opens the mirror first, or closes it last.
    const holder = new Database(db);
    holder.pragma('locking_mode = EXCLUSIVE');
    holder.exec('BEGIN IMMEDIATE; COMMIT');
    const lines = [...blocksOf('docs/sql.md', 'sh'), ...blocksOf('README.md', 'sh')].filter((code) =>
      code.startsWith('sqlite3 '),
    );
    expect(lines.length).toBeGreaterThan(3);
    const wait = "'.timeout 5000'";
    expect(lines.filter((code) => !code.includes(wait))).toEqual([]);
    // The starts below may take longer than that.
    const patient = lines.map((code) => code.replaceAll(wait, "'.timeout 120000'"));
    const ended = Promise.allSettled(patient.map((code) => execute('sh', ['-ec', code], { cwd })));
    for (let tried = 0; tried < 10; tried++) {
      await expect(execute('sqlite3', ['-readonly', db, 'SELECT 1 FROM catalog'])).rejects.toThrow(
        'database is locked',
      );
    }
    holder.close();
    for (const result of await ended) expect(result).toMatchObject({ status: 'fulfilled', value: { stderr: '' } });
  });
});

it('docs/sql.md names every column of the views of products and changes', () => {
  const { path } = openedStore();
  for (const view of ['catalog', 'prices', 'contributors', 'identifiers', 'price_changes', 'change_log']) {
    for (const name of columnsOf(path, view)) expect(PAGE).toContain(`\`${name}\``);
  }
});
