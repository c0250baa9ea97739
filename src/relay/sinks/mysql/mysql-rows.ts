import * as z from 'zod';
import { COLUMNS, PART_NAMES, PARTS } from '../../../catalog/fields.ts';
import type { ProductRows, Row } from '../sql/event-rows.ts';
import type { Removals, TableNames } from '../sql/table-layout.ts';
import type { MysqlConnection } from './mysql-connection.ts';
import { quoted } from './mysql-layout.ts';

/** How MySQL gets a body, and a time: in UTC, as `datetime(3)` takes it. */
export const WRITTEN = {
  body: (json: string): string => json,
  time: (ms: number): string => new Date(ms).toISOString().slice(0, -1).replace('T', ' '),
};

const PRODUCT_NAMES = ['vbid', ...COLUMNS.map(({ column }) => column), 'body', 'seq', 'changed_at', 'fill'];

const knownSchema = z.array(z.object({ vbid: z.string(), seq: z.number(), fill: z.number() }));
export const marksOf = (names: readonly string[]): string => names.map(() => '?').join(', ');

/** Writes the rows of a sink's tables, in a transaction of the caller. */
export function mysqlRows(db: MysqlConnection, names: TableNames, removals: Removals) {
  const insert = `INSERT INTO ${names.table} (${PRODUCT_NAMES.map((name) => quoted(name)).join(', ')}) VALUES (${marksOf(PRODUCT_NAMES)})`;
  // Whether a row is older is decided before. VALUES() is deprecated in MySQL, but MariaDB has nothing else.
  const overwritten = PRODUCT_NAMES.slice(1).map((name) => `${quoted(name)} = VALUES(${quoted(name)})`);
  const upsert = `${insert} ON DUPLICATE KEY UPDATE ${overwritten.join(', ')}, removed_at = NULL`;

  async function deleteParts(keys: readonly string[]): Promise<void> {
    for (const part of PART_NAMES)
      await db.forKeys((list) => `DELETE FROM ${names[part]} WHERE vbid IN (${list})`, keys);
  }

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

  async function remove(gone: readonly { key: string; seq: number; time: string }[], fill: number): Promise<void> {
    const keys = gone.map((one) => one.key);
    if (removals === 'delete') await db.forKeys((list) => `DELETE FROM ${names.table} WHERE vbid IN (${list})`, keys);
    else {
      const rows = gone.map((one): Row => [one.time, one.time, one.seq, fill, one.key]);
      const set = 'removed_at = ?, changed_at = ?, seq = ?, fill = ?';
      await db.each(`UPDATE ${names.table} SET ${set} WHERE vbid = ?`, rows);
    }
  }

  /** Finds out which rows may be overwritten, and locks them. */
  async function rowsBefore(changes: ProductRows, fill: number) {
    const keys = [...changes.living, ...changes.gone].map(([vbid]) => String(vbid));
    const text = (list: string) => `SELECT vbid, seq, fill FROM ${names.table} WHERE vbid IN (${list}) FOR UPDATE`;
    const known = new Map(knownSchema.parse(await db.forKeys(text, keys)).map((row) => [row.vbid, row]));
    return {
      has: (vbid: string): boolean => known.has(vbid),
      /** Whether the row is from this fill and newer. */
      isNewer: (vbid: string, seq: number): boolean => {
        const row = known.get(vbid);
        return row !== undefined && row.fill >= fill && row.seq > seq;
      },
    };
  }

  async function write(changes: ProductRows, fill: number, isNew: boolean): Promise<void> {
    const before = isNew ? null : await rowsBefore(changes, fill);
    const seqAt = PRODUCT_NAMES.indexOf('seq');
    const living = changes.living.filter((row) => !before?.isNewer(String(row[0]), Number(row[seqAt])));
    const gone = changes.gone
      .map(([vbid, seq, time]) => ({ key: String(vbid), seq: Number(seq), time: String(time) }))
      .filter((one) => before?.has(one.key) === true && !before.isNewer(one.key, one.seq));
    const written = new Set(living.map(([vbid]) => vbid));
    if (!isNew) await deleteParts([...[...written].map(String), ...gone.map((one) => one.key)]);
    await db.each(
      isNew ? insert : upsert,
      living.map((row) => [...row, fill]),
    );
    for (const part of PART_NAMES) {
      const columns = ['vbid', ...PARTS[part].map(({ column }) => column)];
      const text = `INSERT INTO ${names[part]} (${columns.map((name) => quoted(name)).join(', ')}) VALUES (${marksOf(columns)})`;
      await db.each(
        text,
        changes.parts[part].filter(([vbid]) => written.has(vbid ?? '')),
      );
    }
    await remove(gone, fill);
  }

  return { write, remove, deleteOrphans };
}
