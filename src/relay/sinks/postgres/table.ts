import type pg from 'pg';
import { z } from 'zod';
import { type Mark, type Opened, SinkError, type SinkEvent } from '../../sink.ts';
import { isSameMark, markAtStart, markSchema } from '../../stored-mark.ts';
import { LAYOUT, type TableNames } from './layout.ts';
import { eventParameters, markParameters, type Statements } from './statements.ts';

export interface TableOptions {
  /** As configured. */
  readonly table: string;
  readonly names: TableNames;
  readonly sql: Statements;
  /** Key of the cursor row: the full name of the table, however the settings spell it. */
  readonly key: string;
}

/** Rows checked per transaction when a fill ends. */
const STEP = 20_000;

/** The owner of rows in a table without a cursor row. */
export const UNKNOWN_OWNER: Mark = { incarnation: '', generation: 1, cursor: 0, at: 0, late: 0 };

const cursorSchema = markSchema.extend({
  hasRows: z.boolean(),
  fillEnded: z.boolean(),
  layout: z.number(),
  /** Whether the table has rows now. */
  isFilled: z.boolean(),
});
type Cursor = z.output<typeof cursorSchema>;

function markOf({ incarnation, generation, cursor, at, late }: Cursor): Mark {
  return { incarnation, generation, cursor, at, late };
}

/** @returns `schema.name` of the table; null if it does not exist */
export async function fullName(db: pg.Client, names: TableNames): Promise<string | null> {
  const { rows } = await db.query<{ found: string }>({
    text: `SELECT nspname || '.' || relname AS found FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
           WHERE pg_class.oid = to_regclass($1)`,
    values: [names.table],
  });
  return rows[0]?.found ?? null;
}

export type PostgresTable = ReturnType<typeof createPostgresTable>;

/** A sink's table on one connection. */
export function createPostgresTable(db: pg.Client, { table, names, sql, key }: TableOptions) {
  /** The mark in the cursor row, as this process left it. */
  let written: Mark | null = null;
  let hasFillEnded = true;

  async function readCursor(): Promise<Cursor | null> {
    const { rows } = await db.query({ text: sql.readCursor, values: [key] });
    return rows.length === 0 ? null : cursorSchema.parse(rows[0]);
  }

  async function hasRows(): Promise<boolean> {
    const { rows } = await db.query<{ found: boolean }>(`SELECT EXISTS (SELECT FROM ${names.table}) AS found`);
    return rows[0]?.found ?? false;
  }

  /** Why the table does not have what it confirmed; null if a quick check finds nothing. */
  function lossOf(cursor: Cursor | null): string | null {
    if (cursor === null) return `the cursor row of ${table} is missing`;
    if (cursor.hasRows && !cursor.isFilled) return `table ${table} is empty but had rows`;
    return null;
  }

  /** Explains why the cursor is not what this process left. */
  async function conflict(): Promise<SinkError> {
    const loss = lossOf(await readCursor());
    return new SinkError('unavailable', `PostgreSQL: ${loss ?? `another process moved the cursor of ${table}`}`);
  }

  /** Runs a statement that moves the cursor to `mark`. */
  async function move(
    text: { readonly name?: string; readonly text: string },
    mark: Mark,
    more: readonly unknown[] = [],
  ) {
    const values = [...markParameters(key, mark, written), ...more];
    const { rows } = await db.query<{ moved: number }>({ ...text, values });
    if (rows[0]?.moved !== 1) throw await conflict();
    written = mark;
  }

  async function beginFill(mark: Mark): Promise<void> {
    const values = markParameters(key, mark, written);
    const { rows } = await db.query<{ fillEnded: boolean }>(
      written === null
        ? { text: sql.beginFirstFill, values: values.slice(0, 6) }
        : { text: sql.beginFill, values: [...values, written.incarnation] },
    );
    const [begun] = rows;
    if (begun === undefined) throw await conflict();
    written = mark;
    hasFillEnded = begun.fillEnded;
  }

  /** Decides how far the table is. @param mark what the mirror believes */
  async function open(mark: Mark): Promise<Opened> {
    const cursor = await readCursor();
    const start = markAtStart(mark);
    const refill = (reason: string): Opened => (mark.cursor > 0 ? { ...start, refill: reason } : start);
    written = cursor === null ? null : markOf(cursor);
    hasFillEnded = cursor?.fillEnded ?? true;
    const loss = lossOf(cursor);
    // An empty table may be filled by this mirror, even if another one filled it before.
    if (!(cursor?.isFilled ?? (await hasRows())) && (loss !== null || cursor?.incarnation !== mark.incarnation)) {
      await beginFill(start);
      return refill(loss ?? `table ${table} is empty`);
    }
    if (cursor === null) {
      // This mirror never wrote the rows: the operator must decide.
      return mark.cursor === 0 ? UNKNOWN_OWNER : refill(`the cursor row of ${table} is missing`);
    }
    if (cursor.incarnation !== mark.incarnation) return markOf(cursor);
    if (cursor.layout < LAYOUT) return refill(`table ${table} has new columns`);
    return cursor.cursor === 0 ? refill(`nothing was delivered to ${table} yet`) : markOf(cursor);
  }

  /** Removes the rows that the fill did not deliver. Without a fill, it does nothing. */
  async function endFill(kept: readonly string[], mark: Mark): Promise<void> {
    if (hasFillEnded && isSameMark(written, mark)) return;
    for (let after = ''; !hasFillEnded; ) {
      const { incarnation, generation, cursor, late } = written ?? mark;
      const values = [key, incarnation, generation, cursor, late, after, STEP, kept];
      const { rows } = await db.query<{ last: string | null }>({ text: sql.endFillStep, values });
      const last = rows[0]?.last ?? null;
      if (last === null) break;
      after = last;
    }
    await move({ text: sql.endFill }, mark);
    hasFillEnded = true;
  }

  /** Writes the last state of each product in the batch. */
  async function write(events: readonly SinkEvent[], mark: Mark): Promise<void> {
    const last = new Map(events.map((event) => [event.vbid, event]));
    await move({ name: 'deliver', text: sql.deliver }, mark, eventParameters([...last.values()]));
  }

  /** @throws SinkError unavailable if the table lost rows, or another process changed the cursor */
  async function recheck(): Promise<void> {
    const cursor = await readCursor();
    const isOurs = cursor !== null && isSameMark(markOf(cursor), written);
    if (!isOurs || lossOf(cursor) !== null) throw await conflict();
  }

  return { open, beginFill, endFill, write, recheck };
}
