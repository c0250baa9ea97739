import { PART_NAMES } from '../../../catalog/fields.ts';
import type { Mark } from '../../sink.ts';
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
  const stored = [...own, 'changed_at', 'fill'];
  const isOlder = (fill: string, seq: string): string =>
    how === 'repair' ? 'true' : `(t.fill < ${fill} OR t.seq <= ${seq})`;
  const isGone = `gone.vbid = t.vbid AND ${isOlder('moved.fill', 'gone.seq')}`;
  const listed = `(SELECT ${columnsAt(gone, GONE_COLUMNS)}) AS gone`;
  const remove =
    removals === 'delete'
      ? `DELETE FROM ${table} AS t USING moved, ${listed} WHERE ${isGone} RETURNING t.vbid`
      : `UPDATE ${table} AS t SET removed_at = to_timestamp(gone.at), changed_at = to_timestamp(gone.at), seq = gone.seq,
           fill = moved.fill FROM moved, ${listed} WHERE ${isGone}${how === 'repair' ? ' AND t.removed_at IS NULL' : ''} RETURNING t.vbid`;
  const kept = removals === 'delete' && !isNew ? `WHERE t.vbid <> ALL($${gone}::text[])` : '';
  const overwrite = `ON CONFLICT (vbid) DO UPDATE
    SET ${stored.map((name) => `${name} = excluded.${name}`).join(', ')}, removed_at = NULL
    WHERE ${isOlder('excluded.fill', 'excluded.seq')}`;
  // A repair also removes parts of a product that is not there.
  const rest = how === 'repair' ? ` UNION ALL SELECT gone.vbid FROM moved, ${listed}` : '';
  const deletes = deleteParts(names, `p.vbid IN (SELECT vbid FROM written UNION ALL SELECT vbid FROM removed${rest})`);
  return `WITH moved AS (
      UPDATE ${cursor} AS c SET incarnation = $2, generation = $3, cursor = $4, at = $5, late = $6,
        has_rows = cardinality($${product}::text[]) > 0 OR EXISTS (SELECT FROM ${table} AS t ${kept})
      WHERE ${EXPECTED} AND (NOT c.has_rows OR EXISTS (SELECT FROM ${table}))
      RETURNING c.fill
    ), ${isNew ? '' : `removed AS (${remove}),`} written AS (
      INSERT INTO ${table} AS t (vbid, ${stored.join(', ')})
      SELECT new.vbid, ${own.map((name) => `new.${name}`).join(', ')}, to_timestamp(new.at), new.fill
      FROM (SELECT moved.fill, ${columnsAt(product, COLUMNS)} FROM moved) AS new
      ${isNew ? '' : overwrite}
      RETURNING t.vbid
    ), ${isNew ? '' : `${deletes}, `}${inserts.join(', ')} SELECT count(*)::int AS moved, ${DO_NOT_WAIT} FROM moved`;
}

/** CTEs that delete parts. */
function deleteParts(names: TableNames, where: string): string {
  return PART_NAMES.map((part) => `no_${part} AS (DELETE FROM ${names[part]} AS p WHERE ${where})`).join(', ');
}

/** Whether a part belongs to a product that is not there. */
const isUnsold = (table: string): string =>
  `NOT EXISTS (SELECT FROM ${table} AS t WHERE t.vbid = p.vbid AND t.removed_at IS NULL)`;

/** Removes unseen rows among the next $7 keys after $6, except the keys in $8, if the cursor ($1 to $5) is unchanged; and their parts. */
function endFillStepText(names: TableNames, removals: Removals): string {
  const { table, cursor } = names;
  const unseen = `step.fill < step.newest AND t.vbid = step.vbid AND t.vbid <> ALL($8::text[])`;
  const remove =
    removals === 'delete'
      ? `DELETE FROM ${table} AS t USING step WHERE ${unseen} RETURNING t.vbid`
      : `UPDATE ${table} AS t SET removed_at = now(), changed_at = now(), seq = $4 FROM step
           WHERE ${unseen} AND t.removed_at IS NULL RETURNING t.vbid`;
  return `WITH step AS MATERIALIZED (
      SELECT t.vbid, t.fill, c.fill AS newest FROM ${table} AS t, ${cursor} AS c
      WHERE c.table_name = $1 AND c.incarnation = $2 AND c.generation = $3 AND c.cursor = $4 AND c.late = $5
        AND t.vbid > $6 ORDER BY t.vbid LIMIT $7
    ), removed AS (${remove}), ${deleteParts(
      names,
      `p.vbid > $6 AND p.vbid <= (SELECT max(vbid) FROM step)
        AND (p.vbid IN (SELECT vbid FROM removed) OR ${isUnsold(table)})`,
    )} SELECT (SELECT max(vbid) FROM step) AS last, (SELECT count(*)::int FROM removed) AS removed`;
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
  // Greater than the fill number of any row, even if the cursor row was lost.
  const now = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
  return {
    /** $10 is null if the table must not have a cursor. */
    beginFill: `INSERT INTO ${cursor} AS c (table_name, incarnation, generation, cursor, at, late, fill, has_rows, fill_ended)
      SELECT $1::text, $2::text, $3::bigint, $4::bigint, $5::bigint, $6::bigint, ${now}, found, NOT found
      FROM (SELECT EXISTS (SELECT FROM ${table}) AS found) AS looked
      ON CONFLICT (table_name) DO UPDATE SET incarnation = $2, generation = $3, cursor = $4, at = $5, late = $6,
        fill = greatest(c.fill + 1, excluded.fill), has_rows = excluded.has_rows,
        fill_ended = excluded.fill_ended
      WHERE ${EXPECTED}
      RETURNING fill_ended AS "fillEnded", NOT has_rows AND ${isEmpty} AS "isNew"`,
    deliver: deliverText(names, removals, 'deliver'),
    /** Without the parameters of removals. Violates the primary key if the table has one of the products. */
    insert: deliverText(names, removals, 'insert'),
    repair: deliverText(names, removals, 'repair'),
    endFillStep: endFillStepText(names, removals),
    /** $11: the last key of the table; null without a fill. */
    endFill: `WITH moved AS (
        UPDATE ${cursor} AS c SET incarnation = $2, generation = $3, cursor = $4, at = $5, late = $6, fill_ended = true,
          has_rows = EXISTS (SELECT FROM ${table}) WHERE ${EXPECTED} RETURNING 1
      ), ${deleteParts(names, `EXISTS (SELECT FROM moved) AND p.vbid > $11::text AND ${isUnsold(table)}`)} SELECT count(*)::int AS moved FROM moved`,
  };
}

/** The new cursor, and the cursor that must be there. */
export function markParameters(key: string, mark: Mark, written: Mark | null): unknown[] {
  const { incarnation, generation, cursor, at, late } = mark;
  const expected = [written?.generation ?? 0, written?.cursor ?? 0, written?.late ?? 0, written?.incarnation ?? null];
  return [key, incarnation, generation, cursor, at, late, ...expected];
}
