import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox-server.ts';
import { openStore } from '../../src/store/store.ts';
import { load } from '../support/load.ts';
import { settingsFor, temporaryDirectory } from '../support/mirror.ts';
import { query } from '../support/sqlite.ts';
import { sqliteToolsAvailable } from '../support/sqlite-tools.ts';
import { openedStore } from './opened-store.ts';

const execute = promisify(execFile);
const PAGE = readFileSync(new URL('../../docs/sql.md', import.meta.url), 'utf8');
const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

function blocks(language: string, page = PAGE): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, code = '']) => code);
}

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

describe.skipIf(!sqliteToolsAvailable)('with sqlite3 and Python', () => {
  it('docs/sql.md has examples that work while the mirror is open', async () => {
    const sandbox = await startSandbox({ items: 30, details: true, withdrawnForMs: 0 });
    onTestFinished(() => sandbox.stop());
    const cwd = temporaryDirectory();
    mkdirSync(join(cwd, 'data'));
    const db = join(cwd, 'data/catalog.db');
    await load(settingsFor(sandbox.url, db), 'full');
    sandbox.catalog.mutate({ remove: 2, update: 3, seed: 1 });
    await load(settingsFor(sandbox.url, db), 'full');
    openedStore(db);
    const shell = blocks('sh');
    expect(shell).toHaveLength(4);
    const [first, , prices, changed] = await Promise.all(
      shell.map(async (code) => (await execute('sh', ['-ec', code], { cwd })).stdout),
    );
    expect(first?.trim().split('\n')).toHaveLength(5);
    expect(prices).toMatch(/^vbid\|title\|contributors\|sku\|usd\n(\d{13}\|.+; .+\|\d{13}\|[\d.]+\n){5}$/);
    expect(changed).toMatch(/^(\d{4}-\S+Z\|\d{13}\|\w+\|[A-Z]{3}\|[\d.]+\|[\d.]+\n)+$/);
    expect(query(join(cwd, 'copy.db'), 'SELECT vbid FROM catalog')).toHaveLength(28);
    const [python = ''] = blocks('python');
    const { stdout } = await execute('/usr/bin/python3', ['-I', '-c', python], { cwd });
    expect(stdout).toMatch(/^(\d{13} was .+\n){2}28 products, read up to 35\n$/);
  });

  it('docs/sql.md has examples, like the README, that wait while another program locks the mirror for a moment', async () => {
    const cwd = temporaryDirectory();
    mkdirSync(join(cwd, 'data'));
    const db = join(cwd, 'data/catalog.db');
    openStore(db).close();
    // Like a program that opens the mirror first, or closes it last.
    const holder = new Database(db);
    holder.pragma('locking_mode = EXCLUSIVE');
    holder.exec('BEGIN IMMEDIATE; COMMIT');
    const lines = [...blocks('sh'), ...blocks('sh', README)].filter((code) => code.startsWith('sqlite3 '));
    expect(lines).toHaveLength(5);
    const ended = Promise.allSettled(lines.map((code) => execute('sh', ['-ec', code], { cwd })));
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
