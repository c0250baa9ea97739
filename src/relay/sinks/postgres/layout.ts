import pg from 'pg';
import { SinkError } from '../../sink.ts';

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

export type TableNames = ReturnType<typeof namesOf>;

/** Names a sink's tables, quoted for SQL. @param table `name` or `schema.name` */
export function namesOf(table: string) {
  const parts = table.split('.');
  const name = parts.at(-1) ?? table;
  const sibling = (other: string): string => quoted([...parts.slice(0, -1), other].join('.'));
  return {
    table: quoted(table),
    prices: sibling(`${name.slice(0, MAX_NAME - '_prices'.length)}_prices`),
    cursor: sibling('catchword_cursor'),
  };
}

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

/**
 * The layout of each table. Without a column of `base`, catchword did not create it; `added` came in later versions.
 * - `fill` of a row: number of the fill that delivered it; a later fill overwrites the row whatever its `seq`
 * - `fill` of a cursor: number of the newest fill
 * - `fill_ended`: whether the rows that it did not deliver were removed
 * - `has_rows`: whether the table has rows, to detect one that was emptied
 * - indexes: for a shop's lookups by ISBN, and for the prices of one product
 */
const TABLES = {
  table: {
    base: {
      vbid: 'text PRIMARY KEY',
      ...FIRST_FIELDS,
      body: 'jsonb NOT NULL',
      seq: 'bigint NOT NULL',
      changed_at: 'timestamptz NOT NULL',
      removed_at: 'timestamptz',
    },
    added: { ...ADDED_FIELDS, fill: 'bigint NOT NULL DEFAULT 0' },
    indexes: ['print_isbn', 'e_isbn'],
  },
  prices: { base: { vbid: 'text NOT NULL', ...PRICE_FIELDS }, added: {}, indexes: ['vbid'] },
  cursor: {
    base: {
      table_name: 'text PRIMARY KEY',
      incarnation: 'text NOT NULL',
      generation: 'bigint NOT NULL',
      cursor: 'bigint NOT NULL',
      at: 'bigint NOT NULL',
      late: 'bigint NOT NULL',
    },
    added: {
      fill: 'bigint NOT NULL DEFAULT 0',
      fill_ended: 'boolean NOT NULL DEFAULT true',
      has_rows: 'boolean NOT NULL DEFAULT true',
      layout: 'integer NOT NULL DEFAULT 1',
    },
    indexes: [],
  },
};

/** @returns the names of the columns, and the first column of each index; undefined if the table does not exist */
async function layoutOf(db: pg.Client, table: string) {
  const { rows } = await db.query<{ columns: string[]; indexed: string[] }>({
    text: `SELECT
        array(SELECT attname::text FROM pg_attribute
              WHERE attrelid = found AND attnum > 0 AND NOT attisdropped) AS columns,
        array(SELECT attname::text FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
              WHERE indrelid = found AND indisvalid) AS indexed
      FROM to_regclass($1) AS found WHERE found IS NOT NULL`,
    values: [table],
  });
  return rows[0];
}

/**
 * Lists the SQL that creates what the database lacks.
 * @throws SinkError misconfigured for a table that catchword did not create
 */
async function missingLayout(db: pg.Client, names: TableNames): Promise<string[]> {
  const needed: string[] = [];
  for (const which of ['table', 'prices', 'cursor'] as const) {
    const { base, added, indexes } = TABLES[which];
    const name = names[which];
    const found = await layoutOf(db, name);
    const lacks = found === undefined ? [] : Object.keys(base).filter((column) => !found.columns.includes(column));
    if (lacks.length > 0) {
      const whose = `catchword did not create table ${name.replaceAll('"', '')}`;
      const message = `PostgreSQL: ${whose}: it lacks the columns ${lacks.join(', ')}. Use another one: table=NAME`;
      throw new SinkError('misconfigured', message);
    }
    const columns = Object.entries<string>(found === undefined ? { ...base, ...added } : added)
      .filter(([column]) => !found?.columns.includes(column))
      .map(([column, type]) => `${column} ${type}`);
    if (found === undefined) needed.push(`CREATE TABLE IF NOT EXISTS ${name} (${columns.join(', ')})`);
    else if (columns.length > 0) {
      needed.push(`ALTER TABLE ${name} ${columns.map((column) => `ADD COLUMN IF NOT EXISTS ${column}`).join(', ')}`);
    }
    const unindexed = indexes.filter((column) => !found?.indexed.includes(column));
    needed.push(...unindexed.map((column) => `CREATE INDEX ON ${name} (${column})`));
  }
  return needed;
}

/**
 * Creates missing tables, columns and indexes.
 * @throws SinkError misconfigured, with the SQL to run, if the user may not
 */
export async function ensureLayout(db: pg.Client, names: TableNames): Promise<void> {
  const needed = await missingLayout(db, names);
  for (const [index, text] of needed.entries()) {
    try {
      await db.query(text);
    } catch (error) {
      const isForbidden = error instanceof pg.DatabaseError && error.code === '42501';
      if (!isForbidden) throw error;
      const message = 'PostgreSQL: the user of this sink may not create or alter tables. Run as their owner:';
      throw new SinkError('misconfigured', `${message} ${needed.slice(index).join('; ')};`, { cause: error });
    }
  }
}
