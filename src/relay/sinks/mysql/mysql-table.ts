import * as z from 'zod';
import { PART_NAMES, type Part } from '../../../catalog/fields.ts';
import type { Mark } from '../../sink.ts';
import { isSameMark } from '../../stored-mark.ts';
import { type Row, rowsOf } from '../sql/event-rows.ts';
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

/** How MySQL gets a body, and a time: in UTC, as `datetime(3)` takes it. */
export const WRITTEN = {
  body: (json: string): string => json,
  time: (ms: number): string => new Date(ms).toISOString().slice(0, -1).replace('T', ' '),
};

const keysSchema = z.array(z.object({ vbid: z.string() }));
const knownSchema = z.array(z.object({ vbid: z.string(), seq: z.number(), fill: z.number() }));

interface MysqlOptions extends TableOptions {
  /** Default: each call is a transaction. */
  readonly transaction?: MysqlConnection['inTransaction'];
}

interface Gone {
  readonly vbid: string;
  readonly seq: number;
  readonly time: string;
}

/** Rows that a batch of events makes. */
interface Changes {
  readonly living: readonly { readonly vbid: string; readonly seq: number; readonly row: TextRow }[];
  readonly parts: Readonly<Record<Part, readonly TextRow[]>>;
  readonly gone: readonly Gone[];
}

const textRows = (rows: readonly Row[]): TextRow[] => rows.map(textRow);

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

  async function remove(gone: readonly Gone[], fill: number): Promise<void> {
    if (removals === 'delete') {
      const keys = gone.map(({ vbid }) => vbid);
      await db.forKeys((list) => `DELETE FROM ${names.table} WHERE vbid IN (${list})`, keys);
      return;
    }
    const set = 'removed_at = ?, changed_at = ?, seq = ?, fill = ?';
    const rows = gone.map(({ vbid, seq, time }) => textRow([time, time, seq, fill, vbid]));
    await db.each(`UPDATE ${names.table} SET ${set} WHERE vbid = ?`, rows);
  }

  /** Keeps the changes that may overwrite their rows, locks these rows, and deletes their parts. */
  async function replaceable({ living, gone }: Changes, fill: number, how: How) {
    if (how === 'insert') return { living, gone, known: new Map<string, unknown>() };
    const keys = [...living, ...gone].map(({ vbid }) => vbid);
    const text = (list: string) => `SELECT vbid, seq, fill FROM ${names.table} WHERE vbid IN (${list}) FOR UPDATE`;
    const known = new Map(knownSchema.parse(await db.forKeys(text, keys)).map((row) => [row.vbid, row]));
    /** Whether the row is not from this fill, or not newer. */
    const isOlder = ({ vbid, seq }: { readonly vbid: string; readonly seq: number }): boolean => {
      const row = known.get(vbid);
      return how === 'repair' || row === undefined || row.fill < fill || row.seq <= seq;
    };
    const kept = { living: living.filter(isOlder), gone: gone.filter((one) => known.has(one.vbid) && isOlder(one)) };
    const replaced = [...kept.living, ...kept.gone].map(({ vbid }) => vbid);
    for (const part of PART_NAMES)
      await db.forKeys((list) => `DELETE FROM ${names[part]} WHERE vbid IN (${list})`, replaced);
    return { ...kept, known };
  }

  return {
    remove,
    deleteOrphans,
    changesOf: (events: Parameters<typeof rowsOf>[0]): Changes => {
      const { living, parts, gone } = rowsOf(events, WRITTEN);
      return {
        living: living.map((row) => ({ vbid: String(row[0]), seq: Number(row[seqAt]), row: textRow(row) })),
        parts: {
          prices: textRows(parts.prices),
          contributors: textRows(parts.contributors),
          identifiers: textRows(parts.identifiers),
        },
        gone: gone.map(([vbid, seq, time]) => ({ vbid: String(vbid), seq: Number(seq), time: String(time) })),
      };
    },
    write: async (changes: Changes, fill: number, how: How): Promise<void> => {
      const { living, gone, known } = await replaceable(changes, fill, how);
      const productsOf = (isKnown: boolean): TextRow[] =>
        living.filter(({ vbid }) => known.has(vbid) === isKnown).map(({ row }) => row);
      // Not ON DUPLICATE KEY UPDATE, which overwrites another product if the shop has added a unique key.
      await db.each(
        `UPDATE ${names.table} SET ${replace.join(', ')}, fill = ${fill}, removed_at = NULL WHERE vbid = ?`,
        productsOf(true).map(({ texts: [vbid = null, ...values], bytes }) => ({ texts: [...values, vbid], bytes })),
      );
      await db.each(insertText(names.table, product, String(fill)), productsOf(false));
      const written = new Set<string | null | undefined>(living.map(({ vbid }) => vbid));
      for (const part of PART_NAMES) {
        const rows = changes.parts[part].filter(({ texts }) => written.has(texts[0]));
        await db.each(insertText(names[part], Object.keys(partColumns[part])), rows);
      }
      await remove(gone, fill);
    },
  };
}

/** The tables of a sink in MySQL or MariaDB. */
export function mysqlTables(db: MysqlConnection, options: MysqlOptions): SqlTables<Changes> {
  const { table, names, removals, transaction = db.inTransaction } = options;
  const { key } = names;
  const { write, remove, deleteOrphans, changesOf } = rowWriter(db, names, removals);

  /** Runs `work` in a transaction that no other relay can join, if the cursor row is what this process left. */
  async function fenced<T>(written: Mark | null, work: (fill: number) => Promise<T>): Promise<T | undefined> {
    return await transaction('COMMIT', async () => {
      const now = await readCursor({ db, names }, 'FOR UPDATE');
      if (now === null || lossOf(table, now) !== null || !isSameMark(now, written)) return undefined;
      return await work(now.fill);
    });
  }

  async function moveCursor({ generation, cursor, at, late }: Mark, more = ''): Promise<true> {
    // Not as a part of the UPDATE, which would wait while an application has locked the first row.
    const isFilled = await hasRows(db, names.table);
    await db.query(
      `UPDATE ${names.cursor} SET generation = ?, \`cursor\` = ?, at = ?, late = ?, has_rows = ?${more} WHERE table_name = ?`,
      [generation, cursor, at, late, isFilled, key],
    );
    return true;
  }

  return {
    table,
    names,
    db,
    changesOf,
    beginFill: async ({ incarnation, generation, cursor, at, late }, written) =>
      await transaction('COMMIT', async () => {
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
        const gone = { seq: written.cursor, time: WRITTEN.time(Date.now()) };
        const keys = keysSchema.parse(unseen).filter(({ vbid }) => !isKept.has(vbid));
        await remove(
          keys.map(({ vbid }) => ({ vbid, ...gone })),
          0,
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
