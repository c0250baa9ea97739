import { STORED, type Stored, SUMMARY, type Summary } from '@catchword/catalog/fields';
import { type PageItems, ROW } from '@catchword/catalog/page-items';
import type { Product } from '@catchword/catalog/product';
import BetterSqlite from 'better-sqlite3';
import { listed, type Queries } from '../schema/queries.ts';
import type { products } from '../schema/schema.ts';

const ofIsbn = (column: string): string =>
  `CREATE INDEX products_${column} ON products (${column}) WHERE ${column} IS NOT NULL`;

const CREATE_LOOKUP = {
  products_changed_at: `CREATE INDEX products_changed_at
    ON products (strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000.0, 'unixepoch'))`,
  products_print_isbn: ofIsbn('print_isbn'),
  products_e_isbn: ofIsbn('e_isbn'),
};

type Lookup = keyof typeof CREATE_LOOKUP;

/**
 * SQLite sorts with as much memory as its cache may take, and has the cache as well. 8 MiB instead of 32 saves a tenth of
 * what a first load takes, and is as fast, also with 10,000,000 products (measured).
 */
const SORT_CACHE = -8192;

/** Indexes that only readers need, and that a mirror does not have while it is filled. */
export const LOOKUPS = Object.keys(CREATE_LOOKUP) as readonly Lookup[];

/** What applying a page needs to know of a stored product. `removed` marks a tombstone. */
export type KnownProduct = Pick<ProductRow, 'id' | 'body' | 'changedSeq'> & { readonly removed: boolean };

/** See schema.ts. */
export interface ProductRow extends Readonly<Omit<typeof products.$inferSelect, 'firstSeenAt' | 'withdrawn'>> {
  readonly firstSeenAt: number;
}

type LivingProduct = Pick<ProductRow, 'vbid' | 'title' | 'body'>;

export type SearchHit = Pick<ProductRow, 'vbid' | keyof Summary>;

/** What a list shows of a product. */
export type NewestProduct = SearchHit & Pick<ProductRow, 'changedAt' | 'removedAt'>;

const NAMES = ['id', 'vbid', 'changed_at', 'changed_seq', ...STORED.map(({ column }) => column), 'body', 'withdrawn'];
const COLUMNS = NAMES.join(', ');
const ISBNS = STORED.filter(({ form }) => form === 'isbn');
const PLAIN = STORED.filter(({ form }) => form !== 'isbn');
/** SQL: the text of an item of `PageItems`. */
const TEXT = 'CAST(substr(:bytes, item.value ->> 1, item.value ->> 2) AS TEXT)';
/** Rows per query when all products are read. */
const READ_BATCH = 1000;

const WHOLE = `id, vbid, body, ${STORED.map(({ column, name }) => `${column} AS ${name}`).join(', ')},
  coalesce(first_seen_at, changed_at) AS firstSeenAt, changed_at AS changedAt, changed_seq AS changedSeq,
  removed_at AS removedAt`;

/** What lists show of a product. */
export const LISTED = ['products.vbid', ...SUMMARY.map(({ column, name }) => listed(column, name))].join();

export type ProductReader = ReturnType<typeof createProductReader>;

export function createProductReader(queries: Queries) {
  const { exec, row, rows, tuple, values, number } = queries;
  const find = tuple<[vbid: string], [id: number, body: string, changedSeq: number, removedAt: number | null]>(
    'SELECT id, body, changed_seq, removed_at FROM products WHERE vbid = ?',
  );
  const withIsbn = rows<[{ forms: string }], ProductRow>(
    `SELECT ${WHOLE} FROM products WHERE id IN (
       SELECT id FROM products WHERE print_isbn IS NOT NULL AND print_isbn IN (SELECT value FROM json_each(:forms))
       UNION SELECT id FROM products WHERE e_isbn IS NOT NULL AND e_isbn IN (SELECT value FROM json_each(:forms))
     ) ORDER BY vbid LIMIT 20`,
  );
  const livingAfter = rows<[string], LivingProduct>(
    `SELECT vbid, title, body FROM products WHERE vbid > ? AND removed_at IS NULL ORDER BY vbid LIMIT ${READ_BATCH}`,
  );
  const livingPage = rows<[after: string, asOf: number, limit: number], ProductRow>(
    `SELECT ${WHOLE} FROM products WHERE vbid > ? AND (removed_at IS NULL OR changed_seq > ?) ORDER BY vbid LIMIT ?`,
  );
  const lookups = number(
    `SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name IN ('${LOOKUPS.join("', '")}')`,
  );
  return {
    /**
     * For each item of a page: the id of the living product that has exactly this text; negative for another text or a
     * tombstone; 0 if the product is unknown, or the item was rejected.
     */
    match: values<[PageItems], number>(
      `SELECT CASE WHEN body = ${TEXT} AND removed_at IS NULL THEN products.id ELSE coalesce(-products.id, 0) END
       FROM jsonb_each(:rows) AS item LEFT JOIN products ON vbid = item.value ->> 0`,
    ),
    /** The positions before `from`, and from `to` on, of items of a page that are in the mirror, removed ones too. */
    known: values<[PageItems & { from: number; to: number }], number>(
      // CROSS JOIN, so that SQLite looks up each item.
      `SELECT item.key FROM jsonb_each(:rows) AS item CROSS JOIN products ON vbid = item.value ->> 0
       WHERE item.key < :from OR item.key >= :to`,
    ),
    find: (vbid: string): KnownProduct | undefined => {
      const found = find(vbid);
      return found && { id: found[0], body: found[1], changedSeq: found[2], removed: found[3] !== null };
    },
    get: row<[vbid: string], ProductRow>(`SELECT ${WHOLE} FROM products WHERE vbid = ?`),
    /** Products, removed ones too, that have one of these as print or electronic ISBN, ordered by key; at most 20. */
    withIsbn: (forms: readonly string[]) => withIsbn({ forms: JSON.stringify(forms) }),
    /** The product's newest change; 0 for an id that is not in use. */
    changedSeq: number<[id: number]>('SELECT changed_seq FROM products WHERE id = ?'),
    /** All living products, ordered by key. Reads them in batches, so that memory does not grow with the catalog. */
    all: function* (): Generator<LivingProduct> {
      for (let batch = livingAfter(''); batch.length > 0; batch = livingAfter(batch.at(-1)?.vbid ?? '')) yield* batch;
    },
    /** Keys of the products that changed after a change, removed ones too, in order. */
    changedAfter: values<[seq: number], string>('SELECT vbid FROM products WHERE changed_seq > ? ORDER BY vbid'),
    /** The products that changed last, removed ones too, newest first. */
    newest: rows<[limit: number], NewestProduct>(
      `SELECT ${LISTED}, changed_at AS changedAt, removed_at AS removedAt
       FROM products ORDER BY changed_seq DESC LIMIT ?`,
    ),
    /** Products whose key sorts after `after`, ordered by key, that are living now, or may have been as of a change. */
    livingPage: (after: string, limit: number, asOf = Number.MAX_SAFE_INTEGER) => livingPage(after, asOf, limit),
    /** The highest id in use; the keeper assigns ids in order. */
    lastId: number('SELECT max(id) FROM products'),
    /** Keeps in memory what undoes a statement with functions, while the mirror has none of `LOOKUPS`. */
    keepUndo: () => exec(`PRAGMA temp_store = ${lookups() === 0 ? 'MEMORY' : 'DEFAULT'}`),
    /** Number of rows that are not tombstones. */
    living: number('SELECT living FROM mirror WHERE id = 1'),
  };
}

/**
 * Makes statements that insert items of a page. One reads only the columns that some row of the page has: it takes a fifth
 * of the time to read a value that is null in every row.
 */
function createRowInsert(write: Queries['write']) {
  const statements = new Map<string, (values: object) => number>();

  return (used: readonly number[], values: object): void => {
    const key = used.toSorted((a, b) => a - b).join();
    const of = (index: number): string => (used.includes(index) ? `item.value ->> ${index}` : 'NULL');
    const statement =
      statements.get(key) ??
      write<[object]>(
        `INSERT OR FAIL INTO products (${COLUMNS})
         SELECT :id + item.key - :from, item.value ->> 0, :atMs, :seq + item.key - :from,
           ${STORED.map((_, at) => of(ROW.stored + at)).join()}, ${TEXT}, coalesce(${of(ROW.withdrawn)}, 0)
         FROM jsonb_each(:rows) AS item WHERE item.key BETWEEN :from AND :to`,
      );
    statements.set(key, statement);
    statement(values);
  };
}

/** Whether SQLite refused a row because another one has its key. */
function isKeyTaken(error: unknown): boolean {
  return error instanceof BetterSqlite.SqliteError && error.code === 'SQLITE_CONSTRAINT_UNIQUE';
}

/** Neighbouring items of a page that are new; the id and the change of the first. */
export interface NewRows {
  readonly from: number;
  readonly to: number;
  readonly id: number;
  readonly seq: number;
}

export type ProductWriter = ReturnType<typeof createProductWriter>;

export function createProductWriter(queries: Queries, reader: ProductReader) {
  const { exec, number, write } = queries;
  // FAIL, because an error rolls the whole transaction back, or `deleteFrom` undoes the statement. Without it SQLite notes
  // the former state of each page that a statement with several rows writes in a temporary file: 3.1 GB in a first load of
  // a million products.
  const insert = write(`INSERT INTO products (${COLUMNS}) VALUES (${NAMES.map(() => '?').join()})`);
  const insertRows = createRowInsert(write);
  const indexRows = write(
    `INSERT INTO products_fts (rowid, title, contributors, publisher, identifiers)
     SELECT :id + key - :from, ${[0, 1, 2, 3].map((at) => `value ->> ${ROW.words + at}`).join()}
     FROM jsonb_each(:rows) WHERE key BETWEEN :from AND :to AND value ->> ${ROW.words} IS NOT NULL`,
  );
  const deleteFrom = write<[id: number]>('DELETE FROM products WHERE id >= ?');
  const update = write(
    `UPDATE products SET first_seen_at = coalesce(first_seen_at, changed_at), changed_at = :atMs, changed_seq = :seq,
       ${PLAIN.map(({ column, name }) => `${column} = :${name}`).join(', ')}, body = :body, withdrawn = :withdrawn,
       removed_at = NULL WHERE id = :id`,
  );
  // Apart: SQLite writes to the index of each column that is set, even if its value stays. ISBNs are spread over all pages
  // of their indexes, which was 60% of what a night wrote in which 1% changed.
  const setIsbns = ISBNS.map(({ column, name }) =>
    write(`UPDATE products SET ${column} = :${name} WHERE id = :id AND ${column} IS NOT :${name}`),
  );
  // A tombstone is about to be overwritten: the change record keeps the product that was removed.
  const keepRemoved = write(
    `UPDATE changes SET before = (SELECT body FROM products WHERE id = :id)
     WHERE op = 2 AND seq = (SELECT changed_seq FROM products WHERE id = :id AND removed_at IS NOT NULL)`,
  );
  const index = write(
    'INSERT OR REPLACE INTO products_fts (rowid, title, contributors, publisher, identifiers) VALUES (?, ?, ?, ?, ?)',
  );
  const hasLookup = number<[name: Lookup]>('SELECT count(*) FROM sqlite_schema WHERE name = ?');
  const cacheSize = number('PRAGMA cache_size');
  const unindex = write('DELETE FROM products_fts WHERE rowid = ?');
  const setRemoved = write(
    `UPDATE products SET first_seen_at = coalesce(first_seen_at, changed_at), changed_at = :atMs, changed_seq = :seq,
       removed_at = :removedAt WHERE id = :id`,
  );

  function indexWords(id: number, { search }: Product): void {
    if (search !== null) index(id, search.title, search.contributors, search.publisher, search.identifiers);
  }

  return {
    ...reader,
    insert: (rows: readonly { id: number; seq: number; product: Product }[], atMs: number): void => {
      for (const { id, seq, product } of rows) {
        const stored = STORED.map(({ name }) => product[name as keyof Stored]);
        insert(id, product.vbid, atMs, seq, ...stored, product.body, product.withdrawn ? 1 : 0);
        indexWords(id, product);
      }
    },
    /**
     * Inserts parts of a page whose rows are complete, with ids in order above all others. None of their items may have
     * been rejected, nor be on the page twice.
     * @returns false if a product is in the mirror already; then nothing was inserted
     */
    insertRows: ({ rows, bytes, used, hasWords }: PageItems, parts: readonly NewRows[], atMs: number): boolean => {
      try {
        for (const { from, to, id, seq } of parts) insertRows(used, { rows, bytes, from, to, id, seq, atMs });
      } catch (error) {
        if (!isKeyTaken(error)) throw error;
        deleteFrom(parts[0]?.id ?? 0);
        return false;
      }
      if (hasWords) for (const { from, to, id } of parts) indexRows({ rows, from, to, id });
      return true;
    },
    /** Writes a new version over a living product or a tombstone. */
    update: (
      { id, removed }: Pick<KnownProduct, 'id' | 'removed'>,
      product: Product,
      seq: number,
      atMs: number,
    ): void => {
      if (removed) keepRemoved({ id });
      const values = { ...product, id, atMs, seq, withdrawn: product.withdrawn ? 1 : 0 };
      update(values);
      for (const set of setIsbns) set(values);
      if (product.search === null) unindex(id);
      else indexWords(id, product);
    },
    /** Turns a living product into a tombstone. Its words stay in the full-text index; searches skip tombstones. */
    bury: (id: number, seq: number, atMs: number) => setRemoved({ id, seq, atMs, removedAt: atMs }),
    /** Turns a tombstone back into a living product, unchanged. */
    revive: (id: number, seq: number, atMs: number): void => {
      keepRemoved({ id });
      setRemoved({ id, seq, atMs, removedAt: null });
    },
    addLiving: write<[difference: number]>('UPDATE mirror SET living = living + ? WHERE id = 1'),
    /**
     * Drops `LOOKUPS`: filling an empty mirror without them takes two thirds of the time. With an index on an expression,
     * `FAIL` (see above) saves no temporary file.
     */
    dropLookups: () => exec(`DROP INDEX IF EXISTS ${LOOKUPS.join('; DROP INDEX IF EXISTS ')}`),
    /** Creates one of these indexes, as in drizzle, if it is missing. What is sorted may be too large for memory. */
    ensureLookup: (name: Lookup): void => {
      exec('PRAGMA temp_store = DEFAULT');
      if (hasLookup(name) > 0) return;
      const size = cacheSize();
      exec(`PRAGMA cache_size = ${SORT_CACHE}`);
      try {
        exec(CREATE_LOOKUP[name]);
      } finally {
        exec(`PRAGMA cache_size = ${size}`);
      }
    },
  };
}
