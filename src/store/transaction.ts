import BetterSqlite, { type Database } from 'better-sqlite3';
import { CatchwordError, hasCode } from '../errors.ts';
import { busy } from './place.ts';

/** Runs reads that belong together: one lock in place of one for each, and one state of the file. */
export type ReadTransaction = <T>(work: () => T) => T;

export function createReadTransaction(sqlite: Database): ReadTransaction {
  const run = sqlite.transaction((work: () => unknown) => work());
  return <T>(work: () => T): T => run.deferred(work) as T;
}

export type WriteTransaction = <T>(work: () => T) => T;

export interface WriteGuard {
  /** This user may only read the file. */
  readonly isReadonly: boolean;
  /** Throws if the open file is not, or no longer, the mirror. */
  before(): void;
  /** Called when the transaction has begun. Throws as `before` does; false: `before` is to look again. */
  begun(): boolean;
  /** Called at the end of the transaction, and after it was committed. */
  ending(): void;
  committed(): void;
}

/**
 * Runs `work` in one immediate transaction: all of it is durable when this returns, or nothing of it happened.
 *
 * After SQLITE_FULL or an I/O error SQLite has rolled back by itself, and a further statement would run alone, outside
 * any transaction. So the first failed write ends the writer: later calls fail at once, until the file is opened again.
 *
 * @throws CatchwordError MIRROR_BUSY when another process writes for longer than the busy timeout;
 *   MIRROR_WRITE_FAILED when the file cannot be written; MIRROR_REPLACED when it is no longer the file at its path;
 *   MIRROR_UNUSABLE when this user may only read it; or what `work` throws, rolled back
 */
export function createWriteTransaction(sqlite: Database, guard: WriteGuard): WriteTransaction {
  let broken: CatchwordError | undefined;
  const run = sqlite.transaction((work: () => unknown) => {
    if (!guard.begun()) return null;
    const result = work();
    guard.ending();
    return { result };
  });
  const runWithin = sqlite.transaction((work: () => unknown) => work());
  return <T>(work: () => T): T => {
    if (broken !== undefined) throw broken;
    if (sqlite.inTransaction) return runWithin(work) as T;
    if (guard.isReadonly) {
      throw new CatchwordError('MIRROR_UNUSABLE', 'this user may not write the mirror', {
        hint: 'Run this as the owner of the file.',
      });
    }
    try {
      for (;;) {
        guard.before();
        const done = run.immediate(work);
        if (done === null) continue;
        guard.committed();
        return done.result as T;
      }
    } catch (error) {
      if (error instanceof CatchwordError && hasCode(error, 'MIRROR_REPLACED')) broken = error;
      if (!(error instanceof BetterSqlite.SqliteError)) throw error;
      if (error.code.startsWith('SQLITE_BUSY')) throw busy(error);
      // A mistake in what was to be written: SQLite has undone the statement, and the transaction with it.
      if (error.code.startsWith('SQLITE_CONSTRAINT')) throw error;
      broken = new CatchwordError(
        'MIRROR_WRITE_FAILED',
        `writing the mirror failed: ${error.message} (${error.code})`,
        {
          hint: 'Nothing half-written remains. Make room on the disk or mend it, then start again; the run goes on.',
          cause: error,
        },
      );
      throw broken;
    }
  };
}
