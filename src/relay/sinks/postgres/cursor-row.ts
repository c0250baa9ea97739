import type pg from 'pg';
import * as z from 'zod';
import { type Mark, SinkError } from '../../sink.ts';
import { isSameMark, markSchema } from '../../stored-mark.ts';
import type { TableNames } from './postgres-layout.ts';
import { markParameters, type Statements } from './postgres-statements.ts';

export interface TableOptions {
  /** As configured. */
  readonly table: string;
  readonly names: TableNames;
  readonly sql: Statements;
  /** Key of the cursor row: the full name of the table, however the settings spell it. */
  readonly key: string;
}

const cursorSchema = markSchema.extend({
  hasRows: z.boolean(),
  fillEnded: z.boolean(),
  /** Whether the table has rows now. */
  isFilled: z.boolean(),
});
type Cursor = z.output<typeof cursorSchema>;

/** Why the table does not have what it confirmed; null if a quick check finds nothing. */
export function lossOf(table: string, cursor: Cursor | null): string | null {
  if (cursor === null) return `the cursor row of ${table} is missing`;
  if (cursor.hasRows && !cursor.isFilled) return `table ${table} is empty but had rows`;
  return null;
}

export type CursorRow = Awaited<ReturnType<typeof openCursorRow>>;

/** Reads a table's cursor row, and moves it as long as no other process does. */
export async function openCursorRow(db: pg.Client, { table, sql, key }: TableOptions) {
  async function read(): Promise<Cursor | null> {
    const { rows } = await db.query({ text: sql.readCursor, values: [key] });
    return rows.length === 0 ? null : cursorSchema.parse(rows[0]);
  }

  const found = await read();
  /** The mark in the row, as this process left it. */
  let written: Mark | null = found;

  /** Explains why the cursor is not what this process left. */
  async function conflict(): Promise<SinkError> {
    const loss = lossOf(table, await read());
    return new SinkError('unavailable', `PostgreSQL: ${loss ?? `another process moved the cursor of ${table}`}`);
  }

  return {
    /** The row before any write of this process; null if the table has none. */
    found,
    written: () => written,
    /** Runs a statement that moves the cursor to `mark`. */
    move: async (name: 'deliver' | 'insert' | 'endFill', mark: Mark, more: readonly unknown[]): Promise<void> => {
      const values = [...markParameters(key, mark, written), ...more];
      const { rows } = await db.query<{ moved: number }>({ text: sql[name], values });
      if (rows[0]?.moved !== 1) throw await conflict();
      written = mark;
    },
    /** Begins a fill. @returns whether it has nothing to remove at its end, and whether the tables are empty */
    beginFill: async (mark: Mark): Promise<{ readonly fillEnded: boolean; readonly isNew: boolean }> => {
      const values = [...markParameters(key, mark, written), written?.incarnation ?? null];
      const { rows } = await db.query<{ fillEnded: boolean; isNew: boolean }>({ text: sql.beginFill, values });
      const [begun] = rows;
      if (begun === undefined) throw await conflict();
      written = mark;
      return begun;
    },
    recheck: async (): Promise<void> => {
      const cursor = await read();
      if (lossOf(table, cursor) !== null || !isSameMark(cursor, written)) throw await conflict();
    },
  };
}
