import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execute } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { openMirrorFile } from '../../src/store/file/open-mirror-file.ts';
import { openStore } from '../../src/store/store.ts';

const STORE = fileURLToPath(new URL('../../dist/store/store.js', import.meta.url));

it('opening a mirror creates a file for its owner alone, and sets up durability on every connection', () => {
  const path = join(temporaryDirectory(), 'deep', 'er', 'catalog.db');
  const first = openMirrorFile(path);
  const second = openMirrorFile(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
  for (const { sqlite } of [first, second]) {
    const pragma = (name: string) => sqlite.prepare(`PRAGMA ${name}`).pluck().get();
    expect(pragma('journal_mode')).toBe('wal');
    expect(pragma('page_size')).toBe(8192);
    expect(pragma('synchronous')).toBe(2);
    expect(pragma('foreign_keys')).toBe(1);
    sqlite.close();
  }
});

it('opening a mirror lets eight processes that start at once share a fresh file', { tags: ['slow'] }, async () => {
  const path = join(temporaryDirectory(), 'catalog.db');
  const code = `import { openStore } from ${JSON.stringify(STORE)};
      const store = openStore(${JSON.stringify(path)}); console.log(store.incarnation); store.close();`;
  const ends = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let out = '';
      child.stdout.on('data', (text: Buffer) => {
        out += text.toString();
      });
      await once(child, 'close');
      return out;
    }),
  );
  expect(ends[0]).toMatch(/^[0-9a-f-]{36}\n$/);
  expect(new Set(ends).size).toBe(1);
});

it('opening a mirror reports a file that another process keeps locked with an exit code that process managers retry', () => {
  const path = join(temporaryDirectory(), 'catalog.db');
  const other = new Database(path);
  other.exec('BEGIN EXCLUSIVE');
  expect(() => openStore(path, { busyTimeoutMs: 50 })).toThrow(
    expect.objectContaining({ code: 'MIRROR_BUSY', exitCode: 1 }) as Error,
  );
  other.close();
  openStore(path).close();
});

it('opening a mirror does not change a file that is not a mirror', () => {
  const directory = temporaryDirectory();
  const text = join(directory, 'text.db');
  writeFileSync(text, 'not a database, and longer than a header of one');
  const foreign = join(directory, 'foreign.db');
  execute(foreign, 'CREATE TABLE theirs (a); CREATE TABLE __drizzle_migrations (id, hash, created_at)');
  for (const path of [text, foreign]) {
    const before = readFileSync(path);
    expect(() => openMirrorFile(path)).toThrow(expect.objectContaining({ code: 'MIRROR_UNUSABLE', exitCode: 2 }));
    expect(readFileSync(path).equals(before)).toBe(true);
  }
  mkdirSync(join(directory, 'folder.db'));
  expect(() => openMirrorFile(join(directory, 'folder.db'))).toThrow(/is not a file/);
  expect(() => openMirrorFile(join(directory, 'absent.db'), { mustExist: true })).toThrow(/no mirror at/);
  expect(() => openMirrorFile('/proc/catchword/catalog.db')).toThrow(/cannot be created/);
});

it('opening a mirror answers lookups in the views from an index', () => {
  const { sqlite } = openMirrorFile(join(temporaryDirectory(), 'catalog.db'));
  const lookups = {
    catalog: ['vbid', 'print_isbn', 'e_isbn', 'changed_at', 'changed_seq'],
    prices: ['vbid'],
    change_log: ['vbid'],
  };
  for (const [view, columns] of Object.entries(lookups)) {
    for (const column of columns) {
      const plan = sqlite.prepare(`EXPLAIN QUERY PLAN SELECT * FROM ${view} WHERE ${column} = '2026'`).all();
      expect(JSON.stringify(plan)).toContain('USING INDEX');
      expect(JSON.stringify(plan)).not.toMatch(/SCAN (products|changes)/);
    }
  }
  sqlite.close();
});
