import { CatchwordError } from '../errors.ts';
import type { Queries } from './queries.ts';

export type SameHistory = ReturnType<typeof createSameHistory>;

/**
 * Detects a backup that SQLite itself restored into the open file (`.restore`): the file keeps its name, but holds
 * another mirror, or fewer changes. Writing on would assign the same numbers to other changes.
 */
export function createSameHistory({ row }: Queries, path: string, incarnation: string) {
  const read = row<[], { incarnation: string | null; seq: number }>(
    `SELECT (SELECT incarnation FROM mirror WHERE id = 1) AS incarnation,
       coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0) AS seq`,
  );
  let newest = 0;
  let pending = 0;

  return {
    /** @throws CatchwordError MIRROR_REPLACED */
    check: (): void => {
      const { incarnation: found, seq = 0 } = read() ?? {};
      if (found === incarnation && seq >= newest) {
        newest = seq;
        return;
      }
      const what = 'holds another or an older mirror than when it was opened; nothing more is written';
      const hint = 'Restart catchword to continue with the current file. To restore a mirror, stop catchword first.';
      throw new CatchwordError('MIRROR_REPLACED', `${path} ${what}`, { hint });
    },
    /** Notes the newest change at the end of this process's own transaction; it counts after `committed`. */
    ending: (): void => {
      pending = read()?.seq ?? 0;
    },
    committed: (): void => {
      newest = pending;
    },
  };
}
