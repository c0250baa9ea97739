import type { Database } from 'better-sqlite3';
import { CatchwordError } from '../errors.ts';

export type SameHistory = ReturnType<typeof createSameHistory>;

/**
 * Detects a backup that SQLite itself restored into the open file (`.restore`): the file keeps its name, but it holds
 * another mirror, or fewer changes than this process has seen. Writing on would assign the same numbers to other
 * changes.
 */
export function createSameHistory(sqlite: Database, path: string, incarnation: string) {
  const read = sqlite
    .prepare<[], [string | null, number | null]>(
      `SELECT (SELECT incarnation FROM mirror WHERE id = 1),
         (SELECT seq FROM sqlite_sequence WHERE name = 'changes')`,
    )
    .raw();
  let newest = 0;
  let pending = 0;

  return {
    /** @throws CatchwordError MIRROR_REPLACED */
    check: (): void => {
      const [found, seq] = read.get() ?? [null, null];
      if (found === incarnation && (seq ?? 0) >= newest) {
        newest = seq ?? 0;
        return;
      }
      const what = 'holds another or an older mirror than when it was opened; nothing more is written';
      throw new CatchwordError('MIRROR_REPLACED', `${path} ${what}`, {
        hint: 'Restart catchword to continue with the current file. To restore a mirror, stop catchword first.',
      });
    },
    /** Notes the newest change at the end of this process's own transaction; it counts after `committed`. */
    ending: (): void => {
      pending = read.get()?.[1] ?? 0;
    },
    committed: (): void => {
      newest = pending;
    },
  };
}
