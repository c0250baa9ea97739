import * as z from 'zod';
import { PART_NAMES } from '../../../catalog/fields.ts';
import type { Mark } from '../../sink.ts';
import { isSameMark } from '../../stored-mark.ts';
import { type ProductRows, rowsOf } from '../sql/event-rows.ts';
import { type Cursor, cursorSchema, lossOf, type SqlTables } from '../sql/sink-table.ts';
import type { Removals, TableNames } from '../sql/table-layout.ts';
import { type MysqlConnection, MysqlError } from './mysql-connection.ts';
import { hasRows, quoted } from './mysql-layout.ts';
import { marksOf, mysqlRows, WRITTEN } from './mysql-rows.ts';

const DUPLICATE = 1062;
/** A lock that was not granted in time; a deadlock; ended by a limit of time; no memory for locks. */
const TOO_MUCH = [1205, 1213, 1317, 1969, 3024, 1206, 1041];

/** Whether a transaction of fewer rows may succeed. */
export function isTooMuch(error: unknown): boolean {
  return error instanceof MysqlError && TOO_MUCH.includes(error.errno);
}

const keysSchema = z.array(z.object({ vbid: z.string() }));

interface TableOptions {
  /** As configured. */
  readonly table: string;
  readonly names: TableNames;
  readonly removals: Removals;
  /** Default: each call is a transaction. */
  readonly transaction?: MysqlConnection['inTransaction'];
}

/** The tables of a sink in MySQL or MariaDB. */
export function mysqlTables(db: MysqlConnection, options: TableOptions): SqlTables<ProductRows> {
  const { table, names, removals, transaction = db.inTransaction } = options;
  const { key } = names;
  const { write, remove, deleteOrphans } = mysqlRows(db, names, removals);

  async function readCursor(lock: '' | 'FOR UPDATE' = ''): Promise<(Cursor & { fill: number }) | null> {
    const [found] = await db.query(
      `SELECT incarnation, generation, \`cursor\`, at, late, has_rows AS hasRows, fill_ended AS fillEnded, fill,
         EXISTS (SELECT 1 FROM ${names.table}) AS isFilled FROM ${names.cursor} WHERE table_name = ? ${lock}`,
      [key],
    );
    return found === undefined ? null : cursorSchema.extend({ fill: z.number() }).parse(found);
  }

  /** Runs `work` in a transaction that no other relay can join, if the cursor row is what this process left. */
  async function fenced<T>(written: Mark | null, work: (fill: number) => Promise<T>): Promise<T | undefined> {
    return await transaction('COMMIT', async () => {
      const now = await readCursor('FOR UPDATE');
      if (now === null || lossOf(table, now) !== null || !isSameMark(now, written)) return undefined;
      return await work(now.fill);
    });
  }

  async function moveCursor({ generation, cursor, at, late }: Mark, fillEnded?: true): Promise<true> {
    const isFilled = await hasRows(db, names.table);
    await db.query(
      `UPDATE ${names.cursor} SET generation = ?, \`cursor\` = ?, at = ?, late = ?, has_rows = ?${fillEnded ? ', fill_ended = 1' : ''} WHERE table_name = ?`,
      [generation, cursor, at, late, isFilled, key],
    );
    return true;
  }

  return {
    table,
    server: 'MySQL',
    readCursor,
    hasRows: () => hasRows(db, names.table),
    changesOf: (events) => rowsOf(events, WRITTEN),
    beginFill: async ({ incarnation, generation, cursor, at, late }, written) =>
      await transaction('COMMIT', async () => {
        const now = await readCursor('FOR UPDATE');
        if (now !== null && !isSameMark(now, written)) return undefined;
        const isFilled = await hasRows(db, names.table);
        let isNew = !isFilled;
        for (const part of PART_NAMES) isNew &&= !(await hasRows(db, names[part]));
        // Greater than the fill number of any row, even if the cursor row was lost.
        const fill = Math.max((now?.fill ?? 0) + 1, Date.now());
        const row = {
          table_name: key,
          incarnation,
          generation,
          cursor,
          at,
          late,
          fill,
          has_rows: isFilled,
          fill_ended: !isFilled,
        };
        const columns = Object.keys(row);
        await db.query(
          `REPLACE INTO ${names.cursor} (${columns.map((name) => quoted(name)).join(', ')}) VALUES (${marksOf(columns)})`,
          Object.values(row),
        );
        return { fillEnded: !isFilled, isNew };
      }),
    deliver: async (changes, mark, written, isNew) =>
      (await fenced(written, async (fill) => {
        await write(changes, fill, isNew);
        return await moveCursor(mark);
      })) ?? false,
    removeUnseen: async (last, size, kept, written) =>
      (await fenced(written, async (fill) => {
        const text = `SELECT vbid FROM ${names.table} WHERE vbid > ? ORDER BY vbid LIMIT ${size}`;
        const reached = keysSchema.parse(await db.query(text, [last])).at(-1)?.vbid;
        if (reached === undefined) return null;
        const isLiving = removals === 'delete' ? '' : 'AND removed_at IS NULL';
        const unseen = await db.query(
          `SELECT vbid FROM ${names.table} WHERE vbid > ? AND vbid <= ? AND fill < ? ${isLiving} FOR UPDATE`,
          [last, reached, fill],
        );
        const isKept = new Set(kept);
        const time = WRITTEN.time(Date.now());
        const gone = keysSchema.parse(unseen).flatMap(({ vbid }) => (isKept.has(vbid) ? [] : [vbid]));
        await remove(
          gone.map((one) => ({ key: one, seq: written.cursor, time })),
          0,
        );
        await deleteOrphans('p.vbid > ? AND p.vbid <= ?', [last, reached]);
        return reached;
      })) ?? null,
    endFill: async (last, mark, written) =>
      (await fenced(written, async () => {
        if (last !== null) await deleteOrphans('p.vbid > ?', [last]);
        return await moveCursor(mark, true);
      })) ?? false,
    isTooMuch,
    isDuplicate: (error) => error instanceof MysqlError && error.errno === DUPLICATE,
  };
}
