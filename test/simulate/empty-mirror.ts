import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { FAST_DIRECTORY } from '@catchword/testing/fast-directory';
import Database from 'better-sqlite3';
import { openStore } from '../../src/store/store.ts';

let template: string | undefined;

/** Copies an empty mirror into the directory, because creating one takes longer than most histories. */
export function emptyMirror(directory: string): string {
  if (template === undefined) {
    const home = mkdtempSync(join(FAST_DIRECTORY, 'catchword-template-'));
    process.on('exit', () => rmSync(home, { recursive: true, force: true }));
    template = join(home, 'catalog.db');
    openStore(template).close();
    // Small products in pages of 8 KB would mostly write, check and copy empty space.
    const sqlite = new Database(template);
    sqlite.exec('PRAGMA journal_mode = DELETE; PRAGMA page_size = 2048; VACUUM; PRAGMA journal_mode = WAL');
    sqlite.close();
  }
  const file = join(directory, 'catalog.db');
  copyFileSync(template, file);
  return file;
}
