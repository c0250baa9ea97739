import type { Database } from 'better-sqlite3';
import { CatchwordError } from '../errors.ts';

/** Whether the content is still what this process has read and written: see `createSameHistory`. */
export interface SameHistory {
  /** @throws CatchwordError MIRROR_REPLACED */
  check(): void;
  /** Notes the newest change that this process has seen, at the end of its own transaction; `committed` makes it count. */
  ending(): void;
  committed(): void;
}

/**
 * Notices a backup that was restored into the open file by SQLite itself (`.restore`): the file keeps its name, but it is
 * another mirror's, or has fewer changes than this process has seen. Going on would give their numbers to other changes.
 */
export function createSameHistory(sqlite: Database, path: string, incarnation: string): SameHistory {
  const read = sqlite
    .prepare<[], [string | null, number | null]>(
      `SELECT (SELECT incarnation FROM mirror WHERE id = 1),
         (SELECT seq FROM sqlite_sequence WHERE name = 'changes')`,
    )
    .raw();
  let newest = 0;
  let pending = 0;

  return {
    check: () => {
      const [found, seq] = read.get() ?? [null, null];
      if (found === incarnation && (seq ?? 0) >= newest) {
        newest = seq ?? 0;
        return;
      }
      throw new CatchwordError(
        'MIRROR_REPLACED',
        `${path} holds another or an older mirror than when it was opened; nothing more is written`,
        {
          hint: 'Start catchword again to go on with what the file holds now. To restore a mirror, stop catchword first.',
        },
      );
    },
    ending: () => {
      pending = read.get()?.[1] ?? 0;
    },
    committed: () => {
      newest = pending;
    },
  };
}
