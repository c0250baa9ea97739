import { closeSync, existsSync, mkdirSync, openSync, readSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import BetterSqlite, { type Database } from 'better-sqlite3';
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3';
import { migrate } from 'drizzle-orm/better-sqlite3/migrator';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { CatchwordError, messageOf } from '../errors.ts';
import { keepStatements } from './statements.ts';

/** Older ones can corrupt a database in WAL mode while the WAL is reset. */
const MIN_SQLITE = '3.51.3';
/** "ctwd": tells a mirror from another program's database. */
const APPLICATION_ID = 0x63747764;
const BUSY_PAUSE_MS = 20;
const MIGRATIONS = fileURLToPath(new URL('../../drizzle', import.meta.url));

export interface MirrorFile {
  readonly path: string;
  readonly sqlite: Database;
  readonly orm: BetterSQLite3Database;
}

export interface OpenOptions {
  /** Fail with NOT_FOUND instead of creating the file. */
  readonly mustExist?: boolean;
  /** Milliseconds to wait for another process's write; default 10,000. */
  readonly busyTimeoutMs?: number;
}

function unusable(path: string, what: string, hint: string, cause?: unknown): CatchwordError {
  return new CatchwordError('MIRROR_UNUSABLE', `${path} ${what}`, { hint, cause });
}

/** One level at a time: in a place such as /proc, Node's own recursive form tries for ever. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

/** Creates the file, readable by its owner only, or checks that what is there is an SQLite database. */
function prepareFile(path: string, mustExist: boolean): void {
  if (!existsSync(path)) {
    if (mustExist) {
      throw new CatchwordError('NOT_FOUND', `there is no mirror at ${path}`, {
        hint: 'Make one with: npx catchword sync. Or set CATCHWORD_DB to where it is.',
      });
    }
    try {
      makeDirectory(dirname(path));
      closeSync(openSync(path, 'a', 0o600));
    } catch (cause) {
      throw unusable(
        path,
        `cannot be created (${messageOf(cause)})`,
        'Set CATCHWORD_DB to a place this user may write.',
        cause,
      );
    }
    return;
  }
  if (!statSync(path).isFile()) throw unusable(path, 'is not a file', 'Set CATCHWORD_DB to a file.');
  const head = Buffer.alloc(16);
  let read: number;
  try {
    const file = openSync(path, 'r+');
    read = readSync(file, head, 0, 16, 0);
    closeSync(file);
  } catch (cause) {
    throw unusable(
      path,
      `cannot be written (${messageOf(cause)})`,
      'Give this user the right to write it, or set CATCHWORD_DB.',
      cause,
    );
  }
  if (read > 0 && head.toString('latin1') !== 'SQLite format 3\0') {
    throw unusable(path, 'is not an SQLite database', 'Set CATCHWORD_DB to another file; this one was left as it is.');
  }
}

function atLeast(version: string, minimum: string): boolean {
  const parts = version.split('.').map(Number);
  for (const [index, least] of minimum.split('.').map(Number).entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}

/** The newest migration that the file has, as drizzle notes it; 0 for an empty file, null for a foreign one. */
function schemaVersion(sqlite: Database): number | null {
  const tables = sqlite.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
  if (tables.length === 0) return 0;
  if (!tables.includes('__drizzle_migrations')) return null;
  const newest = sqlite.prepare('SELECT max(created_at) FROM __drizzle_migrations').pluck().get();
  return typeof newest === 'number' ? newest : 0;
}

/** Reads only: a file that is not ours is left as it is. */
function checkOwnSchema(path: string, sqlite: Database, newest: number): number {
  const version = schemaVersion(sqlite);
  const applicationId = sqlite.prepare('PRAGMA application_id').pluck().get();
  const empty = sqlite.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() === 0;
  if (version === null || (!empty && applicationId !== APPLICATION_ID)) {
    throw unusable(
      path,
      "is another program's database",
      'Set CATCHWORD_DB to another file; this one was left as it is.',
    );
  }
  if (version > newest) {
    throw unusable(path, 'was written by a newer catchword', 'Upgrade catchword, or set CATCHWORD_DB to another file.');
  }
  return version;
}

/** Of several processes that find an old file one migrates it; the others find it migrated when they try again. */
function migrateToNewest(sqlite: Database, orm: BetterSQLite3Database, newest: number): void {
  sqlite.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  try {
    migrate(orm, { migrationsFolder: MIGRATIONS });
  } catch (error) {
    if (sqlite.inTransaction) sqlite.exec('ROLLBACK');
    if (schemaVersion(sqlite) !== newest) throw error;
  }
}

function isBusy(error: unknown): boolean {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return inner instanceof BetterSqlite.SqliteError && inner.code.startsWith('SQLITE_BUSY');
}

function configure(path: string, sqlite: Database): BetterSQLite3Database {
  const forOrm = keepStatements(sqlite);
  const version = String(sqlite.prepare('SELECT sqlite_version()').pluck().get());
  if (!atLeast(version, MIN_SQLITE)) {
    throw unusable(path, `needs SQLite ${MIN_SQLITE}, this is ${version}`, 'Reinstall with: npm ci.');
  }
  const newest = Math.max(...readMigrationFiles({ migrationsFolder: MIGRATIONS }).map((file) => file.folderMillis));
  const schema = checkOwnSchema(path, sqlite, newest);
  // Effective only while the file is empty. 2-KB bodies would waste half of a 4-KB page.
  sqlite.exec('PRAGMA page_size = 16384');
  sqlite.exec('PRAGMA journal_mode = WAL');
  sqlite.exec('PRAGMA synchronous = FULL');
  sqlite.exec('PRAGMA foreign_keys = ON');
  // 64 MiB of WAL before it is moved into the file: a page that changes often is moved once.
  sqlite.exec('PRAGMA wal_autocheckpoint = 4096');
  sqlite.exec('PRAGMA journal_size_limit = 67108864');
  // 32 MiB: holds the inner pages of every index at several million products, and no more (memory stays flat).
  sqlite.exec('PRAGMA cache_size = -32768');
  const orm = drizzle(forOrm);
  if (schema !== newest) migrateToNewest(sqlite, orm, newest);
  return orm;
}

/**
 * Opens the mirror, creates it where there is none, and brings its schema up to date.
 * @throws CatchwordError MIRROR_UNUSABLE, NOT_FOUND (with `mustExist`); the file is left as it was
 */
export function openMirrorFile(file: string, options: OpenOptions = {}): MirrorFile {
  const path = resolve(file);
  prepareFile(path, options.mustExist ?? false);
  const busyTimeoutMs = options.busyTimeoutMs ?? 10_000;
  const giveUpAt = performance.now() + busyTimeoutMs;
  for (;;) {
    let sqlite: Database | undefined;
    try {
      sqlite = new BetterSqlite(path, { timeout: busyTimeoutMs });
      return { path, sqlite, orm: configure(path, sqlite) };
    } catch (error) {
      sqlite?.close();
      if (error instanceof CatchwordError) throw error;
      if (!isBusy(error) || performance.now() > giveUpAt) {
        const hint = 'Check the file and its directory: owner, rights, free space, another program that holds it.';
        throw unusable(path, `cannot be opened (${messageOf(error)})`, hint, error);
      }
      // Changing the journal mode and migrating do not wait for another process by themselves.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_PAUSE_MS);
    }
  }
}
