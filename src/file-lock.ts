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

/** For a hint about a file that is said to be held, or that cannot be. */
export const NO_LOCKS = 'If its file system has no locks: name a file on a local disk.';

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

/** Never another process's that has its name now: that one would go on unseen. */
function tryRemove(fd: number, lock: string): void {
  try {
    if (hasName(fd, lock)) rmSync(lock, { force: true });
  } catch {
    // One that stays is in nobody's way.
  }
}

function close(fd: number, database: Database | null): void {
  database?.close();
  closeSync(fd);
}

/** Then nobody else holds it either. Some file systems say busy instead, which nothing tells from a lock that is held. */
function hasNoLocks(error: unknown): boolean {
  return error instanceof BetterSqlite.SqliteError && /^SQLITE_IOERR_(RD)?LOCK$/.test(error.code);
}

/** @returns gives the lock back; false where another process holds it; null where it was removed since it was opened */
function take(lock: string): (() => void) | false | null {
  const fd = openSync(lock, 'a+', 0o600);
  let database: Database | null = null;
  try {
    if (fstatSync(fd).size > 0) throw new Error('it is not empty, so catchword did not make it');
    database = new BetterSqlite(lock, { timeout: 0 });
    kept.push(database);
    const hasBegun = begun(database);
    if (hasBegun && hasName(fd, lock)) {
      return () => {
        tryRemove(fd, lock);
        close(fd, database);
      };
    }
    close(fd, database);
    return hasBegun ? null : false;
  } catch (error) {
    if (hasNoLocks(error)) tryRemove(fd, lock);
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

/**
 * Holds a file for this process, until it is given back or the process ends, however it does. To be called by one thread
 * of a process: what another does with the lock would end it (POSIX). Processes of other machines are seen where their
 * file system says so.
 * @param path of a file in a directory that can be written to, without links: the same file has one path
 * @returns gives the file back, idempotent; null where it is held already, by this process or another
 * @throws CatchwordError CONFIG_INVALID where `<path>.lock` cannot be written, or is something else
 */
export function holdFile(path: string): (() => void) | null {
  const lock = `${path}.lock`;
  if (own.has(lock)) return null;
  let giveBack: (() => void) | false;
  try {
    giveBack = takeNamed(lock);
  } catch (cause) {
    throw new CatchwordError('CONFIG_INVALID', `${lock} cannot be locked: ${messageOf(cause)}`, {
      hint: `Its folder must be writable, and the lock not there, or empty and writable: an empty one may be removed while no catchword runs. ${NO_LOCKS}`,
      cause,
    });
  }
  if (giveBack === false) return null;
  own.add(lock);
  return () => {
    if (giveBack === false) return;
    own.delete(lock);
    giveBack();
    giveBack = false;
  };
}
