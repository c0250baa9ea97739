import pg from 'pg';
import * as z from 'zod';
import { messageOf } from '../../../base/errors.ts';
import { type Mark, type Opened, SinkError, type SinkEvent } from '../../sink.ts';
import { isSameMark, markAtStart, markSchema } from '../../stored-mark.ts';
import type { OpenStore } from '../connected-sink.ts';
import type { TableNames } from './postgres-layout.ts';
import { type Changes, changesOf } from './postgres-parameters.ts';
import { markParameters, type Statements, WIDTHS } from './postgres-statements.ts';

/** The most rows checked per transaction when a fill ends. */
const STEP = 20_000;

const UNIQUE_VIOLATION = '23505';

/** The owner of rows in a table without a cursor row. */
export const UNKNOWN_OWNER: Mark = { incarnation: '', generation: 1, cursor: 0, at: 0, late: 0 };

/** Cancelled, in time or by a lock; no memory, or no space for a temporary file; undone because of another transaction. */
const TOO_MUCH = ['57014', '25P04', '55P03', '53200', '53400', '40001', '40P01'];

/** Whether a statement of fewer rows may succeed. */
export function isTooMuch(error: unknown): boolean {
  // The driver's limit has no code, and PgBouncer gives all its errors the same one.
  if (/^query (read )?timeout$/i.test(messageOf(error))) return true;
  return error instanceof pg.DatabaseError && TOO_MUCH.includes(error.code ?? '');
}

interface TableOptions {
  /** As configured. */
  readonly table: string;
  readonly names: TableNames;
  readonly sql: Statements;
}

const cursorSchema = markSchema.extend({
  hasRows: z.boolean(),
  fillEnded: z.boolean(),
  /** Whether the table has rows now. */
  isFilled: z.boolean(),
});
type Cursor = z.output<typeof cursorSchema>;

/** Why the table does not have what it confirmed; null if a quick check finds nothing. */
function lossOf(table: string, cursor: Cursor | null): string | null {
  if (cursor === null) return `the cursor row of ${table} is missing`;
  if (cursor.hasRows && !cursor.isFilled) return `table ${table} is empty but had rows`;
  return null;
}

export type CursorRow = Awaited<ReturnType<typeof openCursorRow>>;

/** Reads a table's cursor row, and moves it as long as no other process does. */
export async function openCursorRow(db: pg.Client, { table, names: { key }, sql }: TableOptions) {
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
    conflict,
    /** The row before any write of this process; null if the table has none. */
    found,
    written: () => written,
    /** Runs a statement that moves the cursor to `mark`. */
    move: async (
      name: 'deliver' | 'insert' | 'repair' | 'endFill',
      mark: Mark,
      more: readonly unknown[],
    ): Promise<void> => {
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

/** Removes the rows that the fill did not deliver, fewer at once if it takes too long. @returns the last key */
async function removeUnseen(
  db: pg.Client,
  { names: { key }, sql }: TableOptions,
  kept: readonly string[],
  { incarnation, generation, cursor, late }: Mark,
): Promise<string> {
  let last = '';
  for (let size = STEP; ; ) {
    const values = [key, incarnation, generation, cursor, late, last, size, kept];
    try {
      const { rows } = await db.query<{ last: string | null }>({ text: sql.endFillStep, values });
      const reached = rows[0]?.last ?? null;
      if (reached === null) return last;
      last = reached;
    } catch (error) {
      if (!isTooMuch(error) || size === 1) throw error;
      size = Math.floor(size / 2);
    }
  }
}

/** Decides how far the table is. @param mark what the mirror believes */
async function positionOf(
  db: pg.Client,
  { table, names }: TableOptions,
  { found }: CursorRow,
  mark: Mark,
): Promise<{ readonly position: Opened; readonly mustFill: boolean }> {
  const start = markAtStart(mark);
  const refill = (reason: string): Opened => (mark.cursor > 0 ? { ...start, refill: reason } : start);
  const loss = lossOf(table, found);
  const isFilled = found?.isFilled ?? (await db.query(`SELECT FROM ${names.table} LIMIT 1`)).rowCount === 1;
  // An empty table may be filled by this mirror, even if another one filled it before.
  if (!isFilled && (loss !== null || found?.incarnation !== mark.incarnation)) {
    return { position: refill(loss ?? `table ${table} is empty`), mustFill: true };
  }
  const isNeverFed = found?.incarnation === mark.incarnation && found.cursor === 0;
  if (isNeverFed) return { position: refill(`nothing was delivered to ${table} yet`), mustFill: false };
  if (found !== null) return { position: found, mustFill: false };
  // If this mirror never wrote the rows, the operator must decide.
  return { position: mark.cursor === 0 ? UNKNOWN_OWNER : refill(lossOf(table, null) ?? ''), mustFill: false };
}

/** Opens a sink's table on one connection. @param mark what the mirror believes */
export async function openTable(
  db: pg.Client,
  options: TableOptions,
  mark: Mark,
): Promise<Required<Omit<OpenStore, 'verifier'>> & { readonly cursor: CursorRow }> {
  const cursor = await openCursorRow(db, options);
  /** `isNew`: whether the tables were empty when the fill began, and so far got each product once. */
  let fill = { fillEnded: cursor.found?.fillEnded ?? true, isNew: false };
  /** Changes that the next batch probably makes. */
  let prepared: { readonly events: readonly SinkEvent[]; readonly changes: Changes } | null = null;

  async function fillBegins(mark: Mark): Promise<void> {
    fill = await cursor.beginFill(mark);
  }

  const { position, mustFill } = await positionOf(db, options, cursor, mark);
  if (mustFill) await fillBegins(markAtStart(mark));
  return {
    position,
    fillBegins,
    fillEnds: async (kept, mark) => {
      fill = { ...fill, isNew: false };
      const written = cursor.written();
      // Without a fill, nothing is removed.
      if (fill.fillEnded && isSameMark(written, mark)) return;
      const last = fill.fillEnded ? null : await removeUnseen(db, options, kept, written ?? mark);
      await cursor.move('endFill', mark, [last]);
      fill = { fillEnded: true, isNew: false };
    },
    prepareNext: async (events) => {
      prepared = { events, changes: changesOf(events) };
    },
    deliver: async (events, mark) => {
      const { parameters, hasRemovals } = prepared?.events === events ? prepared.changes : changesOf(events);
      prepared = null;
      if (fill.isNew && !hasRemovals) {
        try {
          return await cursor.move('insert', mark, parameters.slice(0, -WIDTHS.gone));
        } catch (error) {
          if (!(error instanceof pg.DatabaseError) || error.code !== UNIQUE_VIOLATION) throw error;
          fill = { ...fill, isNew: false };
        }
      }
      await cursor.move('deliver', mark, parameters);
    },
    recheck: cursor.recheck,
    cursor,
  };
}
