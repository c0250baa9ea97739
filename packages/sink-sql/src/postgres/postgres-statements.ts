import { PART_NAMES } from '@catchword/catalog/fields';
import type { Mark } from '@catchword/sink-kit/sink';
import type { How } from '../sql/sink-table.ts';
import type { Removals, TableNames } from '../sql/table-layout.ts';
import { LAYOUT } from './postgres-layout.ts';

/** Parameters of `deliver` that describe products: columns with their types, in order; `at` in seconds since 1970. */
const COLUMNS = { vbid: 'text', ...LAYOUT.products, body: 'jsonb', seq: 'bigint', at: 'double precision' };
/** Last parameters of `deliver`: removed products. `insert` does not have them. */
const GONE_COLUMNS = { vbid: 'text', seq: 'bigint', at: 'double precision' };
/** How many parameters of each kind there are. */
export const WIDTHS = {
  products: Object.keys(COLUMNS).length,
  gone: Object.keys(GONE_COLUMNS).length,
};

/**
 * Part of a statement that need not wait for the disk: if a power failure loses the newest rows, it loses their cursor as
 * well, and they are delivered again. The setting ends with the transaction, because a pooler hands the connection to
 * other applications.
 */
const DO_NOT_WAIT = `set_config('synchronous_commit', 'off', true)`;

/** The first parameters: the new cursor ($1 to $6), and the cursor that must be there ($7 to $10). */
const EXPECTED = 'c.table_name = $1 AND c.incarnation = $10 AND c.generation = $7 AND c.cursor = $8 AND c.late = $9';
const MARK_PARAMETERS = 10;

/**
 * The columns of rows that are parameters, each column as texts. In a select list, PostgreSQL takes the next element of
 * each array for each row. Functions in FROM would store every column first, and one JSON array of all bodies would be
 * copied once more: together, a seventh more work for the server (measured).
 */
function columnsAt(first: number, columns: Readonly<Record<string, string>>): string {
  const unnested = Object.entries(columns).map(([name, type], index) => {
    const cast = type === 'text' ? '' : `::${type}`;
    return `unnest($${first + index}::text[])${cast} AS ${name}`;
  });
  return unnested.join(', ');
}

function deliverText(names: TableNames, removals: Removals, how: How): string {
  const isNew = how === 'insert';
  const { table, cursor } = names;
  const product = MARK_PARAMETERS + 1;
  let gone = product + WIDTHS.products;
  const inserts = PART_NAMES.map((part) => {
    const columns = Object.keys(LAYOUT.parts[part]);
    const rows = columnsAt(gone, LAYOUT.parts[part]);
    gone += columns.length;
    return `new_${part} AS (
      INSERT INTO ${names[part]} (${columns.join(', ')})
      SELECT ${columns.map((name) => `new.${name}`).join(', ')}
      FROM (SELECT ${rows} FROM moved) AS new
      JOIN written ON written.vbid = new.vbid
    )`;
  });
  const own = Object.keys(COLUMNS).filter((name) => name !== 'vbid' && name !== 'at');
  const stored = [...own, 'changed_at'];
  const listed = `(SELECT ${columnsAt(gone, GONE_COLUMNS)}) AS gone`;
  const remove =
    removals === 'delete'
      ? `DELETE FROM ${table} AS t USING moved, ${listed} WHERE gone.vbid = t.vbid`
      : `UPDATE ${table} AS t SET removed_at = to_timestamp(gone.at), changed_at = to_timestamp(gone.at), seq = gone.seq
           FROM moved, ${listed} WHERE gone.vbid = t.vbid AND t.removed_at IS NULL`;
  const kept = removals === 'delete' && !isNew ? `WHERE t.vbid <> ALL($${gone}::text[])` : '';
  const overwrite = `ON CONFLICT (vbid) DO UPDATE
    SET ${stored.map((name) => `${name} = excluded.${name}`).join(', ')}, removed_at = NULL`;
  // Parts may be left of a product that is not there.
  const deletes = deleteParts(
    names,
    `p.vbid IN (SELECT vbid FROM written UNION ALL SELECT gone.vbid FROM moved, ${listed})`,
  );
  return `WITH moved AS (
      UPDATE ${cursor} AS c SET incarnation = $2, generation = $3, cursor = $4, at = $5, late = $6,
        has_rows = cardinality($${product}::text[]) > 0 OR EXISTS (SELECT FROM ${table} AS t ${kept})
      WHERE ${EXPECTED} AND (NOT c.has_rows OR EXISTS (SELECT FROM ${table}))
      RETURNING 1
    ), ${isNew ? '' : `removed AS (${remove}),`} written AS (
      INSERT INTO ${table} AS t (vbid, ${stored.join(', ')})
      SELECT new.vbid, ${own.map((name) => `new.${name}`).join(', ')}, to_timestamp(new.at)
      FROM (SELECT ${columnsAt(product, COLUMNS)} FROM moved) AS new
      ${isNew ? '' : overwrite}
      RETURNING t.vbid
    ), ${isNew ? '' : `${deletes}, `}${inserts.join(', ')} SELECT count(*)::int AS moved, ${DO_NOT_WAIT} FROM moved`;
}

/** CTEs that delete parts. */
function deleteParts(names: TableNames, where: string): string {
  return PART_NAMES.map((part) => `no_${part} AS (DELETE FROM ${names[part]} AS p WHERE ${where})`).join(', ');
}

/**
 * COPY would take the server a fifth less for a fill (measured). But one that waits for a relay that is frozen, or cut off,
 * ends by no timeout and no request to cancel, and the next relay would wait for its locks.
 *
 * Every statement is a transaction of its own. One that writes does nothing if another process changed the cursor. They are
 * not prepared, which takes 3 ms more for each (measured): behind a pooler, the next one may run on another connection.
 */
export function statementsOf(names: TableNames, removals: Removals) {
  const { table, cursor } = names;
  const isEmpty = PART_NAMES.map((part) => `NOT EXISTS (SELECT FROM ${names[part]})`).join(' AND ');
  return {
    /** $10 is null if the table must not have a cursor. */
    claim: `INSERT INTO ${cursor} AS c (table_name, incarnation, generation, cursor, at, late, has_rows)
      SELECT $1::text, $2::text, $3::bigint, $4::bigint, $5::bigint, $6::bigint, EXISTS (SELECT FROM ${table})
      ON CONFLICT (table_name) DO UPDATE SET incarnation = $2, generation = $3, cursor = $4, at = $5, late = $6,
        has_rows = excluded.has_rows
      WHERE ${EXPECTED}
      RETURNING NOT has_rows AND ${isEmpty} AS "isNew"`,
    deliver: deliverText(names, removals, 'deliver'),
    /** Without the parameters of removals. Violates the primary key if the table has one of the products. */
    insert: deliverText(names, removals, 'insert'),
  };
}

/** The new cursor, and the cursor that must be there. */
export function markParameters(key: string, mark: Mark, written: Mark | null): unknown[] {
  const { incarnation, generation, cursor, at, late } = mark;
  const expected = [written?.generation ?? 0, written?.cursor ?? 0, written?.late ?? 0, written?.incarnation ?? null];
  return [key, incarnation, generation, cursor, at, late, ...expected];
}
