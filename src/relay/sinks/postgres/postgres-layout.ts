import pg from 'pg';
import { COLUMNS, PART_NAMES, PARTS, type Part, STORED } from '../../../catalog/fields.ts';
import { SinkError } from '../../sink.ts';

/** PostgreSQL truncates longer names, and `<table>_prices` would become the name of the table itself. */
const MAX_NAME = 63;

/** The comment of every table that catchword made. It moves with the table, by pg_dump as well. */
const COMMENT = 'catchword made this table: it replaces and removes rows';

/** Tables by their full names, quoted for SQL. */
export interface TableNames extends Readonly<Record<'table' | Part | 'cursor', string>> {
  /** `schema.name` of the table, not quoted: the key of its cursor row. */
  readonly key: string;
  readonly exists: boolean;
  /** Quoted. */
  readonly user: string;
}

/**
 * Finds the schemas of a sink's tables; of missing ones, the schema to create them in. Later statements use full names: a
 * pooler may hand out a connection with the `search_path` of another application.
 * @param given `name` or `schema.name`
 */
export async function resolveNames(db: pg.Client, given: string): Promise<TableNames> {
  const [name = '', schema = null] = given.split('.').reverse();
  const parts = PART_NAMES.map((part) => `${name.slice(0, MAX_NAME - part.length - 1)}_${part}`);
  const all = [name, ...parts, 'catchword_cursor'];
  const quoted = (parts: readonly (string | null)[]): string =>
    parts.flatMap((part) => (part === null ? [] : pg.escapeIdentifier(part))).join('.');
  const { rows } = await inTransaction(db, 'COMMIT', async () => {
    await db.query(`SELECT set_config('search_path', reset_val, true) FROM pg_settings WHERE name = 'search_path'`);
    return await db.query<{ found: string | null; schema: string | null; user: string }>({
      text: `SELECT nspname::text AS found, coalesce($2, current_schema()::text) AS schema, current_user::text AS user
        FROM unnest($1::text[]) WITH ORDINALITY AS asked (name, place)
        LEFT JOIN pg_class c ON c.oid = to_regclass(name) LEFT JOIN pg_namespace n ON n.oid = relnamespace ORDER BY place`,
      values: [all.map((one) => quoted([schema, one])), schema],
    });
  });
  const [table = '', prices = '', contributors = '', identifiers = '', cursor = ''] = all.map((one, index) => {
    const row = rows[index];
    return quoted([row?.found ?? row?.schema ?? null, one]);
  });
  const found = rows[0]?.found ?? null;
  const key = `${found ?? rows[0]?.schema ?? ''}.${name}`;
  const user = quoted([rows[0]?.user ?? '']);
  return { table, prices, contributors, identifiers, cursor, key, exists: found !== null, user };
}

/** Runs `work` in a transaction, and ends it with `end`; after an error, with ROLLBACK. */
export async function inTransaction<T>(db: pg.Client, end: 'COMMIT' | 'ROLLBACK', work: () => Promise<T>): Promise<T> {
  await db.query('BEGIN');
  try {
    const result = await work();
    await db.query(end);
    return result;
  } catch (error) {
    // Report the first error, not one of ROLLBACK.
    await db.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

const TYPES: Record<string, string> = { sellable: 'boolean', texts: 'jsonb', number: 'numeric', whole: 'integer' };
const typesOf = (fields: readonly { readonly column: string; readonly form: string }[]) =>
  Object.fromEntries(fields.map(({ column, form }) => [column, TYPES[form] ?? 'text']));
/** Columns read from a product's body, with their types. */
export const PRODUCT_COLUMNS = typesOf(COLUMNS);
/** Columns of parts, with their types. */
export const PART_COLUMNS = Object.fromEntries(
  PART_NAMES.map((part) => [part, typesOf([{ column: 'vbid', form: 'text' }, ...PARTS[part]])]),
) as Record<Part, Record<string, string>>;

const KEYS = { id: 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY', vbid: 'text NOT NULL' };
const partTable = (part: Part, ...indexes: string[]) => ({ columns: { ...PART_COLUMNS[part], ...KEYS }, indexes });

/**
 * The layout of each table. catchword did not create a table that lacks one of the columns.
 * - `fill` of a row: number of the fill that delivered it; a later fill overwrites the row whatever its `seq`
 * - `fill` of a cursor: number of the newest fill
 * - `fill_ended`: whether the rows that it did not deliver were removed
 * - `has_rows`: whether the table has rows, to detect one that was emptied
 * - id: the key of a part, which programs such as Django need. A product's parts are replaced with its row
 * - indexes: for a shop's lookups by ISBN and other identifiers, and for the parts of one product
 */
const TABLES = {
  table: {
    columns: {
      vbid: 'text PRIMARY KEY',
      ...typesOf(COLUMNS),
      body: 'jsonb NOT NULL',
      seq: 'bigint NOT NULL',
      changed_at: 'timestamptz NOT NULL',
      removed_at: 'timestamptz',
      fill: 'bigint NOT NULL DEFAULT 0',
    },
    indexes: STORED.filter(({ form }) => form === 'isbn').map(({ column }) => column),
  },
  prices: partTable('prices', 'vbid'),
  contributors: partTable('contributors', 'vbid'),
  identifiers: partTable('identifiers', 'vbid', 'value'),
  cursor: {
    columns: {
      table_name: 'text PRIMARY KEY',
      incarnation: 'text NOT NULL',
      generation: 'bigint NOT NULL',
      cursor: 'bigint NOT NULL',
      at: 'bigint NOT NULL',
      late: 'bigint NOT NULL',
      fill: 'bigint NOT NULL',
      fill_ended: 'boolean NOT NULL',
      has_rows: 'boolean NOT NULL',
    },
    indexes: [],
  },
};

/** Reads a table's layout from the catalog of PostgreSQL; undefined if the table does not exist. */
async function layoutOf(db: pg.Client, table: string) {
  const { rows } = await db.query<{
    columns: string[];
    indexed: string[];
    comment: string | null;
    isOwner: boolean;
    mayIndex: boolean;
  }>({
    text: `SELECT
        array(SELECT attname::text FROM pg_attribute
              WHERE attrelid = found AND attnum > 0 AND NOT attisdropped) AS columns,
        array(SELECT attname::text FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
              WHERE indrelid = found AND indisvalid) AS indexed,
        obj_description(found, 'pg_class') AS comment,
        pg_has_role(relowner, 'USAGE') AS "isOwner",
        pg_has_role(relowner, 'USAGE') AND has_schema_privilege(relnamespace, 'CREATE') AS "mayIndex"
      FROM pg_class, to_regclass($1) AS found WHERE pg_class.oid = found`,
    values: [table],
  });
  return rows[0];
}

type Layout = NonNullable<Awaited<ReturnType<typeof layoutOf>>>;

/** Whether catchword has fed the table: it then has a cursor row. */
async function isFed(db: pg.Client, { cursor, key }: TableNames): Promise<boolean> {
  if ((await layoutOf(db, cursor)) === undefined) return false;
  const { rowCount } = await db.query({ text: `SELECT FROM ${cursor} WHERE table_name = $1`, values: [key] });
  return rowCount !== 0;
}

/**
 * Checks that a table is for catchword: its comment says so, or it has a cursor row, as one has that an administrator
 * created without the comment. A table without rows may be anybody's.
 * @throws SinkError misconfigured
 */
async function rejectForeign(db: pg.Client, names: TableNames, name: string, found: Layout): Promise<void> {
  if (found.comment?.startsWith(COMMENT) === true || (await isFed(db, names))) return;
  const { rowCount } = await db.query(`SELECT FROM ${name} LIMIT 1`);
  if (rowCount !== 0) throw notOurs(name, 'it has rows of another application');
}

function notOurs(name: string, why: string, isOfOtherVersion = false): SinkError {
  const who = isOfOtherVersion ? 'another version of catchword created' : 'catchword did not create';
  const message = `${who} table ${name.replaceAll('"', '')}: ${why}. Use another one: table=NAME`;
  return new SinkError('misconfigured', `PostgreSQL: ${message}`);
}

interface Missing {
  readonly sql: string;
  /** Whether deliveries fail without it. */
  readonly isRequired: boolean;
  readonly isAllowed: boolean;
}

/**
 * Lists what the database lacks, what deliveries need first.
 * @throws SinkError misconfigured for a table that catchword did not create
 */
async function missingLayout(db: pg.Client, names: TableNames): Promise<Missing[]> {
  const missing: Missing[] = [];
  for (const which of ['cursor', 'table', ...PART_NAMES] as const) {
    const { columns, indexes } = TABLES[which];
    const name = names[which];
    const found = await layoutOf(db, name);
    const lacks = found === undefined ? [] : Object.keys(columns).filter((column) => !found.columns.includes(column));
    if (lacks.length > 0) {
      throw notOurs(name, `it lacks the columns ${lacks.join(', ')}`, found?.comment?.startsWith(COMMENT));
    }
    if (found !== undefined && which !== 'cursor') await rejectForeign(db, names, name, found);
    const comment = `COMMENT ON TABLE ${name} IS '${COMMENT}'`;
    if (found === undefined) {
      // A table that another application creates meanwhile must not get the comment. All sinks share the cursor table.
      const create = which === 'cursor' ? 'CREATE TABLE IF NOT EXISTS' : 'CREATE TABLE';
      const list = Object.entries(columns).map(([column, type]) => `${column} ${type}`);
      const sql = `${create} ${name} (${list.join(', ')}); ${comment}`;
      missing.push({ isRequired: true, isAllowed: true, sql });
    } else if (found.comment === null) missing.push({ isRequired: false, isAllowed: found.isOwner, sql: comment });
    const unindexed = indexes.filter((column) => !found?.indexed.includes(column));
    const index = { isRequired: false, isAllowed: found?.mayIndex ?? true };
    // Only a hash takes a value of any length.
    const on = (column: string): string => `${name} USING ${column === 'value' ? 'hash' : 'btree'} (${column})`;
    missing.push(...unindexed.map((column) => ({ ...index, sql: `CREATE INDEX ON ${on(column)}` })));
  }
  return missing.sort((a, b) => Number(b.isRequired) - Number(a.isRequired));
}

/**
 * Creates missing tables, indexes and comments. Without the right to them, indexes and comments are left out.
 * @throws SinkError misconfigured, if asked with the SQL to run, if the user may not create what deliveries need
 */
export async function ensureLayout(db: pg.Client, names: TableNames, showsSql = false): Promise<void> {
  const missing = await missingLayout(db, names);
  for (const { sql } of missing.filter(({ isRequired, isAllowed }) => isRequired || isAllowed)) {
    try {
      await db.query(sql);
    } catch (error) {
      const isForbidden = error instanceof pg.DatabaseError && error.code === '42501';
      if (!isForbidden) throw error;
      const tables = [names.table, ...PART_NAMES.map((part) => names[part]), names.cursor].join(', ');
      const grant = `GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables} TO ${names.user}`;
      const all = [...missing.map((one) => one.sql), grant].join(';\n');
      const toDo = showsSql ? `Run as their owner:\n${all};` : 'See the SQL to run: npx catchword doctor';
      const message = `PostgreSQL: the user of this sink may not create tables. ${toDo}`;
      throw new SinkError('misconfigured', message, { cause: error });
    }
  }
}

/** Removes the tables of a sink, and its row in the table that all sinks share. */
export async function dropLayout(db: pg.Client, names: TableNames): Promise<void> {
  await ensureLayout(db, names);
  await inTransaction(db, 'COMMIT', async () => {
    await db.query(`DROP TABLE ${[names.table, ...PART_NAMES.map((part) => names[part])].join(', ')}`);
    await db.query({ text: `DELETE FROM ${names.cursor} WHERE table_name = $1`, values: [names.key] });
  });
}
