import { COLUMNS } from '@catchword/catalog/fields';
import { SinkError } from '@catchword/sink-kit/sink';
import * as z from 'zod';
import {
  allTables,
  COMMENT,
  type FoundTable,
  findTables,
  layoutIn,
  mayNotCreate,
  plainNames,
  RIGHTS,
  type TableLayout,
  type TableNames,
} from '../sql/table-layout.ts';
import { type MysqlConnection, MysqlError } from './mysql-connection.ts';

/** People's words are searched without regard to case and accents. Both servers have this collation. */
const TEXT_COLLATION = 'utf8mb4_unicode_520_ci';
/** Collations that compare byte by byte. Others merge keys, `utf8mb4_bin` those with a space at the end. */
const KEY_COLLATIONS = ['utf8mb4_nopad_bin', 'utf8mb4_0900_bin'] as const;
/** Characters of a text that an index has; a text may be longer. */
const INDEXED = 100;

const COLUMN_EXISTS = 1060;
/** No right to a table; none to a database, which need not exist. */
const FORBIDDEN = [1142, 1044];

export function quoted(...names: readonly string[]): string {
  return names.map((name) => `\`${name.replaceAll('`', '``')}\``).join('.');
}

/**
 * The columns with their types. `double` has each price exactly: they have at most 15 digits. JSON is text, because the type
 * of MySQL would write numbers in another way.
 */
export function mysqlLayout(isMariaDb: boolean) {
  const binary = `CHARACTER SET utf8mb4 COLLATE ${KEY_COLLATIONS[isMariaDb ? 0 : 1]}`;
  return layoutIn({
    key: `varchar(255) ${binary}`,
    text: 'longtext',
    flag: 'boolean',
    json: `longtext ${binary}`,
    number: 'double',
    whole: 'int',
    count: 'bigint',
    time: 'datetime(3)',
    id: 'bigint AUTO_INCREMENT PRIMARY KEY',
  });
}

const answerSchema = z.tuple([z.object({ db: z.string(), user: z.string(), folds: z.coerce.number() })]);

/** Finds the names of a sink's tables. @param given `name` or `database.name` */
export async function resolveNames(db: MysqlConnection, given: string): Promise<TableNames> {
  const [name = '', asked = null] = given.split('.').reverse();
  const answer = await db.query(
    'SELECT coalesce(?, database()) AS db, current_user() AS user, @@lower_case_table_names AS folds',
    [asked],
  );
  const [{ db: schema, user, folds }] = answerSchema.parse(answer);
  const names = plainNames(name).map((one) => quoted(schema, one));
  const [table = '', prices = '', contributors = '', identifiers = '', cursor = ''] = names;
  const grantee = `'${user.replace(/@(?=[^@]*$)/, "'@'")}'`;
  const spelled = `${schema}.${name}`;
  // Where the server takes `Books` and `books` for one table, it has one position.
  const key = folds === 0 ? spelled : spelled.toLowerCase();
  const exists = (await foundTable(db, table)) !== undefined;
  return { table, prices, contributors, identifiers, cursor, key, exists, user: grantee };
}

const foundSchema = z.array(z.object({ name: z.string(), comment: z.string(), collation: z.string().nullable() }));

/** Reads a table's layout; undefined if the table does not exist. @param table quoted */
async function foundTable(db: MysqlConnection, table: string): Promise<(FoundTable & { vbid?: string }) | undefined> {
  const [schema, name] = table
    .slice(1, -1)
    .split('`.`')
    .map((one) => one.replaceAll('``', '`'));
  const columns = foundSchema.parse(
    await db.query(
      `SELECT column_name AS name, table_comment AS comment, collation_name AS collation
       FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
       WHERE table_schema = ? AND table_name = ?`,
      [schema, name],
    ),
  );
  if (columns.length === 0) return undefined;
  const vbid = columns.find((column) => column.name === 'vbid')?.collation ?? undefined;
  return { columns: columns.map((column) => column.name), comment: columns[0]?.comment ?? null, ...(vbid && { vbid }) };
}

/** The definition of a table. @param isSearched whether it has the words of products */
function definitionOf({ columns, indexes }: TableLayout, isSearched: boolean): string {
  const lines = Object.entries(columns).map(([column, type]) => {
    const name = quoted(column);
    return `${name} ${type}${type.startsWith('longtext CHARACTER') ? ` CHECK (json_valid(${name}))` : ''}`;
  });
  const keys = indexes.map((column) => `KEY (${quoted(column)}${column === 'vbid' ? '' : `(${INDEXED})`})`);
  const searched = COLUMNS.filter(({ words }) => words !== undefined).map(({ column }) => quoted(column));
  const search = isSearched ? [`FULLTEXT KEY (${searched.join(', ')})`] : [];
  return `(${[...lines, ...keys, ...search].join(', ')}) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = ${TEXT_COLLATION} COMMENT = '${COMMENT}'`;
}

/**
 * Lists the statements that create what is missing.
 * @throws SinkError misconfigured for a table that catchword did not create, or that would merge keys
 */
async function missingTables(db: MysqlConnection, names: TableNames): Promise<string[]> {
  const missing: string[] = [];
  const all = findTables(db, names, mysqlLayout(db.isMariaDb), (table) => foundTable(db, table));
  for await (const { which, name, layout, found, create } of all) {
    if (found === undefined) {
      missing.push(`${create} ${definitionOf(layout, which === 'table')}`);
      continue;
    }
    if (which === 'cursor' || KEY_COLLATIONS.some((one) => one === found.vbid)) continue;
    const collation = KEY_COLLATIONS[db.isMariaDb ? 0 : 1];
    const change = `ALTER TABLE ${name} MODIFY vbid varchar(255) CHARACTER SET utf8mb4 COLLATE ${collation} NOT NULL`;
    throw new SinkError(
      'misconfigured',
      `MySQL: the column vbid of ${name} takes some keys for the same one. ${change}`,
    );
  }
  return missing;
}

/**
 * Creates missing tables with their indexes.
 * @throws SinkError misconfigured if the user may not create them
 */
export async function ensureLayout(db: MysqlConnection, names: TableNames): Promise<void> {
  for (const statement of await missingTables(db, names)) {
    try {
      await db.query(statement);
    } catch (error) {
      const isForbidden = error instanceof MysqlError && FORBIDDEN.includes(error.errno);
      throw isForbidden ? mayNotCreate('MySQL', null, error) : error;
    }
  }
}

/**
 * Checks the tables without creating one, which the server could not undo: of a missing one, whether it may be created.
 * @returns whether there are all
 * @throws SinkError misconfigured, with the SQL to run
 */
export async function checkLayout(db: MysqlConnection, names: TableNames): Promise<boolean> {
  const missing = await missingTables(db, names);
  if (missing.length === 0) return true;
  const database = `${names.table.split('`.`')[0]}\``;
  try {
    // The statement below does not tell whether the database exists.
    await db.query(`SHOW TABLES FROM ${database}`);
    // Creates nothing, because no table has two columns of one name. The server looks at the user's rights first.
    await db.query(`CREATE TABLE ${names.table} (a int, a int)`);
  } catch (error) {
    if (error instanceof MysqlError && FORBIDDEN.includes(error.errno)) {
      const grants = allTables(names).map((table) => `GRANT ${RIGHTS} ON ${table} TO ${names.user}`);
      throw mayNotCreate('MySQL', [`CREATE DATABASE IF NOT EXISTS ${database}`, ...missing, ...grants], error);
    }
    if (!(error instanceof MysqlError) || error.errno !== COLUMN_EXISTS) throw error;
  }
  return false;
}
