import pg from 'pg';
import * as z from 'zod';
import { type Mark, type Opened, SinkError, type SinkEvent } from '../../sink.ts';
import { isSameMark, markAtStart, markSchema } from '../../stored-mark.ts';
import type { OpenStore } from '../connected-sink.ts';
import type { TableNames } from './postgres-layout.ts';
import { type Changes, changesOf } from './postgres-parameters.ts';
import { markParameters, type Statements, WIDTHS } from './postgres-statements.ts';

export interface TableOptions {
  /** As configured. */
  readonly table: string;
  readonly names: TableNames;
  readonly sql: Statements;
  /** Key of the cursor row: the full name of the table, however the settings spell it. */
  readonly key: string;
}

/** The most rows checked per transaction when a fill ends. */
const STEP = 20_000;

const UNIQUE_VIOLATION = '23505';

/** The owner of rows in a table without a cursor row. */
export const UNKNOWN_OWNER: Mark = { incarnation: '', generation: 1, cursor: 0, at: 0, late: 0 };

const cursorSchema = markSchema.extend({
  hasRows: z.boolean(),
  fillEnded: z.boolean(),
  /** Whether the table has rows now. */
  isFilled: z.boolean(),
});
type Cursor = z.output<typeof cursorSchema>;

/** Cancelled, in time or by a lock; no memory, or no space for a temporary file; undone because of another transaction. */
const TOO_MUCH = ['57014', '25P04', '55P03', '53200', '53400', '40001', '40P01'];

/** Whether a statement of fewer rows may succeed. */
function isTooMuch(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return TOO_MUCH.includes(error.code ?? '');
  return error instanceof Error && error.message === 'Query read timeout';
}

/** Why the table does not have what it confirmed; null if a quick check finds nothing. */
function lossOf(table: string, cursor: Cursor | null): string | null {
  if (cursor === null) return `the cursor row of ${table} is missing`;
  if (cursor.hasRows && !cursor.isFilled) return `table ${table} is empty but had rows`;
  return null;
}

/** Opens a sink's table on one connection. @param mark what the mirror believes */
export async function openTable(
  db: pg.Client,
  { table, names, sql, key }: TableOptions,
  mark: Mark,
): Promise<Required<OpenStore>> {
  const found = await readCursor();
  /** The mark in the cursor row, as this process left it. */
  let written: Mark | null = found;
  let hasFillEnded = found?.fillEnded ?? true;
  /** Whether there were no rows and no prices when the fill began, and so far got each product once. */
  let isNew = false;
  /** What the next batch writes, probably. */
  let prepared: { readonly events: readonly SinkEvent[]; readonly changes: Changes } | null = null;

  async function readCursor(): Promise<Cursor | null> {
    const { rows } = await db.query({ text: sql.readCursor, values: [key] });
    return rows.length === 0 ? null : cursorSchema.parse(rows[0]);
  }

  /** Explains why the cursor is not what this process left. */
  async function conflict(): Promise<SinkError> {
    const loss = lossOf(table, await readCursor());
    return new SinkError('unavailable', `PostgreSQL: ${loss ?? `another process moved the cursor of ${table}`}`);
  }

  /** Runs a statement that moves the cursor to `mark`. */
  async function move(
    name: 'deliver' | 'insert' | 'endFill',
    mark: Mark,
    more: readonly unknown[] = [],
  ): Promise<void> {
    const values = [...markParameters(key, mark, written), ...more];
    const { rows } = await db.query<{ moved: number }>({ text: sql[name], values });
    if (rows[0]?.moved !== 1) throw await conflict();
    written = mark;
  }

  async function fillBegins(mark: Mark): Promise<void> {
    const values = [...markParameters(key, mark, written), written?.incarnation ?? null];
    const { rows } = await db.query<{ fillEnded: boolean; isNew: boolean }>({ text: sql.beginFill, values });
    const [begun] = rows;
    if (begun === undefined) throw await conflict();
    written = mark;
    hasFillEnded = begun.fillEnded;
    isNew = begun.isNew;
  }

  /** Removes the rows that the fill did not deliver, fewer at once if it takes too long. @returns the last key */
  async function removeUnseen(
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

  /** Decides how far the table is. */
  async function positionOf(cursor: Cursor | null): Promise<Opened> {
    const start = markAtStart(mark);
    const refill = (reason: string): Opened => (mark.cursor > 0 ? { ...start, refill: reason } : start);
    const loss = lossOf(table, cursor);
    const isFilled = cursor?.isFilled ?? (await db.query(`SELECT FROM ${names.table} LIMIT 1`)).rowCount === 1;
    // An empty table may be filled by this mirror, even if another one filled it before.
    if (!isFilled && (loss !== null || cursor?.incarnation !== mark.incarnation)) {
      await fillBegins(start);
      return refill(loss ?? `table ${table} is empty`);
    }
    if (cursor === null) {
      // This mirror never wrote the rows: the operator must decide.
      return mark.cursor === 0 ? UNKNOWN_OWNER : refill(`the cursor row of ${table} is missing`);
    }
    if (cursor.incarnation !== mark.incarnation) return cursor;
    return cursor.cursor === 0 ? refill(`nothing was delivered to ${table} yet`) : cursor;
  }

  return {
    position: await positionOf(found),
    fillBegins,
    fillEnds: async (kept, mark) => {
      isNew = false;
      // Without a fill, nothing is removed.
      if (hasFillEnded && isSameMark(written, mark)) return;
      await move('endFill', mark, [hasFillEnded ? null : await removeUnseen(kept, written ?? mark)]);
      hasFillEnded = true;
    },
    prepareNext: async (events) => {
      prepared = { events, changes: changesOf(events) };
    },
    deliver: async (events, mark) => {
      const { parameters, hasRemovals } = prepared?.events === events ? prepared.changes : changesOf(events);
      prepared = null;
      if (isNew && !hasRemovals) {
        try {
          return await move('insert', mark, parameters.slice(0, -WIDTHS.gone));
        } catch (error) {
          if (!(error instanceof pg.DatabaseError) || error.code !== UNIQUE_VIOLATION) throw error;
          isNew = false;
        }
      }
      await move('deliver', mark, parameters);
    },
    recheck: async () => {
      const cursor = await readCursor();
      if (lossOf(table, cursor) !== null || !isSameMark(cursor, written)) throw await conflict();
    },
  };
}
