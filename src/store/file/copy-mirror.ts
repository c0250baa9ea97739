import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, rmSync, statSync } from 'node:fs';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import BetterSqlite, { type Database } from 'better-sqlite3';
import { LAST_SEQ } from '../rows/changes.ts';
import { createQueries, type Queries } from '../schema/queries.ts';
import { openSqlite } from '../schema/statements.ts';
import { unusable } from './mirror-path.ts';
import { damaged, explain, openAsItIs } from './open-mirror-file.ts';

/*
 * A copy of a mirror as it is at one moment, while other processes write it. Two ways of SQLite were compared:
 *
 * - `VACUUM INTO` reads one snapshot in one statement. The copy has no free pages and needs no -wal, and a row that
 *   cannot be read is an error.
 * - The backup API copies pages in steps. It begins again whenever another process writes between two steps, unless a
 *   transaction is kept open around it. Its copy opens in WAL mode, so it cannot be read from a read-only directory. And
 *   better-sqlite3 makes an object for it that cannot be kept from garbage collection (see statements.ts).
 *
 * With either, the WAL of the mirror cannot be reused until the copy is complete.
 */

export interface Copied {
  readonly bytes: number;
  /** Living products. */
  readonly products: number;
  readonly lastSeq: number;
  /** The source's time up to which it is complete, milliseconds since 1970; null if it never was. */
  readonly watermark: number | null;
}

function checkCopy(from: string, to: string): Copied {
  const sqlite = openAsItIs(to);
  try {
    const { row, values } = createQueries(sqlite);
    const [found = 'no answer'] = values<[], string>('PRAGMA integrity_check(1)')();
    if (found !== 'ok') throw damaged(from, `its copy is not sound: ${found}`);
    const counts = row<[], Omit<Copied, 'bytes'>>(
      `SELECT living AS products, ${LAST_SEQ} AS lastSeq, watermark FROM mirror WHERE id = 1`,
    )();
    if (counts === undefined) throw unusable(from, 'holds no mirror yet', 'Fill it with: npx catchword sync.');
    return { ...counts, bytes: statSync(to).size };
  } finally {
    sqlite.close();
  }
}

/** Flushes what is in a file. Only for a file that no connection has open: closing it ends their locks. */
function syncFile(path: string): void {
  const fd = openSync(path, 'r+');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Removes a copy that was not completed. */
export function removeCopy(to: string): void {
  for (const end of ['', '-journal', '-wal', '-shm']) rmSync(`${to}${end}`, { force: true });
}

/** The error for a file that cannot be written. @param cause an error of SQLite or of the system */
export function backupFailed(path: string, cause: unknown): CatchwordError {
  const hint = 'Free disk space, or use another disk. The mirror was not changed.';
  return new CatchwordError('BACKUP_FAILED', `${path} cannot be written: ${messageOf(cause)}`, { hint, cause });
}

/** Does `work` with the mirror that is copied, open for reading. */
function copying(from: string, to: string, work: (source: Database) => void): void {
  const source = openAsItIs(from);
  try {
    work(source);
  } catch (error) {
    const isOfSource = error instanceof BetterSqlite.SqliteError && /^SQLITE_(CORRUPT|NOTADB|BUSY)/.test(error.code);
    throw isOfSource ? explain(from, true, error) : backupFailed(to, error);
  } finally {
    source.close();
  }
}

/** Makes another mirror of a copy, without holders of leases. */
export function beginOther({ write }: Queries, incarnation = randomUUID()): string {
  write('UPDATE mirror SET incarnation = ?')(incarnation);
  write('UPDATE lease SET holder = NULL, expires_at = NULL')();
  return incarnation;
}

/**
 * Copies a mirror into another one for work that ends with this process: without a flush, a check, and unfinished runs.
 * Blocks this thread: about a second per gigabyte. @param to must not exist
 * @throws CatchwordError MIRROR_BUSY, MIRROR_UNUSABLE, BACKUP_FAILED
 */
export function copyForScratch(from: string, to: string): void {
  copying(from, to, (source) => {
    source.exec('PRAGMA synchronous = OFF');
    source.prepare('VACUUM INTO ?').run(to);
  });
  const copy = openSqlite(to);
  try {
    const queries = createQueries(copy);
    beginOther(queries);
    // With a watermark, a run would expect that deltas tell each difference between the mirror and the list. A pause is kept
    // by the mirror that was copied.
    queries.write('UPDATE mirror SET watermark = NULL, blocked_since = NULL, blocked_until = NULL')();
    queries.write("UPDATE runs SET state = 'cancelled', finished_at = started_at WHERE finished_at IS NULL")();
  } finally {
    copy.close();
  }
}

/**
 * Copies a mirror of this or an earlier version into a file of its own, which only this user can read, flushes the copy,
 * and checks it. Blocks this thread: about 10 seconds per gigabyte. @param to is replaced
 * @throws CatchwordError MIRROR_UNUSABLE, MIRROR_BUSY, NOT_FOUND; BACKUP_FAILED if the copy cannot be written
 */
export function copyMirror(from: string, to: string): Copied {
  copying(from, to, (source) => {
    removeCopy(to);
    // VACUUM accepts an empty file, and keeps its mode.
    closeSync(openSync(to, 'wx', 0o600));
    source.prepare('VACUUM INTO ?').run(to);
    syncFile(to);
  });
  return checkCopy(from, to);
}
