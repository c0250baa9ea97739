import pg from 'pg';
import { SinkError } from '../../sink.ts';

/** Names of a sink's tables, quoted for SQL. */
export interface TableNames {
  readonly table: string;
  readonly prices: string;
  readonly cursor: string;
}

/** Grows when a table gets columns that only a fill can fill. A table with an older layout is filled again. */
export const LAYOUT = 2;

/** PostgreSQL truncates longer names, and `<table>_prices` would become the name of the table itself. */
const MAX_NAME = 63;

function quoted(name: string): string {
  return name
    .split('.')
    .map((part) => pg.escapeIdentifier(part))
    .join('.');
}

/** @param table `name` or `schema.name` */
export function namesOf(table: string): TableNames {
  const parts = table.split('.');
  const name = parts.at(-1) ?? table;
  const sibling = (other: string): string => quoted([...parts.slice(0, -1), other].join('.'));
  return {
    table: quoted(table),
    prices: sibling(`${name.slice(0, MAX_NAME - '_prices'.length)}_prices`),
    cursor: sibling('catchword_cursor'),
  };
}

type Columns = Readonly<Record<string, string>>;

const FIRST_FIELDS = {
  title: 'text',
  kind: 'text',
  format: 'text',
  publisher: 'text',
  print_isbn: 'text',
  e_isbn: 'text',
};
const ADDED_FIELDS = {
  distributable: 'boolean',
  subtitle: 'text',
  contributors: 'text',
  language: 'text',
  edition: 'text',
  cover_url: 'text',
  on_sale_date: 'text',
  off_sale_date: 'text',
};
/** Columns read from a product's body, with their types. */
export const PRODUCT_FIELDS = { ...FIRST_FIELDS, ...ADDED_FIELDS };
/** Columns of a price, with their types. */
export const PRICE_FIELDS = { sku: 'text', type: 'text', duration: 'text', currency: 'text', value: 'numeric' };

/** A table that lacks one of these was not created by catchword. */
const BASE: Columns = {
  vbid: 'text PRIMARY KEY',
  ...FIRST_FIELDS,
  body: 'jsonb NOT NULL',
  seq: 'bigint NOT NULL',
  changed_at: 'timestamptz NOT NULL',
  removed_at: 'timestamptz',
};
/**
 * Added in later versions to existing tables.
 * - fill: number of the fill that delivered the row; a later fill overwrites the row whatever its `seq`
 */
const ADDED: Columns = { ...ADDED_FIELDS, fill: 'bigint NOT NULL DEFAULT 0' };
const PRICES: Columns = { vbid: 'text NOT NULL', ...PRICE_FIELDS };
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
 * - fill_ended: whether the rows that it did not deliver were removed
 * - has_rows: whether the table has rows, to detect one that was emptied
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

/** @returns the names of the columns; null if the table does not exist */
async function columnsOf(db: pg.Client, table: string): Promise<Set<string> | null> {
  const { rows } = await db.query<{ found: boolean; names: string[] }>({
    text: `SELECT to_regclass($1) IS NOT NULL AS found, array(SELECT attname::text FROM pg_attribute
             WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped) AS names`,
    values: [table],
  });
  const [row] = rows;
  return row?.found ? new Set(row.names) : null;
}

/** @returns the first columns of the table's indexes */
async function indexedColumns(db: pg.Client, table: string): Promise<Set<string>> {
  const { rows } = await db.query<{ name: string }>({
    text: `SELECT attname AS name FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
           WHERE indrelid = to_regclass($1) AND indisvalid`,
    values: [table],
  });
  return new Set(rows.map(({ name }) => name));
}

/**
 * Lists the SQL that creates what the database lacks.
 * @throws SinkError misconfigured for a table that catchword did not create
 */
async function missingLayout(db: pg.Client, table: string, names: TableNames): Promise<string[]> {
  const needed: string[] = [];
  const columns = await columnsOf(db, names.table);
  if (columns === null) needed.push(create(names.table, { ...BASE, ...ADDED }));
  else {
    const lacks = Object.keys(BASE).filter((name) => !columns.has(name));
    if (lacks.length > 0) {
      const message = `PostgreSQL: catchword did not create table ${table}: it lacks the columns ${lacks.join(', ')}`;
      throw new SinkError('misconfigured', `${message}. Use another one: table=NAME`);
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
  // For a shop's lookups by ISBN, and for the prices of one product.
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
 * Creates missing tables, columns and indexes.
 * @throws SinkError misconfigured, with the SQL to run, if the user may not
 */
export async function ensureLayout(db: pg.Client, table: string, names: TableNames): Promise<void> {
  const needed = await missingLayout(db, table, names);
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
