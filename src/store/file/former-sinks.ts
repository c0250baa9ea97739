import BetterSqlite, { type Database } from 'better-sqlite3';
import { eraSql, LAST_SEQ } from '../rows/changes.ts';
import type { SinkRow } from '../rows/sink-rows.ts';
import { createQueries, type Queries } from '../schema/queries.ts';

/*
 * What may the store of a sink with a filter have, when its mirror is replaced by a backup? As of the sink's cursor in the
 * backup, what its view showed; and every product that the former mirror changed after that cursor. Of all others, a fill
 * need not send that they are gone. The former mirror proves this only if the backup is an earlier state of it, and if the
 * sink's delivery has only moved forward since.
 */

/** Keys that the relay reads with each batch, which takes 2 ms. If more products changed, a fill sends every removal. */
const MOST_KEYS = 20_000;

const HISTORY = 'SELECT incarnation FROM mirror WHERE id = 1';
const LAST_ERA = `SELECT ${eraSql(':seq')}`;

/** Keys of products that a former state of the sink may have got, behind the position of the backup; null if not known. */
export type LaterKeys = (sink: SinkRow) => readonly string[] | null;

/**
 * Compares a backup with the mirror that it replaces.
 * @param former the locked mirror; null if there is none
 */
export function laterKeys(backup: Queries, former: Database | null): LaterKeys {
  if (former === null) return () => null;
  const { value, values, number } = createQueries(former);
  const last = backup.number(`SELECT ${LAST_SEQ}`)();

  function isLater(): boolean {
    const eraOf = ({ value }: Pick<Queries, 'value'>) => value<[{ seq: number }], string>(LAST_ERA)({ seq: last });
    const isSame = value<[], string>(HISTORY)() === backup.value<[], string>(HISTORY)();
    return isSame && number(`SELECT ${LAST_SEQ}`)() >= last && eraOf({ value }) === eraOf(backup);
  }

  return ({ id, identity, beganGeneration, cursor }) => {
    try {
      const hasMovedForward = value<[number, string, number, number], number>(
        'SELECT 1 FROM sinks WHERE id = ? AND identity = ? AND began_generation = ? AND cursor >= ?',
      )(id, identity, beganGeneration, cursor);
      if (!isLater() || hasMovedForward === null) return null;
      const keys = values<[number, number], string>('SELECT vbid FROM products WHERE changed_seq > ? LIMIT ?');
      const found = keys(cursor, MOST_KEYS + 1);
      return found.length > MOST_KEYS ? null : found;
    } catch (error) {
      // It may be damaged, or of another version.
      if (error instanceof BetterSqlite.SqliteError) return null;
      throw error;
    }
  };
}
