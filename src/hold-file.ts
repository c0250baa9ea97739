import BetterSqlite, { type Database } from 'better-sqlite3';
import { CatchwordError, messageOf } from './errors.ts';

/*
 * A file is held by a lock of the system on another beside it, `<path>.lock`, which goes with its process, however that
 * ends: there is no stale one to be told from a live one and taken over. Node has no such locks, SQLite has: the file is an
 * empty database, in which a transaction is begun and never committed. It stays when it is given back, since a process could
 * lock one that another had just removed. Nothing else may open it in the process that holds it: to close it would end the
 * lock (POSIX).
 */

/** Without the second file of a journal. It writes, since on a file that can only be read no transaction is exclusive. */
const BEGIN = 'PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE; PRAGMA user_version = 1';

/** To collect one would give its lock back; and on newer versions of Node it would abort the process (store/statements.ts). */
const kept: Database[] = [];

/** @returns false where another had begun one; the database is closed then, as after an error */
function begun(database: Database): boolean {
  try {
    database.exec(BEGIN);
    return true;
  } catch (error) {
    database.close();
    if (error instanceof BetterSqlite.SqliteError && error.code === 'SQLITE_BUSY') return false;
    throw error;
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
  try {
    const database = new BetterSqlite(lock, { timeout: 0 });
    kept.push(database);
    return begun(database) ? () => void database.close() : null;
  } catch (cause) {
    throw new CatchwordError('CONFIG_INVALID', `${lock} cannot be locked: ${messageOf(cause)}`, {
      hint: 'Its folder must be writable, and the file itself not there, or empty and writable; or name another file instead.',
      cause,
    });
  }
}
