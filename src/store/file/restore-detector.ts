import { CatchwordError } from '@catchword/base/errors';
import BetterSqlite from 'better-sqlite3';
import { eraSql, LAST_SEQ } from '../rows/changes.ts';
import type { Queries } from '../schema/queries.ts';

export type RestoreDetector = ReturnType<typeof createRestoreDetector>;

interface Seen {
  readonly seq: number;
  readonly era: string | null;
}

/** Whether a statement that fitted the schema when the file was opened no longer does. */
export function isOtherSchema(error: unknown): boolean {
  return error instanceof BetterSqlite.SqliteError && /^no such (table|column)/.test(error.message);
}

/**
 * Detects a backup that SQLite itself restored into the open file (`.restore`): it keeps its name, but holds another mirror,
 * or not the newest change that this process has seen. Writing on would be based on changes that are lost.
 */
export function createRestoreDetector({ row }: Queries, path: string, incarnation: string) {
  const read = row<[seen: number], Seen & { incarnation: string | null; eraSeen: string | null }>(
    `SELECT (SELECT incarnation FROM mirror WHERE id = 1) AS incarnation, ${eraSql('?')} AS eraSeen,
       ${LAST_SEQ} AS seq, ${eraSql(LAST_SEQ)} AS era`,
  );
  let seen: Seen = { seq: 0, era: null };
  let pending = seen;

  function replaced(): CatchwordError {
    const what = 'holds another or an older mirror than when it was opened; nothing more is written';
    const hint = 'Restart catchword to continue with the current file. To restore a mirror, stop catchword first.';
    return new CatchwordError('MIRROR_REPLACED', `${path} ${what}`, { hint });
  }

  return {
    replaced,
    /** @throws CatchwordError MIRROR_REPLACED */
    check: (): void => {
      try {
        const found = read(seen.seq);
        const isSame = found?.incarnation === incarnation && found.seq >= seen.seq && found.eraSeen === seen.era;
        if (!isSame) throw replaced();
        seen = found;
      } catch (error) {
        // A backup of an earlier version, or another program's database, does not have all tables.
        throw isOtherSchema(error) ? replaced() : error;
      }
    },
    /** Notes the newest change at the end of this process's own transaction; it counts after `committed`. */
    ending: (): void => {
      pending = read(seen.seq) ?? seen;
    },
    /** @returns whether the transaction recorded changes */
    committed: (): boolean => {
      const hasGrown = pending.seq > seen.seq;
      seen = pending;
      return hasGrown;
    },
  };
}
