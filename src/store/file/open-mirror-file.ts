import { constants, readFileSync, readlinkSync, realpathSync, statfsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CatchwordError, messageOf, systemCodeOf } from '@catchword/base/errors';
import { explainMissing } from '@catchword/base/missing-package';
import { PACKAGE } from '@catchword/base/version';
import BetterSqlite, { type Database } from 'better-sqlite3';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import { drizzle, migrate } from '../schema/drizzle.ts';
import { ensureProductViews } from '../schema/product-views.ts';
import { openSqlite, preparedOnce } from '../schema/statements.ts';
import { createFileGuard, type FileGuard, pause } from './file-guard.ts';
import { type CheckContent, nameOf } from './inode-check.ts';
import {
  busy,
  COMPANIONS,
  diskFailed,
  lookAt,
  mayUse,
  type PlaceOptions,
  preparePlace,
  refusalOf,
  unusable,
} from './mirror-path.ts';

/** "ctwd": distinguishes a mirror from another program's database. */
const APPLICATION_ID = 0x63747764;
const NOT_CHANGED = 'Use another file; this one was not changed.';
const MIGRATIONS = fileURLToPath(new URL('drizzle', PACKAGE));

export interface OpenOptions extends PlaceOptions {
  /** Milliseconds to wait for another process's write; default 10,000. */
  readonly busyTimeoutMs?: number;
  /** Checks a file that another program changed, such as `checkApart`; default: this thread does, and waits. */
  readonly checkContent?: CheckContent | undefined;
}

export interface MirrorFile {
  readonly path: string;
  readonly sqlite: Database;
  readonly orm: BetterSQLite3Database;
  readonly fileGuard: FileGuard;
  readonly close: () => void;
}

/** Follows links as SQLite does, also to a file that does not exist yet. */
export function withoutLinks(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // The file does not exist, or a later check reports why it cannot be used.
  }
  try {
    return resolve(dirname(path), readlinkSync(path));
  } catch {
    return path;
  }
}

/** The file's newest migration; 0 for an empty file, null for another program's. */
export function schemaVersion(sqlite: Database): number | null {
  const names = sqlite.prepare('SELECT name FROM sqlite_schema').pluck().all();
  if (names.length === 0) return 0;
  const applicationId = sqlite.prepare('PRAGMA application_id').pluck().get();
  if (applicationId !== APPLICATION_ID || !names.includes('__drizzle_migrations')) return null;
  const newest = sqlite.prepare('SELECT max(created_at) FROM __drizzle_migrations').pluck().get();
  return typeof newest === 'number' ? newest : 0;
}

/** The first and the newest migration of this program. Of the journal alone: drizzle would also read and hash each. */
function readMigrations() {
  const journal = JSON.parse(readFileSync(join(MIGRATIONS, 'meta/_journal.json'), 'utf8')) as {
    readonly entries: readonly { readonly when: number }[];
  };
  const times = journal.entries.map(({ when }) => when);
  return { first: Math.min(...times), newest: Math.max(...times) };
}

/** Only reads, so that a file that cannot be used stays unchanged. @returns the schema's version, and the newest one */
function checkOwnSchema(path: string, sqlite: Database) {
  const { first, newest } = readMigrations();
  const version = schemaVersion(sqlite);
  if (version === null) throw unusable(path, "is another program's database", NOT_CHANGED);
  if (version > newest) {
    throw unusable(path, 'was written by a newer catchword', 'Upgrade catchword, or use another file.');
  }
  if (version === 0 || version >= first) return { version, newest };
  const hint = 'Move it away, and load everything: npx catchword sync. Or read it with the version that wrote it.';
  throw unusable(path, 'was written by a catchword before its first release, 0.1.0', hint);
}

/** The error of SQLite that drizzle has wrapped, or else the same error. */
function sqliteErrorOf(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof BetterSqlite.SqliteError ? error.cause : error;
}

/** The code of an SQLite error, such as `SQLITE_BUSY`. */
const sqliteCodeOf = (error: unknown): string => systemCodeOf(sqliteErrorOf(error)) ?? '';

/** If several processes find an old file, one migrates it, and the others find it migrated when they retry. */
function migrateToNewest(path: string, sqlite: Database, orm: BetterSQLite3Database, newest: number) {
  sqlite.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  try {
    migrate(orm, { migrationsFolder: MIGRATIONS });
  } catch (error) {
    if (sqlite.inTransaction) sqlite.exec('ROLLBACK');
    if (schemaVersion(sqlite) === newest) return;
    // SQLite has rolled back by itself, which it does if the disk fails; drizzle's own attempt hides the first error.
    const isRolledBack = /cannot rollback/.test(messageOf(sqliteErrorOf(error)));
    throw isRolledBack ? diskFailed(path, 'cannot be created or upgraded (a write failed)', error) : error;
  }
}

function configure(path: string, sqlite: Database): BetterSQLite3Database {
  const { version, newest } = checkOwnSchema(path, sqlite);
  const orm = drizzle(preparedOnce(sqlite));
  if (sqlite.readonly) {
    if (version === newest) return orm;
    const hint = 'Run npx catchword status as the owner of the file to upgrade it.';
    throw unusable(path, 'was written by an older catchword, and is open for reading only', hint);
  }
  // Takes effect only while the file is empty. Smaller pages waste more space: products of 2 kB take 11 to 17% more than with
  // pages of 16 KB, of 4 kB 35 to 50%. Larger ones write more: a night of changes, most in a page of their own, half as much
  // again with 16 KB.
  sqlite.exec('PRAGMA page_size = 8192');
  sqlite.exec('PRAGMA journal_mode = WAL');
  sqlite.exec('PRAGMA synchronous = FULL');
  sqlite.exec('PRAGMA foreign_keys = ON');
  // catchword does its own checkpoints: see file-guard.ts.
  sqlite.exec('PRAGMA wal_autocheckpoint = 0');
  sqlite.exec('PRAGMA journal_size_limit = 67108864');
  // 32 MiB: holds the inner pages of every index at several million products, and keeps memory flat. Set last: SQLite
  // resets it when the page size changes.
  sqlite.exec('PRAGMA cache_size = -32768');
  if (version !== newest) migrateToNewest(path, sqlite, orm, newest);
  ensureProductViews(sqlite);
  return orm;
}

/** Whether other users may read the file, and so need its -wal and -shm. */
function isReadByOthers(path: string): boolean {
  return ((lookAt(path)?.mode ?? 0n) & 0o044n) !== 0n;
}

/** Closes a connection that may write. If other users may read the file, its -wal and -shm stay. */
export function closeForReaders(path: string, sqlite: Database): void {
  if (!isReadByOthers(path)) {
    sqlite.close();
    return;
  }
  // A read-only connection that closes after this one leaves the -wal and -shm in place.
  const reader = openSqlite(path, { readonly: true });
  try {
    reader.prepare('SELECT count(*) FROM sqlite_schema').get();
    sqlite.close();
  } finally {
    reader.close();
  }
}

/** @throws CatchwordError MIRROR_REPLACED; the file stays open then, because closing it would write to the new one */
function closeFile(path: string, sqlite: Database, fileGuard: FileGuard): void {
  if (!sqlite.open) return;
  if (sqlite.readonly) {
    sqlite.close();
    return;
  }
  fileGuard.checkFully();
  if (isReadByOthers(path)) {
    // Does not wait for other processes: the last one to close does this.
    sqlite.exec('PRAGMA busy_timeout = 0');
    if (fileGuard.hasWritten()) fileGuard.checkpoint('TRUNCATE');
  }
  closeForReaders(path, sqlite);
}

/** The error for a file that is a mirror, but not sound. @param what SQLite's own words */
export function damaged(path: string, what: string, cause?: unknown): CatchwordError {
  const hint =
    'Restore a sound backup: npx catchword restore FILE. Or, if it is the mirror, move it away, and load everything: npx catchword sync.';
  return unusable(path, `is damaged (${what})`, hint, cause);
}

/** Opens a mirror, also an older one, to read it as it is. @throws CatchwordError MIRROR_UNUSABLE, NOT_FOUND, MIRROR_BUSY */
export function openAsItIs(path: string): Database {
  preparePlace(path, { mustExist: true, readOnly: true });
  let opening: Database | undefined;
  try {
    const sqlite = openSqlite(path, { readonly: true, timeout: 10_000 });
    opening = sqlite;
    if (checkOwnSchema(path, sqlite).version > 0) return sqlite;
    throw unusable(path, 'holds no mirror yet', 'Fill it with: npx catchword sync.');
  } catch (error) {
    opening?.close();
    throw explain(path, true, error);
  }
}

/** Turns an error of SQLite into one that says what to do. */
export function explain(path: string, isReadonly: boolean, thrown: unknown): CatchwordError {
  const error = explainMissing(thrown);
  if (error instanceof CatchwordError) return error;
  const code = sqliteCodeOf(error);
  if (code === 'SQLITE_NOTADB') return unusable(path, 'is not an SQLite database', NOT_CHANGED, error);
  if (code.startsWith('SQLITE_CORRUPT')) return damaged(path, messageOf(sqliteErrorOf(error)), error);
  if (isReadonly && COMPANIONS.some((end) => lookAt(`${path}${end}`) === undefined)) {
    const refusal = refusalOf(dirname(path), constants.W_OK);
    const why = refusal === null ? '' : `, and cannot be created: ${refusal.reason}`;
    const kept = 'they stay if its owner sets CATCHWORD_DB_MODE (0640, for example)';
    const hint = `They are there while catchword runs, and ${kept}. ${refusal?.hint ?? 'Run this again'}, or read a copy.`;
    return unusable(path, `cannot be read now: its -wal and -shm are missing${why}`, hint, error);
  }
  if (code.startsWith('SQLITE_BUSY')) return busy(error);
  const what = `cannot be opened (${messageOf(sqliteErrorOf(error))})`;
  // The user's rights were checked, so a file that cannot be opened is the disk's fault; SQLite then tries to read it only.
  const isAllowed = !isReadonly && [path, dirname(path)].every((one) => mayUse(one, constants.W_OK));
  if (/^SQLITE_(FULL|IOERR)/.test(code) || (/^SQLITE_(CANTOPEN|READONLY)/.test(code) && isAllowed)) {
    return diskFailed(path, what, error);
  }
  const hint =
    'Check the file with npx catchword doctor, and its directory: owner, rights. Or set CATCHWORD_DB to another file.';
  return unusable(path, what, hint, error);
}

/**
 * Opens the mirror, creates it if it does not exist, and migrates its schema.
 * @throws CatchwordError MIRROR_UNUSABLE, NOT_FOUND (with `mustExist`); MIRROR_BUSY, MIRROR_REPLACED,
 *   MIRROR_WRITE_FAILED, after which a retry may help. The file is not changed then
 */
export function openMirrorFile(
  file: string,
  { busyTimeoutMs = 10_000, checkContent, ...place }: OpenOptions = {},
): MirrorFile {
  const path = resolve(file);
  const real = withoutLinks(path);
  const isReadonly = preparePlace(real, place);
  const giveUpAt = performance.now() + busyTimeoutMs;
  for (;;) {
    let opening: Database | undefined;
    try {
      const opened = nameOf(path);
      const sqlite = openSqlite(real, { timeout: busyTimeoutMs, readonly: isReadonly });
      opening = sqlite;
      const orm = configure(path, sqlite);
      if (nameOf(path) !== opened) {
        throw new CatchwordError('MIRROR_REPLACED', `${path} was replaced while it was opened`, { hint: 'Retry.' });
      }
      const fileGuard = createFileGuard(sqlite, path, real, opened, checkContent);
      return { path, sqlite, orm, fileGuard, close: () => closeFile(real, sqlite, fileGuard) };
    } catch (error) {
      opening?.close();
      if (!sqliteCodeOf(error).startsWith('SQLITE_BUSY') || performance.now() > giveUpAt) {
        throw explain(real, isReadonly, error);
      }
      // SQLite itself does not wait for other processes when it changes the journal mode or migrates.
      pause();
    }
  }
}

export type Disk = ReturnType<typeof diskOf>;

/** The disk that holds a file, in bytes: what this user may use of it, and all. */
export function diskOf(path: string) {
  const { bavail, blocks, bsize } = statfsSync(dirname(withoutLinks(path)));
  return { free: bavail * bsize, size: blocks * bsize };
}
