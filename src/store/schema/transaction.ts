import { CatchwordError, hasCode } from '@catchword/base/errors';
import BetterSqlite, { type Database } from 'better-sqlite3';
import type { FileGuard } from '../file/file-guard.ts';
import { busy } from '../file/mirror-path.ts';
import { isOtherSchema, type RestoreDetector } from '../file/restore-detector.ts';

/** Runs its argument in one transaction. */
export type Transact = <T>(work: () => T) => T;

/** Runs reads on one snapshot of the file, under one lock. */
export function createReadTransaction(sqlite: Database): Transact {
  const run = sqlite.transaction((work: () => unknown) => work());
  return <T>(work: () => T): T => run.deferred(work) as T;
}

/**
 * Runs `work` in one immediate transaction: when this returns, all is durable; when it throws, nothing was written.
 *
 * After SQLITE_FULL or an I/O error SQLite has rolled back by itself, and a further statement would run outside any
 * transaction. So after the first failed write every later call fails at once, until the file is opened again.
 * @param onChanges called after a transaction that has recorded changes; must not throw
 * @throws CatchwordError MIRROR_BUSY if another process writes for longer than the busy timeout;
 *   MIRROR_WRITE_FAILED if the file cannot be written; MIRROR_REPLACED if it is not the file at its path any more;
 *   MIRROR_UNUSABLE if this user may only read it; or what `work` throws, after the rollback
 */
export function createWriteTransaction(
  sqlite: Database,
  fileGuard: FileGuard,
  restoreDetector: RestoreDetector,
  onChanges: () => void,
): Transact {
  let broken: CatchwordError | undefined;
  const run = sqlite.transaction((work: () => unknown) => {
    if (!fileGuard.begun()) return null;
    restoreDetector.check();
    const result = work();
    restoreDetector.ending();
    return { result };
  });
  const runWithin = sqlite.transaction((work: () => unknown) => work());
  return <T>(work: () => T): T => {
    if (broken !== undefined) throw broken;
    if (sqlite.inTransaction) return runWithin(work) as T;
    if (sqlite.readonly) {
      const hint =
        'Run this as the owner of the file; if its file system is mounted for reading only, mount it for writing.';
      throw new CatchwordError('MIRROR_UNUSABLE', 'the mirror is open for reading only', { hint });
    }
    try {
      for (;;) {
        fileGuard.check();
        const done = run.immediate(work);
        if (done === null) continue;
        const hasChanges = restoreDetector.committed();
        fileGuard.written();
        if (hasChanges) onChanges();
        return done.result as T;
      }
    } catch (thrown) {
      const error = isOtherSchema(thrown) ? restoreDetector.replaced() : thrown;
      if (hasCode(error, 'MIRROR_REPLACED')) broken = error;
      if (!(error instanceof BetterSqlite.SqliteError)) throw error;
      if (error.code.startsWith('SQLITE_BUSY')) throw busy(error);
      // A bug in the written values: SQLite has undone the statement, and the transaction is rolled back.
      if (error.code.startsWith('SQLITE_CONSTRAINT')) throw error;
      // The file may have been written over in the middle of the transaction.
      if (/^SQLITE_(CORRUPT|NOTADB)/.test(error.code)) fileGuard.checkFully();
      const what = `writing the mirror failed: ${error.message} (${error.code})`;
      const hint = 'The transaction was rolled back. Free disk space or repair the disk and restart; the run resumes.';
      broken = new CatchwordError('MIRROR_WRITE_FAILED', what, { hint, cause: error });
      throw broken;
    }
  };
}
