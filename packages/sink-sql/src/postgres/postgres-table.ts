import { messageOf } from '@catchword/base/errors';
import type { Mark } from '@catchword/sink-kit/sink';
import pg from 'pg';
import type { How, SqlTables } from '../sql/sink-table.ts';
import type { TableOptions } from '../sql/table-layout.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { parametersOf } from './postgres-parameters.ts';
import { markParameters, statementsOf, WIDTHS } from './postgres-statements.ts';

const UNIQUE_VIOLATION = '23505';

/** Cancelled, in time or by a lock; no memory, or no space for a temporary file; undone because of another transaction. */
const TOO_MUCH = ['57014', '25P04', '55P03', '53200', '53400', '40001', '40P01'];

/** Whether a statement of fewer rows may succeed. */
export function isTooMuch(error: unknown): boolean {
  // The driver's limit has no code, and PgBouncer gives all its errors the same one.
  if (/^query (read )?timeout$/i.test(messageOf(error))) return true;
  return error instanceof pg.DatabaseError && TOO_MUCH.includes(error.code ?? '');
}

/** The tables of a sink in PostgreSQL: each call is one statement. */
export function postgresTables(db: PostgresConnection, { table, names, removals }: TableOptions): SqlTables<Buffer[]> {
  const { key } = names;
  const sql = statementsOf(names, removals);

  /** Runs a statement that moves the cursor to `mark`. */
  async function move(name: How, mark: Mark, written: Mark | null, more: unknown[]) {
    const values = [...markParameters(key, mark, written), ...more];
    const [found] = await db.query<{ moved: number }>(sql[name], values);
    return found?.moved === 1;
  }

  return {
    table,
    names,
    db,
    claim: async (mark, written) => {
      const [claimed] = await db.query<{ isNew: boolean }>(sql.claim, markParameters(key, mark, written));
      return claimed;
    },
    changesOf: parametersOf,
    deliver: async (parameters, mark, written, how) =>
      await move(how, mark, written, how === 'insert' ? parameters.slice(0, -WIDTHS.gone) : parameters),
    isTooMuch,
    isDuplicate: (error) => error instanceof pg.DatabaseError && error.code === UNIQUE_VIOLATION,
  };
}
