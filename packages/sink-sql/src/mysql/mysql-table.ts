import { PART_NAMES } from '@catchword/catalog/fields';
import type { Mark } from '@catchword/sink-kit/sink';
import { isSameMark } from '@catchword/sink-kit/stored-mark';
import * as z from 'zod';
import { type ProductRows, rowsOf } from '../sql/event-rows.ts';
import { type How, lossOf, readCursor, type SqlTables } from '../sql/sink-table.ts';
import { hasRows, type Removals, type TableNames, type TableOptions } from '../sql/table-layout.ts';
import { type MysqlConnection, MysqlError, type TextRow, textRow } from './mysql-connection.ts';
import { mysqlLayout, quoted } from './mysql-layout.ts';

const DUPLICATE = 1062;
/** A lock that was not granted in time; a deadlock; ended by a limit of time; no memory for locks. */
const TOO_MUCH = [1205, 1213, 1317, 1969, 3024, 1206, 1041];

/** Whether a transaction of fewer rows may succeed. */
export function isTooMuch(error: unknown): boolean {
  return error instanceof MysqlError && TOO_MUCH.includes(error.errno);
}

/** How MySQL gets a body, a time (in UTC, as `datetime(3)` takes it), and a row. */
export const WRITTEN = {
  body: (json: string): string => json,
  time: (ms: number): string => new Date(ms).toISOString().slice(0, -1).replace('T', ' '),
  row: textRow,
};

const keysSchema = z.array(z.object({ vbid: z.string() }));

type Changes = ProductRows<TextRow>;

/** The key of the product that a row is of. */
const keyOf = ({ texts }: TextRow): string => texts[0] ?? '';

/** Writes the rows of a sink's tables, in a transaction of the caller. */
function rowWriter(db: MysqlConnection, names: TableNames, removals: Removals) {
  const { living: columns, parts: partColumns } = mysqlLayout(db.isMariaDb);
  const product = Object.keys(columns);
  const insertText = (table: string, into: readonly string[]) =>
    `INSERT INTO ${table} (${into.map((name) => quoted(name)).join(', ')}) VALUES (${into.map(() => '?').join(', ')})`;
  const replace = product.slice(1).map((name) => `${quoted(name)} = ?`);

  async function remove(gone: readonly TextRow[]): Promise<void> {
    if (removals === 'delete') {
      await db.forKeys((list) => `DELETE FROM ${names.table} WHERE vbid IN (${list})`, gone.map(keyOf));
      return;
    }
    const rows = gone.map(({ texts: [vbid = null, seq = null, time = null] }) => textRow([time, time, seq, vbid]));
    const set = 'removed_at = ?, changed_at = ?, seq = ?';
    await db.each(`UPDATE ${names.table} SET ${set} WHERE vbid = ? AND removed_at IS NULL`, rows);
  }

  /** Locks the rows of these products, and deletes their parts: some may be left of a product that is not there. */
  async function replaceable({ living, gone }: Changes): Promise<ReadonlySet<string>> {
    const keys = [...living, ...gone].map(keyOf);
    const text = (list: string) => `SELECT vbid FROM ${names.table} WHERE vbid IN (${list}) FOR UPDATE`;
    const known = keysSchema.parse(await db.forKeys(text, keys));
    for (const part of PART_NAMES)
      await db.forKeys((list) => `DELETE FROM ${names[part]} WHERE vbid IN (${list})`, keys);
    return new Set(known.map(({ vbid }) => vbid));
  }

  return {
    write: async (changes: Changes, how: How): Promise<void> => {
      const { living, gone } = changes;
      const known = how === 'insert' ? new Set<string>() : await replaceable(changes);
      const productsOf = (isKnown: boolean): TextRow[] => living.filter((row) => known.has(keyOf(row)) === isKnown);
      // Not ON DUPLICATE KEY UPDATE, which overwrites another product if the shop has added a unique key.
      await db.each(
        `UPDATE ${names.table} SET ${replace.join(', ')}, removed_at = NULL WHERE vbid = ?`,
        productsOf(true).map(({ texts: [vbid = null, ...values], bytes }) => ({ texts: [...values, vbid], bytes })),
      );
      await db.each(insertText(names.table, product), productsOf(false));
      for (const part of PART_NAMES)
        await db.each(insertText(names[part], Object.keys(partColumns[part])), changes.parts[part]);
      await remove(gone);
    },
  };
}

/** The tables of a sink in MySQL or MariaDB. */
export function mysqlTables(db: MysqlConnection, { table, names, removals }: TableOptions): SqlTables<Changes> {
  const { key } = names;
  const { write } = rowWriter(db, names, removals);

  /** Runs `work` in a transaction that no other relay can join, if the cursor row is what this process left. */
  async function fenced<T>(written: Mark | null, work: () => Promise<T>): Promise<T | undefined> {
    return await db.inTransaction('COMMIT', async () => {
      const now = await readCursor({ db, names }, 'FOR UPDATE');
      if (now === null || lossOf(table, now) !== null || !isSameMark(now, written)) return undefined;
      return await work();
    });
  }

  async function moveCursor({ incarnation, generation, cursor, at, late }: Mark): Promise<true> {
    // Not as a part of the UPDATE, which would wait while an application has locked the first row.
    const isFilled = await hasRows(db, names.table);
    await db.query(
      `UPDATE ${names.cursor} SET incarnation = ?, generation = ?, \`cursor\` = ?, at = ?, late = ?, has_rows = ? WHERE table_name = ?`,
      [incarnation, generation, cursor, at, late, isFilled, key],
    );
    return true;
  }

  return {
    table,
    names,
    db,
    changesOf: (events) => rowsOf(events, WRITTEN),
    claim: async ({ incarnation, generation, cursor, at, late }, written) =>
      await db.inTransaction('COMMIT', async () => {
        const now = await readCursor({ db, names }, 'FOR UPDATE');
        if (now !== null && !isSameMark(now, written)) return undefined;
        const isFilled = await hasRows(db, names.table);
        let isNew = !isFilled;
        for (const part of PART_NAMES) isNew &&= !(await hasRows(db, names[part]));
        await db.query(
          `REPLACE INTO ${names.cursor} (table_name, incarnation, generation, \`cursor\`, at, late, has_rows)
           VALUES (?, ?, ?, ?, ?, ?, ?)`,
          [key, incarnation, generation, cursor, at, late, isFilled],
        );
        return { isNew };
      }),
    deliver: async (changes, mark, written, how) =>
      (await fenced(written, async () => {
        await write(changes, how);
        return await moveCursor(mark);
      })) ?? false,
    isTooMuch,
    isDuplicate: (error) => error instanceof MysqlError && error.errno === DUPLICATE,
  };
}
