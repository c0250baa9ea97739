import { closeSync, fstatSync, openSync, rmSync, statSync } from 'node:fs';
import BetterSqlite, { type Database } from 'better-sqlite3';
import { CatchwordError, messageOf } from './errors.ts';

/*
 * A file is held by a lock of the system on another beside it, `<path>.lock`, which ends with its process, however that
 * does: there is no stale one to be told from a live one and taken over. Node has no such locks, SQLite has: the file is an
 * empty database, in which a transaction is begun and nothing is written.
 *
 * Whoever holds it removes it before giving it back. So one that was locked counts only while it still has its name: then
 * nobody else can hold one of this name, since that would be the same file.
 */

/** Without a journal, which would be a second file. */
const BEGIN = 'PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE';

/** The locks of this process. To open one a second time and close it would end it (POSIX). */
const own = new Set<string>();

/** To collect one would end its lock; and on newer versions of Node it would abort the process (store/statements.ts). */
const kept: Database[] = [];

/** @returns whether nobody else had begun one */
function begun(database: Database): boolean {
  try {
    database.exec(BEGIN);
    return true;
  } catch (error) {
    if (error instanceof BetterSqlite.SqliteError && error.code === 'SQLITE_BUSY') return false;
    throw error;
  }
}

/** While `fd` is open no other file can get its number. */
function hasName(fd: number, lock: string): boolean {
  const found = statSync(lock, { bigint: true, throwIfNoEntry: false });
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return found?.dev === dev && found.ino === ino;
}

function close(fd: number, database: Database | null): void {
  database?.close();
  closeSync(fd);
}

/** @returns what ends the lock; false where another process holds it; null where it was removed since it was opened */
function take(lock: string): (() => void) | false | null {
  const fd = openSync(lock, 'a+', 0o600);
  let database: Database | null = null;
  try {
    if (fstatSync(fd).size > 0) throw new Error('it is not empty, so catchword did not make it');
    database = new BetterSqlite(lock, { timeout: 0 });
    kept.push(database);
    const hasBegun = begun(database);
    if (hasBegun && hasName(fd, lock)) return () => close(fd, database);
    close(fd, database);
    return hasBegun ? null : false;
  } catch (error) {
    close(fd, database);
    throw error;
  }
}

/** @returns as `take`, but looks again, as often as may be needed, where it was removed */
function takeNamed(lock: string): (() => void) | false {
  for (let tries = 1_000; tries > 0; tries--) {
    const end = take(lock);
    if (end !== null) return end;
  }
  throw new Error('it is removed again and again');
}

function tryRemove(lock: string): void {
  try {
    rmSync(lock, { force: true });
  } catch {
    // One that stays is in nobody's way.
  }
}

/**
 * Holds a file for this process, until it is given back or the process ends, however it does. Processes of other machines
 * are seen where their file system says so.
 * @param path of a file in a directory that can be written to, without links: the same file has one path
 * @returns gives the file back, idempotent; null where it is held already, by this process or another
 * @throws CatchwordError CONFIG_INVALID where `<path>.lock` cannot be written, or is something else
 */
export function holdFile(path: string): (() => void) | null {
  const lock = `${path}.lock`;
  if (own.has(lock)) return null;
  let end: (() => void) | false;
  try {
    end = takeNamed(lock);
  } catch (cause) {
    throw new CatchwordError('CONFIG_INVALID', `${lock} cannot be locked: ${messageOf(cause)}`, {
      hint: 'Its folder must be writable, and the lock not there, or empty and writable; or name another file instead.',
      cause,
    });
  }
  if (end === false) return null;
  own.add(lock);
  return () => {
    if (end === false) return;
    tryRemove(lock);
    own.delete(lock);
    end();
    end = false;
  };
}
