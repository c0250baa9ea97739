import pg from 'pg';
import {
  allTables,
  COMMENT,
  findTables,
  inTransaction,
  layoutIn,
  mayNotCreate,
  plainNames,
  RIGHTS,
  type TableNames,
} from '../sql/table-layout.ts';
import type { PostgresConnection } from './postgres-connection.ts';

/**
 * Finds the schema of a sink's tables: where the table of products is, or is to be created. All are in one schema, so that
 * `products` and `shop.products` have one position. Later statements use full names: a pooler may hand out a connection with
 * the `search_path` of another application.
 * @param given `name` or `schema.name`
 */
export async function resolveNames(db: PostgresConnection, given: string): Promise<TableNames> {
  const [name = '', schema = null] = given.split('.').reverse();
  const asked = [...(schema === null ? [] : [schema]), name].map(pg.escapeIdentifier).join('.');
  const [found] = await inTransaction(db, 'COMMIT', async () => {
    await db.query(`SELECT set_config('search_path', reset_val, true) FROM pg_settings WHERE name = 'search_path'`);
    return await db.query<{ exists: boolean; schema: string | null; user: string }>(
      `SELECT nspname IS NOT NULL AS exists, coalesce(nspname::text, $2, current_schema()::text) AS schema,
         current_user::text AS user
       FROM (SELECT) AS one LEFT JOIN pg_class c ON c.oid = to_regclass($1) LEFT JOIN pg_namespace n ON n.oid = relnamespace`,
      [asked, schema],
    );
  });
  const { exists = false, user = '' } = found ?? {};
  const place = found?.schema ?? '';
  const [table = '', prices = '', contributors = '', identifiers = '', cursor = ''] = plainNames(name).map(
    (one) => (place === '' ? '' : `${pg.escapeIdentifier(place)}.`) + pg.escapeIdentifier(one),
  );
  const key = `${place}.${name}`;
  return { table, prices, contributors, identifiers, cursor, key, exists, user: pg.escapeIdentifier(user) };
}

export const LAYOUT = layoutIn({
  key: 'text',
  text: 'text',
  flag: 'boolean',
  json: 'jsonb',
  number: 'numeric',
  whole: 'integer',
  count: 'bigint',
  time: 'timestamptz',
  id: 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
});

/** Reads a table's layout from the catalog of PostgreSQL; undefined if the table does not exist. */
async function layoutOf(db: PostgresConnection, table: string) {
  const [found] = await db.query<{
    columns: string[];
    indexed: string[];
    comment: string | null;
    isOwner: boolean;
    mayIndex: boolean;
  }>(
    `SELECT
        array(SELECT attname::text FROM pg_attribute
              WHERE attrelid = found AND attnum > 0 AND NOT attisdropped) AS columns,
        array(SELECT attname::text FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
              WHERE indrelid = found AND indisvalid) AS indexed,
        obj_description(found, 'pg_class') AS comment,
        pg_has_role(relowner, 'USAGE') AS "isOwner",
        pg_has_role(relowner, 'USAGE') AND has_schema_privilege(relnamespace, 'CREATE') AS "mayIndex"
      FROM pg_class, to_regclass($1) AS found WHERE pg_class.oid = found`,
    [table],
  );
  return found;
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
async function missingLayout(db: PostgresConnection, names: TableNames): Promise<Missing[]> {
  const missing: Missing[] = [];
  const all = findTables(db, names, LAYOUT, (table) => layoutOf(db, table));
  for await (const { name, layout, found, create } of all) {
    const { columns, indexes } = layout;
    const comment = `COMMENT ON TABLE ${name} IS '${COMMENT}'`;
    if (found === undefined) {
      const list = Object.entries(columns).map(([column, type]) => `${column} ${type}`);
      const sql = `${create} (${list.join(', ')}); ${comment}`;
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
export async function ensureLayout(db: PostgresConnection, names: TableNames, showsSql = false): Promise<void> {
  const missing = await missingLayout(db, names);
  for (const { sql } of missing.filter(({ isRequired, isAllowed }) => isRequired || isAllowed)) {
    try {
      await db.query(sql);
    } catch (error) {
      const isForbidden = error instanceof pg.DatabaseError && error.code === '42501';
      if (!isForbidden) throw error;
      const grant = `GRANT ${RIGHTS} ON ${allTables(names).join(', ')} TO ${names.user}`;
      const statements = [...missing.map((one) => one.sql), grant];
      throw mayNotCreate('PostgreSQL', showsSql ? statements : null, error);
    }
  }
}
