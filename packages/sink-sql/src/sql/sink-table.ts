import type { OpenStore } from '@catchword/sink-kit/connected-sink';
import { type Mark, type Opened, type Sink, SinkError, type SinkEvent } from '@catchword/sink-kit/sink';
import {
  emptyPosition,
  isOfOtherSink,
  isOfOwnMirror,
  isSameMark,
  markAtStart,
  markSchema,
} from '@catchword/sink-kit/stored-mark';
import * as z from 'zod';
import type { Written } from './event-rows.ts';
import { hasRows, type SqlClient, type TableNames, type TableOptions } from './table-layout.ts';

/*
 * A table of products that knows its position, in whichever database. Each kind of
 * database implements `SqlTables`, whose calls are transactions of their own.
 */

/** The owner of rows in a table without a cursor row. */
const UNKNOWN_OWNER: Mark = { incarnation: '', generation: 1, cursor: 0, at: 0, late: 0 };

export const cursorSchema = markSchema.extend({
  /** Whether the table had rows after the last delivery. */
  hasRows: z.coerce.boolean(),
  /** Whether the table has rows now. */
  isFilled: z.coerce.boolean(),
});
export type Cursor = z.output<typeof cursorSchema>;

/** `insert`: none of the products is in the table; to look for them takes longer than to insert them. */
export type How = 'deliver' | 'insert';

/**
 * What one kind of database does with the tables of a sink. A call that writes gets `written`, the mark that this process
 * left in the cursor row. It does nothing if the row has another one, or if a table that had rows is empty.
 */
export interface SqlTables<Changes> {
  /** As configured. */
  readonly table: string;
  readonly names: TableNames;
  readonly db: SqlClient;
  /** Writes the cursor row alone, also if it is missing. @returns undefined if it did nothing; `isNew`: the tables are empty */
  readonly claim: (mark: Mark, written: Mark | null) => Promise<{ readonly isNew: boolean } | undefined>;
  readonly changesOf: (events: readonly Written[]) => Changes;
  /** @returns whether it did anything */
  readonly deliver: (changes: Changes, mark: Mark, written: Mark | null, how: How) => Promise<boolean>;
  /** Whether a statement of fewer rows may succeed. */
  readonly isTooMuch: (error: unknown) => boolean;
  /** Whether a key that was inserted exists. */
  readonly isDuplicate: (error: unknown) => boolean;
}

/** Reads the cursor row; null if there is none. @param lock follows the SELECT */
export async function readCursor(
  { db, names }: Pick<SqlTables<never>, 'db' | 'names'>,
  lock = '',
): Promise<Cursor | null> {
  const [found] = await db.query(
    `SELECT incarnation, generation, c.cursor, at, late, has_rows AS "hasRows",
       EXISTS (SELECT 1 FROM ${names.table}) AS "isFilled" FROM ${names.cursor} AS c WHERE table_name = ${db.parameter(1)} ${lock}`,
    [names.key],
  );
  return found === undefined ? null : cursorSchema.parse(found);
}

/** Why the table does not have what it confirmed; null if a quick check finds nothing. */
export function lossOf(table: string, cursor: Cursor | null): string | null {
  if (cursor === null) return `the cursor row of ${table} is missing`;
  if (cursor.hasRows && !cursor.isFilled) return `table ${table} is empty but had rows`;
  return null;
}

/** Walks over keys, with fewer at once if that takes too long. @param step takes `size` keys after `after`; null: none is left */
export async function* inSteps<Found extends { readonly last: string }>(
  isTooMuch: (error: unknown) => boolean,
  most: number,
  step: (after: string, size: number) => Promise<Found | null>,
): AsyncGenerator<Found> {
  let after = '';
  for (let size = most; ; ) {
    try {
      const found = await step(after, size);
      if (found === null) return;
      yield found;
      after = found.last;
    } catch (error) {
      if (!isTooMuch(error) || size === 1) throw error;
      size = Math.floor(size / 2);
    }
  }
}

/** Decides how far the table is. @param mark what the mirror believes */
async function positionOf(
  { table, names, db }: Pick<SqlTables<never>, 'table' | 'names' | 'db'>,
  found: Cursor | null,
  mark: Mark,
): Promise<{ readonly position: Opened; readonly mustClaim: boolean }> {
  const loss = lossOf(table, found);
  const isFilled = found?.isFilled ?? (await hasRows(db, names.table));
  // The relay decides whether this sink may take the table over from another one of its mirror.
  if (found !== null && isOfOtherSink(found, mark)) {
    return { position: loss === null ? found : { ...markAtStart(found), refill: loss }, mustClaim: false };
  }
  const isOurs = found !== null && isOfOwnMirror(found, mark);
  // An empty table may be filled by this mirror, even if another one filled it before.
  if (!isFilled && (loss !== null || !isOurs)) {
    return { position: emptyPosition(mark, loss ?? `table ${table} is empty`), mustClaim: true };
  }
  if (isOurs && found.cursor === 0)
    return { position: emptyPosition(mark, `nothing was delivered to ${table} yet`), mustClaim: false };
  if (found !== null) return { position: found, mustClaim: false };
  // If this mirror never wrote the rows, the operator must decide.
  if (mark.cursor === 0) return { position: UNKNOWN_OWNER, mustClaim: false };
  return { position: emptyPosition(mark, lossOf(table, null) ?? ''), mustClaim: true };
}

/** Opens a sink's table on one connection. @param mark what the mirror believes */
export async function openTable<Changes>(
  tables: SqlTables<Changes>,
  mark: Mark,
): Promise<Required<Omit<OpenStore, 'list' | 'digests'>> & { readonly conflict: () => Promise<SinkError> }> {
  const { table, db } = tables;
  const found = await readCursor(tables);
  let written: Mark | null = found;
  /** Whether the tables were empty when a fill began, and so far got each product once. */
  let isNew = false;
  /** Changes that the next batch probably makes. */
  let prepared: { readonly events: readonly SinkEvent[]; readonly changes: Changes } | null = null;

  /** Explains why the cursor is not what this process left. */
  async function conflict(): Promise<SinkError> {
    const loss = lossOf(table, await readCursor(tables));
    return new SinkError('unavailable', `${db.server}: ${loss ?? `another process moved the cursor of ${table}`}`);
  }

  /** Notes the mark that a call has written. @throws SinkError unavailable if it did nothing */
  async function moved(mark: Mark, isDone: boolean): Promise<void> {
    if (!isDone) throw await conflict();
    written = mark;
  }

  async function claim(mark: Mark): Promise<void> {
    const claimed = await tables.claim(mark, written);
    await moved(mark, claimed !== undefined);
    isNew = claimed?.isNew === true && mark.cursor === 0;
  }

  const { position, mustClaim } = await positionOf(tables, found, mark);
  if (mustClaim) await claim(markAtStart(mark));
  return {
    position,
    apply: async (events, extra, mark) => {
      if (events.length + extra.length === 0) return await claim(mark);
      isNew = false;
      const gone = extra.map((vbid) => ({ vbid, body: null, seq: mark.cursor, at: mark.at || Date.now() }));
      await moved(mark, await tables.deliver(tables.changesOf([...events, ...gone]), mark, written, 'deliver'));
    },
    prepareNext: async (events) => {
      prepared = { events, changes: tables.changesOf(events) };
    },
    deliver: async (events, mark) => {
      const changes = prepared?.events === events ? prepared.changes : tables.changesOf(events);
      prepared = null;
      if (isNew && events.every(({ body }) => body !== null)) {
        try {
          return await moved(mark, await tables.deliver(changes, mark, written, 'insert'));
        } catch (error) {
          if (!tables.isDuplicate(error)) throw error;
          isNew = false;
        }
      }
      await moved(mark, await tables.deliver(changes, mark, written, 'deliver'));
    },
    recheck: async () => {
      const cursor = await readCursor(tables);
      if (lossOf(table, cursor) !== null || !isSameMark(cursor, written)) throw await conflict();
    },
    conflict,
  };
}

const CHECK_MARK: Mark = { ...UNKNOWN_OWNER, incarnation: 'catchword doctor' };
/** A new product and a removed one, to try both statements. */
const CHECK_EVENTS: readonly SinkEvent[] = [
  { id: '', seq: 1, at: 0, op: 'created', vbid: 'catchword-doctor-1', body: '{"vbid":"catchword-doctor-1"}', text: '' },
  { id: '', seq: 2, at: 0, op: 'removed', vbid: 'catchword-doctor-2', body: null, text: '' },
];

/**
 * Writes two products, for `catchword doctor`, into tables with a cursor row of their own: a relay may have locked the real
 * one, which must not change. Call it in a transaction that is rolled back.
 * @param tell gets the mark of the table, if it has one
 */
export async function tryToWrite<Changes>(
  tablesOf: (options: TableOptions) => SqlTables<Changes>,
  options: TableOptions,
  [signal, tell]: Parameters<Sink['check']>,
): Promise<void> {
  const { names } = options;
  const found = await readCursor(tablesOf(options));
  if (found?.isFilled === true) tell?.(found);
  const own = { ...options, names: { ...names, key: `${names.key} (catchword doctor)` } };
  const tried = await openTable(tablesOf(own), CHECK_MARK);
  await tried.apply([], [], CHECK_MARK, signal);
  await tried.deliver(CHECK_EVENTS, { ...CHECK_MARK, cursor: CHECK_EVENTS.length }, signal);
}
