import { closeSync, fstatSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import type BetterSqlite from 'better-sqlite3';
import type { Database } from 'better-sqlite3';
import type { Clock } from './clock.ts';
import { CatchwordError, messageOf, systemCodeOf } from './errors.ts';
import { explainMissing } from './missing-package.ts';

/*
 * Locks a file for one process by a system lock on a second file, `<path>.lock`. The system ends the lock when its process
 * ends, so a stale lock cannot exist. Node.js has no such locks but SQLite has: the lock file is an empty database, and its
 * holder begins a transaction there that writes nothing.
 *
 * The holder deletes the lock file before it releases the lock. So a lock counts only while its file still has its name:
 * then any other lock of that name would be on the same file.
 */

// A journal would be a second file.
const BEGIN = 'PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE';

/** Ends the hint of an error about a file that is locked or cannot be locked. */
export const NO_LOCKS = 'If its file system has no locks, use a file on a local disk.';

interface Held {
  readonly release: () => void;
  readonly hasName: () => boolean;
}

/** Each lock file that this process holds. Opening and closing one again would release it (POSIX). */
const own = new Map<string, Held>();

/** Loads what locks need: the library can be installed without SQLite. @throws CatchwordError PACKAGE_MISSING */
export function loadLocks(): typeof BetterSqlite {
  try {
    return createRequire(import.meta.url)('better-sqlite3') as typeof BetterSqlite;
  } catch (error) {
    throw explainMissing(error);
  }
}

/** Protects databases from garbage collection, which would end their locks or the process (store/statements.ts). */
const kept: Database[] = [];

/** @returns false if another process has begun a transaction */
function begun(database: Database): boolean {
  try {
    database.exec(BEGIN);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'SQLITE_BUSY') return false;
    throw error;
  }
}

/** Whether `fd` is the file at this path. While it is open, no other file can get its inode number. */
function hasName(fd: number, lock: string): boolean {
  const found = statSync(lock, { bigint: true, throwIfNoEntry: false });
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return found?.dev === dev && found.ino === ino;
}

/** Removes the lock file, unless its name now belongs to the lock of another process. */
function tryRemove(fd: number, lock: string): void {
  try {
    if (hasName(fd, lock)) rmSync(lock, { force: true });
  } catch {
    // A leftover lock file is harmless.
  }
}

/** Takes the lock, and retries if its file was removed after opening. @returns null if another process holds it */
function take(Sqlite: typeof BetterSqlite, lock: string, attempts = 1_000): Held | null {
  if (attempts === 0) throw new Error('it is removed repeatedly');
  const fd = openSync(lock, 'a+', 0o600);
  let database: Database | undefined;
  let hasBegun: boolean;
  const close = (): void => {
    database?.close();
    closeSync(fd);
  };
  try {
    if (fstatSync(fd).size > 0) throw new Error('it is not empty, so it is not a lock of this version of catchword');
    database = new Sqlite(lock, { timeout: 0 });
    kept.push(database);
    hasBegun = begun(database);
    if (hasBegun && hasName(fd, lock)) {
      const release = (): void => {
        tryRemove(fd, lock);
        close();
      };
      return { release, hasName: () => hasName(fd, lock) };
    }
  } catch (error) {
    // The file system has no locks. Some report "busy" instead, which looks like a lock that is held.
    if (/^SQLITE_IOERR_(RD)?LOCK$/.test(systemCodeOf(error) ?? '')) tryRemove(fd, lock);
    close();
    throw error;
  }
  close();
  return hasBegun ? take(Sqlite, lock, attempts - 1) : null;
}

/**
 * Locks a file for this process until it is released or the process ends. Use it from one thread of a process only: a
 * second thread would end the lock (POSIX). Other machines see the lock if their file system shares locks.
 * @param path of a file in a writable directory, without symbolic links
 * @returns what releases the file, idempotent; null if this or another process holds it
 * @throws CatchwordError CONFIG_INVALID if `<path>.lock` cannot be written or is not a lock; PACKAGE_MISSING
 */
export function holdFile(path: string): (() => void) | null {
  const lock = `${path}.lock`;
  if (own.has(lock)) return null;
  const Sqlite = loadLocks();
  let held: Held | null;
  try {
    held = take(Sqlite, lock);
  } catch (thrown) {
    // SQLite is loaded by the first database, not by its package.
    const cause = explainMissing(thrown);
    if (cause instanceof CatchwordError) throw cause;
    const hint = `Make its folder writable. An empty lock file may be removed while catchword is not running. ${NO_LOCKS}`;
    throw new CatchwordError('CONFIG_INVALID', `${lock} cannot be locked: ${messageOf(cause)}`, { hint, cause });
  }
  if (held === null) return null;
  own.set(lock, held);
  return () => {
    if (own.get(lock) !== held) return;
    own.delete(lock);
    held.release();
  };
}

/** Whether this process holds the file, and its lock file was not removed meanwhile: then another process may hold it too. */
export function isFileHeld(path: string): boolean {
  return own.get(`${path}.lock`)?.hasName() ?? false;
}

/** The process that holds a file; null if the system does not list locks, or the process is in another container. */
export function holderOf(path: string): number | null {
  const lock = `${path}.lock`;
  if (own.has(lock)) return process.pid;
  try {
    const { dev, ino } = statSync(lock);
    const device = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)];
    const file = `${device.map((number) => number.toString(16).padStart(2, '0')).join(':')}:${ino}`;
    // 1: POSIX  ADVISORY  WRITE 4711 08:01:131077 1073741825 1073741825
    const locks = readFileSync('/proc/locks', 'utf8').matchAll(/WRITE (\d+) (\S+) /g);
    const holder = [...locks].find(([, , locked]) => locked === file)?.[1];
    return Number(holder ?? 0) || null;
  } catch {
    return null;
  }
}

const POLL_MS = 500;

/** Locks a file as `holdFile` does, and waits while another holder has it. @throws also the signal's reason */
export async function waitForFile(path: string, clock: Clock, signal: AbortSignal): Promise<() => void> {
  for (;;) {
    signal.throwIfAborted();
    const release = holdFile(path);
    if (release !== null) return release;
    await clock.sleep(POLL_MS, signal);
  }
}
