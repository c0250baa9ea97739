import * as z from 'zod';
import { PART_NAMES } from '../../../catalog/fields.ts';
import type { Mark } from '../../sink.ts';
import { isSameMark } from '../../stored-mark.ts';
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
const knownSchema = z.array(z.object({ vbid: z.string(), seq: z.number(), fill: z.number() }));

type Changes = ProductRows<TextRow>;

/** The key of the product that a row is of. */
const keyOf = ({ texts }: TextRow): string => texts[0] ?? '';

/** Writes the rows of a sink's tables, in a transaction of the caller. */
function rowWriter(db: MysqlConnection, names: TableNames, removals: Removals) {
  const { living: columns, parts: partColumns } = mysqlLayout(db.isMariaDb);
  const product = Object.keys(columns);
  const seqAt = product.indexOf('seq');
  const insertText = (table: string, into: readonly string[], more = '') =>
    `INSERT INTO ${table} (${into.map((name) => quoted(name)).join(', ')}${more && ', fill'})
     VALUES (${into.map(() => '?').join(', ')}${more && `, ${more}`})`;
  const replace = product.slice(1).map((name) => `${quoted(name)} = ?`);

  /** Deletes parts that belong to no living product. @param range of keys, a condition on `p.vbid` */
  async function deleteOrphans(range: string, values: readonly string[]): Promise<void> {
    for (const part of PART_NAMES) {
      await db.query(
        `DELETE p FROM ${names[part]} AS p
         LEFT JOIN ${names.table} AS t ON t.vbid = p.vbid AND t.removed_at IS NULL WHERE ${range} AND t.vbid IS NULL`,
        values,
      );
    }
  }

  async function remove(gone: readonly TextRow[], fill: number, how: How): Promise<void> {
    if (removals === 'delete') {
      await db.forKeys((list) => `DELETE FROM ${names.table} WHERE vbid IN (${list})`, gone.map(keyOf));
      return;
    }
    const set = 'removed_at = ?, changed_at = ?, seq = ?, fill = ?';
    const rows = gone.map(({ texts: [vbid = null, seq = null, time = null] }) =>
      textRow([time, time, seq, fill, vbid]),
    );
    const which = how === 'repair' ? 'vbid = ? AND removed_at IS NULL' : 'vbid = ?';
    await db.each(`UPDATE ${names.table} SET ${set} WHERE ${which}`, rows);
  }

  /** Keeps the changes that may overwrite their rows, locks these rows, and deletes their parts. */
  async function replaceable({ living, gone }: Changes, fill: number, how: How) {
    if (how === 'insert') return { living, gone, known: new Map<string, unknown>() };
    const keys = [...living, ...gone].map(keyOf);
    const text = (list: string) => `SELECT vbid, seq, fill FROM ${names.table} WHERE vbid IN (${list}) FOR UPDATE`;
    const known = new Map(knownSchema.parse(await db.forKeys(text, keys)).map((row) => [row.vbid, row]));
    /** Whether the row that the table has is not from this fill, or not newer. */
    const isOlder = (row: TextRow, seqAt: number): boolean => {
      const there = known.get(keyOf(row));
      return how === 'repair' || there === undefined || there.fill < fill || there.seq <= Number(row.texts[seqAt]);
    };
    const kept = {
      living: living.filter((row) => isOlder(row, seqAt)),
      gone: gone.filter((row) => known.has(keyOf(row)) && isOlder(row, 1)),
    };
    // A repair also removes parts of a product that is not there.
    const replaced = [...kept.living, ...(how === 'repair' ? gone : kept.gone)].map(keyOf);
    for (const part of PART_NAMES)
      await db.forKeys((list) => `DELETE FROM ${names[part]} WHERE vbid IN (${list})`, replaced);
    return { ...kept, known };
  }

  return {
    remove,
    deleteOrphans,
    write: async (changes: Changes, fill: number, how: How): Promise<void> => {
      const { living, gone, known } = await replaceable(changes, fill, how);
      const productsOf = (isKnown: boolean): TextRow[] => living.filter((row) => known.has(keyOf(row)) === isKnown);
      // Not ON DUPLICATE KEY UPDATE, which overwrites another product if the shop has added a unique key.
      await db.each(
        `UPDATE ${names.table} SET ${replace.join(', ')}, fill = ${fill}, removed_at = NULL WHERE vbid = ?`,
        productsOf(true).map(({ texts: [vbid = null, ...values], bytes }) => ({ texts: [...values, vbid], bytes })),
      );
      await db.each(insertText(names.table, product, String(fill)), productsOf(false));
      const written = new Set(living.map(keyOf));
      for (const part of PART_NAMES) {
        const rows = changes.parts[part].filter((row) => written.has(keyOf(row)));
        await db.each(insertText(names[part], Object.keys(partColumns[part])), rows);
      }
      await remove(gone, fill, how);
    },
  };
}

/** The tables of a sink in MySQL or MariaDB. */
export function mysqlTables(db: MysqlConnection, { table, names, removals }: TableOptions): SqlTables<Changes> {
  const { key } = names;
  const { write, remove, deleteOrphans } = rowWriter(db, names, removals);

  /** Runs `work` in a transaction that no other relay can join, if the cursor row is what this process left. */
  async function fenced<T>(written: Mark | null, work: (fill: number) => Promise<T>): Promise<T | undefined> {
    return await db.inTransaction('COMMIT', async () => {
      const now = await readCursor({ db, names }, 'FOR UPDATE');
      if (now === null || lossOf(table, now) !== null || !isSameMark(now, written)) return undefined;
      return await work(now.fill);
    });
  }

  async function moveCursor({ incarnation, generation, cursor, at, late }: Mark, more = ''): Promise<true> {
    // Not as a part of the UPDATE, which would wait while an application has locked the first row.
    const isFilled = await hasRows(db, names.table);
    await db.query(
      `UPDATE ${names.cursor} SET incarnation = ?, generation = ?, \`cursor\` = ?, at = ?, late = ?, has_rows = ?${more} WHERE table_name = ?`,
      [incarnation, generation, cursor, at, late, isFilled, key],
    );
    return true;
  }

  return {
    table,
    names,
    db,
    changesOf: (events) => rowsOf(events, WRITTEN),
    beginFill: async ({ incarnation, generation, cursor, at, late }, written) =>
      await db.inTransaction('COMMIT', async () => {
        const now = await readCursor({ db, names }, 'FOR UPDATE');
        if (now !== null && !isSameMark(now, written)) return undefined;
        const isFilled = await hasRows(db, names.table);
        let isNew = !isFilled;
        for (const part of PART_NAMES) isNew &&= !(await hasRows(db, names[part]));
        // Greater than the fill number of any row, even if the cursor row was lost.
        const fill = Math.max((now?.fill ?? 0) + 1, Date.now());
        await db.query(
          `REPLACE INTO ${names.cursor} (table_name, incarnation, generation, \`cursor\`, at, late, fill, has_rows, fill_ended)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
          [key, incarnation, generation, cursor, at, late, fill, isFilled, !isFilled],
        );
        return { fillEnded: !isFilled, isNew };
      }),
    deliver: async (changes, mark, written, how) =>
      (await fenced(written, async (fill) => {
        await write(changes, fill, how);
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
        const gone = keysSchema.parse(unseen).filter(({ vbid }) => !isKept.has(vbid));
        await remove(
          gone.map(({ vbid }) => textRow([vbid, written.cursor, time])),
          0,
          'deliver',
        );
        await deleteOrphans('p.vbid > ? AND p.vbid <= ?', [last, reached]);
        return reached;
      })) ?? null,
    endFill: async (last, mark, written) =>
      (await fenced(written, async () => {
        if (last !== null) await deleteOrphans('p.vbid > ?', [last]);
        return await moveCursor(mark, ', fill_ended = 1');
      })) ?? false,
    isTooMuch,
    isDuplicate: (error) => error instanceof MysqlError && error.errno === DUPLICATE,
  };
}
