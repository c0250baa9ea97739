import { COLUMNS, PART_NAMES, PARTS, type Part, STORED } from '@catchword/catalog/fields';
import { SinkError } from '@catchword/sink-kit/sink';

/* The tables of a sink in a database, whatever its kind: their names, columns and owners. */

/** The comment of every table that catchword made. It moves with the table, by a dump as well. */
export const COMMENT = 'catchword made this table: it replaces and removes rows';

/**
 * A table, maybe with its schema. PostgreSQL truncates names to 63 characters: two longer ones would share
 * `<table>_contributors`. MySQL takes 64.
 */
export type Removals = 'delete' | 'tombstone';

/** A connection to a database. */
export interface SqlClient {
  /** The product, for people. */
  readonly server: string;
  /** Runs a statement, which sees one moment of all tables. @returns the rows of a SELECT */
  readonly query: (sql: string, values?: readonly unknown[]) => Promise<readonly unknown[]>;
  /** The parameter number `n` of a statement. */
  readonly parameter: (n: number) => string;
  readonly end: () => Promise<void>;
}

/** Runs `work` in a transaction, and ends it with `end`; after an error, with ROLLBACK. */
export async function inTransaction<T>(
  { query }: Pick<SqlClient, 'query'>,
  end: 'COMMIT' | 'ROLLBACK',
  work: () => Promise<T>,
): Promise<T> {
  await query('START TRANSACTION');
  try {
    const result = await work();
    await query(end);
    return result;
  } catch (error) {
    // MySQL undoes only the statement that waited too long for a lock. Report the first error, not one of ROLLBACK.
    await query('ROLLBACK').catch(() => {});
    throw error;
  }
}

export async function hasRows({ query }: SqlClient, table: string): Promise<boolean> {
  return (await query(`SELECT 1 FROM ${table} LIMIT 1`)).length > 0;
}

/** Tables by their full names, quoted for SQL. */
export interface TableNames extends Readonly<Record<'table' | Part | 'cursor', string>> {
  /** `schema.name` of the table, not quoted: the key of its cursor row. */
  readonly key: string;
  readonly exists: boolean;
  /** Quoted. */
  readonly user: string;
}

export interface TableOptions {
  /** As configured. */
  readonly table: string;
  readonly names: TableNames;
  readonly removals: Removals;
}

/** Names of a sink's tables without their schema: the products, each part, the cursors. */
export function plainNames(table: string): readonly string[] {
  return [table, ...PART_NAMES.map((part) => `${table}_${part}`), 'catchword_cursor'];
}

/** The SQL type of each kind of column. Keys are compared byte by byte. */
type Types = Readonly<Record<'key' | 'text' | 'flag' | 'json' | 'number' | 'whole' | 'count' | 'time' | 'id', string>>;

/** Columns with their SQL types. */
export type Columns = Readonly<Record<string, string>>;
export interface TableLayout {
  readonly columns: Columns;
  readonly indexes: readonly string[];
}

const KIND_OF: Readonly<Record<string, keyof Types>> = {
  sellable: 'flag',
  texts: 'json',
  number: 'number',
  whole: 'whole',
};

/**
 * The layout of each table. catchword did not create a table that lacks one of the columns.
 * - `has_rows`: whether the table has rows, to detect one that was emptied
 * - id: the key of a part, which programs such as Django need. A product's parts are replaced with its row
 * - indexes: for a shop's lookups by ISBN and other identifiers, and for the parts of one product
 */
export function layoutIn(types: Types) {
  const typesOf = (fields: readonly { readonly column: string; readonly form: string }[]): Columns =>
    Object.fromEntries(fields.map(({ column, form }) => [column, types[KIND_OF[form] ?? 'text']]));
  /** Columns read from a product's body, with their types. */
  const products = typesOf(COLUMNS);
  /** Columns of parts, with their types. */
  const partColumns = (part: Part): Columns => ({ vbid: types.key, ...typesOf(PARTS[part]) });
  const parts = Object.fromEntries(PART_NAMES.map((part) => [part, partColumns(part)])) as Record<Part, Columns>;
  /** What rows have of a living product, in the order of `ProductRows`. */
  const living: Columns = { vbid: types.key, ...products, body: types.json, seq: types.count, changed_at: types.time };
  const partTable = (part: Part, ...indexes: string[]): TableLayout => ({
    columns: { ...parts[part], id: types.id, vbid: `${types.key} NOT NULL` },
    indexes,
  });
  const tables: Readonly<Record<'table' | Part | 'cursor', TableLayout>> = {
    table: {
      columns: {
        vbid: `${types.key} PRIMARY KEY`,
        ...products,
        body: `${types.json} NOT NULL`,
        seq: `${types.count} NOT NULL`,
        changed_at: `${types.time} NOT NULL`,
        removed_at: types.time,
      },
      indexes: STORED.filter(({ form }) => form === 'isbn').map(({ column }) => column),
    },
    prices: partTable('prices', 'vbid'),
    contributors: partTable('contributors', 'vbid'),
    identifiers: partTable('identifiers', 'vbid', 'value'),
    cursor: {
      columns: {
        table_name: `${types.key} PRIMARY KEY`,
        incarnation: `${types.key} NOT NULL`,
        ...Object.fromEntries(['generation', 'cursor', 'at', 'late'].map((name) => [name, `${types.count} NOT NULL`])),
        has_rows: `${types.flag} NOT NULL`,
      },
      indexes: [],
    },
  };
  return { products, living, parts, tables };
}

/** In the order in which they are created. */
export const TABLES = ['cursor', 'table', ...PART_NAMES] as const;

/** A table as the database has it. */
export interface FoundTable {
  readonly columns: readonly string[];
  readonly comment: string | null;
}

/**
 * Looks for the tables, in the order in which they are created, and checks that each is for catchword: its comment says so,
 * or it has a cursor row, as one has that an administrator created without the comment. A table without rows may be anybody's.
 * @param find reads a table's layout
 * @throws SinkError misconfigured
 */
export async function* findTables<Found extends FoundTable>(
  db: SqlClient,
  names: TableNames,
  { tables }: ReturnType<typeof layoutIn>,
  find: (table: string) => Promise<Found | undefined>,
) {
  let hasCursor = false;
  const isFed = async (): Promise<boolean> => {
    const row = `SELECT 1 FROM ${names.cursor} WHERE table_name = ${db.parameter(1)}`;
    return hasCursor && (await db.query(row, [names.key])).length > 0;
  };
  for (const which of TABLES) {
    const [name, layout] = [names[which], tables[which]];
    const found = await find(name);
    const isMarked = found?.comment?.startsWith(COMMENT) === true;
    const lacks = Object.keys(layout.columns).filter((column) => found?.columns.includes(column) === false);
    const notOurs = (who: string, why: string): SinkError => {
      const message = `${who} table ${name.replaceAll(/["`]/g, '')}: ${why}. Use another one: table=NAME`;
      return new SinkError('misconfigured', `${db.server}: ${message}`);
    };
    if (lacks.length > 0) {
      const who = isMarked ? 'another version of catchword created' : 'catchword did not create';
      throw notOurs(who, `it lacks the columns ${lacks.join(', ')}`);
    }
    if (which === 'cursor') hasCursor = found !== undefined;
    else if (found !== undefined && !isMarked && !(await isFed()) && (await hasRows(db, name))) {
      throw notOurs('catchword did not create', 'it has rows of another application');
    }
    // A table that another application creates meanwhile must not count as ours. All sinks share the cursor table.
    const create = `CREATE TABLE ${which === 'cursor' ? 'IF NOT EXISTS ' : ''}${name}`;
    yield { which, name, layout, found, create };
  }
}

/** The error of a user who may not create tables. @param statements what to run; shown only in `doctor` */
export function mayNotCreate(server: string, statements: readonly string[] | null, cause: unknown): SinkError {
  const toDo =
    statements === null
      ? 'See the SQL to run: npx catchword doctor'
      : `Run as their owner:\n${statements.join(';\n')};`;
  return new SinkError('misconfigured', `${server}: the user of this sink may not create tables. ${toDo}`, { cause });
}

/** The rights that a sink needs once its tables exist. */
export const RIGHTS = 'SELECT, INSERT, UPDATE, DELETE';

/** All tables of a sink. */
export function allTables(names: TableNames): string[] {
  return [names.table, ...PART_NAMES.map((part) => names[part]), names.cursor];
}
