import pg from 'pg';
import { SinkError } from '../sink.ts';

/** The tables of one sink, quoted for SQL. */
export interface Names {
  readonly table: string;
  readonly prices: string;
  readonly cursor: string;
}

/**
 * Grows when a table gets columns that only a fill can give a value to. A cursor row of an older layout is filled again.
 */
export const LAYOUT = 2;

/** PostgreSQL cuts longer names off, and `<table>_prices` would become the name of the table itself. */
const MAX_NAME = 63;

export function quoted(name: string): string {
  return name
    .split('.')
    .map((part) => pg.escapeIdentifier(part))
    .join('.');
}

/** @param table `name` or `schema.name` */
export function namesOf(table: string): Names {
  const parts = table.split('.');
  const name = parts.at(-1) ?? table;
  const besides = (other: string): string => quoted([...parts.slice(0, -1), other].join('.'));
  return {
    table: quoted(table),
    prices: besides(`${name.slice(0, MAX_NAME - '_prices'.length)}_prices`),
    cursor: besides('catchword_cursor'),
  };
}

type Columns = Readonly<Record<string, string>>;

/** Without these, it is not a table that catchword made. */
const BASE: Columns = {
  vbid: 'text PRIMARY KEY',
  title: 'text',
  kind: 'text',
  format: 'text',
  publisher: 'text',
  print_isbn: 'text',
  e_isbn: 'text',
  body: 'jsonb NOT NULL',
  seq: 'bigint NOT NULL',
  changed_at: 'timestamptz NOT NULL',
  removed_at: 'timestamptz',
};
/**
 * Added later; a table without them is altered.
 * - fill: which fill delivered the row; a row of an earlier one is overwritten whatever its `seq`
 */
const ADDED: Columns = {
  distributable: 'boolean',
  subtitle: 'text',
  contributors: 'text',
  language: 'text',
  edition: 'text',
  cover_url: 'text',
  on_sale_date: 'text',
  off_sale_date: 'text',
  fill: 'bigint NOT NULL DEFAULT 0',
};
const PRICES: Columns = {
  vbid: 'text NOT NULL',
  sku: 'text',
  type: 'text',
  duration: 'text',
  currency: 'text',
  value: 'numeric',
};
const CURSOR: Columns = {
  table_name: 'text PRIMARY KEY',
  incarnation: 'text NOT NULL',
  generation: 'bigint NOT NULL',
  cursor: 'bigint NOT NULL',
  at: 'bigint NOT NULL',
  late: 'bigint NOT NULL',
};
/**
 * - fill: number of the newest fill
 * - fill_ended: rows that it did not deliver are removed
 * - has_rows: whether the table has rows, so that one that was emptied is noticed
 */
const CURSOR_ADDED: Columns = {
  fill: 'bigint NOT NULL DEFAULT 0',
  fill_ended: 'boolean NOT NULL DEFAULT true',
  has_rows: 'boolean NOT NULL DEFAULT true',
  layout: 'integer NOT NULL DEFAULT 1',
};

function create(table: string, columns: Columns): string {
  const list = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
  return `CREATE TABLE IF NOT EXISTS ${table} (${list.join(', ')})`;
}

function alter(table: string, columns: Columns, known: ReadonlySet<string>): string[] {
  const missing = Object.entries(columns).filter(([name]) => !known.has(name));
  const list = missing.map(([name, type]) => `ADD COLUMN IF NOT EXISTS ${name} ${type}`);
  return list.length === 0 ? [] : [`ALTER TABLE ${table} ${list.join(', ')}`];
}

/** @returns the table's columns; null where there is no such table */
async function columnsOf(db: pg.Client, table: string): Promise<Set<string> | null> {
  const { rows } = await db.query<{ found: boolean; names: string[] }>({
    text: `SELECT to_regclass($1) IS NOT NULL AS found, array(SELECT attname::text FROM pg_attribute
             WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped) AS names`,
    values: [table],
  });
  const [row] = rows;
  return row?.found ? new Set(row.names) : null;
}

/** @returns columns that some index of the table begins with */
async function indexedColumns(db: pg.Client, table: string): Promise<Set<string>> {
  const { rows } = await db.query<{ name: string }>({
    text: `SELECT attname AS name FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
           WHERE indrelid = to_regclass($1) AND indisvalid`,
    values: [table],
  });
  return new Set(rows.map(({ name }) => name));
}

/**
 * The SQL that makes what this sink needs and the database does not have yet; nothing is changed.
 * @throws SinkError misconfigured for a table of somebody else's
 */
async function missing(db: pg.Client, table: string, names: Names): Promise<string[]> {
  const needed: string[] = [];
  const columns = await columnsOf(db, names.table);
  if (columns === null) needed.push(create(names.table, { ...BASE, ...ADDED }));
  else {
    const lacks = Object.keys(BASE).filter((name) => !columns.has(name));
    if (lacks.length > 0) {
      const message = `PostgreSQL: table ${table} was not made by catchword: it has no column ${lacks.join(', ')}`;
      throw new SinkError('misconfigured', `${message}. Name another one with table=NAME`);
    }
    needed.push(...alter(names.table, ADDED, columns));
  }
  if ((await columnsOf(db, names.prices)) === null) needed.push(create(names.prices, PRICES));
  const cursorColumns = await columnsOf(db, names.cursor);
  needed.push(
    ...(cursorColumns === null
      ? [create(names.cursor, { ...CURSOR, ...CURSOR_ADDED })]
      : alter(names.cursor, CURSOR_ADDED, cursorColumns)),
  );
  // The look-ups of a shop; and, of prices, those of one product.
  const wanted = [
    [names.table, ['print_isbn', 'e_isbn']],
    [names.prices, ['vbid']],
  ] as const;
  for (const [name, indexes] of wanted) {
    const known = await indexedColumns(db, name);
    for (const column of indexes) if (!known.has(column)) needed.push(`CREATE INDEX ON ${name} (${column})`);
  }
  return needed;
}

function isForbidden(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '42501';
}

/**
 * Makes what is missing: tables, columns, indexes.
 * @throws SinkError misconfigured, with the SQL to run, where the user may not
 */
export async function ensureLayout(db: pg.Client, table: string, names: Names): Promise<void> {
  const needed = await missing(db, table, names);
  for (const [index, text] of needed.entries()) {
    try {
      await db.query(text);
    } catch (error) {
      if (!isForbidden(error)) throw error;
      const rest = needed.slice(index).map((one) => `${one.replace(/\s+/g, ' ')};`);
      const message = 'PostgreSQL: the user of this sink may not create or alter tables. Run as their owner:';
      throw new SinkError('misconfigured', `${message} ${rest.join(' ')}`, { cause: error });
    }
  }
}
