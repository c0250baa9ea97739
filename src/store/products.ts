import type { Database } from 'better-sqlite3';
import type { Product } from '../catalog/product.ts';
import type { products } from './schema.ts';

/** What applying a page needs to know of a stored product. `removed` marks a tombstone. */
export interface KnownProduct {
  readonly id: number;
  readonly body: string;
  readonly changedSeq: number;
  readonly removed: boolean;
}

/** A product to insert, with its id and `seq`. */
export interface NewProduct {
  readonly id: number;
  readonly seq: number;
  readonly product: Product;
}

/** See schema.ts. */
export interface ProductRow extends Readonly<Omit<typeof products.$inferSelect, 'firstSeenAt' | 'withdrawn'>> {
  readonly firstSeenAt: number;
}

export interface ProductReader {
  /** The id of a living product that has exactly this body; negative for another body or a tombstone. */
  match(vbid: string, body: string): number | undefined;
  find(vbid: string): KnownProduct | undefined;
  get(vbid: string): ProductRow | undefined;
  /**
   * Products, including removed ones, that have one of these as print or electronic ISBN, ordered by key; at most 20.
   */
  withIsbn(forms: readonly string[]): ProductRow[];
  /** The product's newest change; 0 for an id that is not in use. */
  changedSeq(id: number): number;
  /** All living products, ordered by key. Reads them in batches, so that memory does not grow with the catalog. */
  all(): Generator<Pick<ProductRow, 'vbid' | 'title' | 'body'>>;
  /** The highest id in use; the keeper assigns ids in order. */
  lastId(): number;
  /** Number of rows that are not tombstones. */
  living(): number;
}

export interface ProductWriter extends ProductReader {
  insert(products: readonly NewProduct[], atMs: number): void;
  /** Writes a new version over a living product or a tombstone. */
  update(id: number, product: Product, seq: number, atMs: number): void;
  /** Turns a living product into a tombstone. Its words stay in the full-text index; searches skip tombstones. */
  bury(id: number, seq: number, atMs: number): void;
  /** Turns a tombstone back into a living product, unchanged. */
  revive(id: number, seq: number, atMs: number): void;
  addLiving(difference: number): void;
  /**
   * Drops the indexes by ISBN, which upserts do not need: filling an empty mirror takes two thirds of the time and
   * writes a third of the bytes if they are created afterwards.
   */
  dropLookups(): void;
  /** Creates the indexes by ISBN if they are missing. */
  ensureLookups(): void;
}

const COLUMNS =
  'id, vbid, title, kind, format, publisher, print_isbn, e_isbn, changed_at, changed_seq, body, withdrawn';
const WIDTH = 12;
const VALUES = `(${Array<string>(WIDTH).fill('?').join(', ')})`;
/** Rows per INSERT: measured 5.0 µs a product at 50, 6.5 at 1; more rows gain nothing. */
const BATCH = 50;
/** Rows per query when all products are read. */
const READ_BATCH = 1000;

/** As in schema.ts. */
const LOOKUPS = ['print_isbn', 'e_isbn'] as const;

const ROW = `id, vbid, body, title, kind, format, publisher, print_isbn AS printIsbn, e_isbn AS eIsbn,
  coalesce(first_seen_at, changed_at) AS firstSeenAt, changed_at AS changedAt, changed_seq AS changedSeq,
  removed_at AS removedAt`;

export function createProductReader(sqlite: Database): ProductReader {
  const find = sqlite
    .prepare<[string], [number, string, number, number | null]>(
      'SELECT id, body, changed_seq, removed_at FROM products WHERE vbid = ?',
    )
    .raw();
  const get = sqlite.prepare<[string], ProductRow>(`SELECT ${ROW} FROM products WHERE vbid = ?`);
  const withIsbn = sqlite.prepare<Record<string, unknown>, ProductRow>(
    `SELECT ${ROW} FROM products WHERE id IN (
       SELECT id FROM products WHERE print_isbn IS NOT NULL AND print_isbn IN (SELECT value FROM json_each(:forms))
       UNION SELECT id FROM products WHERE e_isbn IS NOT NULL AND e_isbn IN (SELECT value FROM json_each(:forms))
     ) ORDER BY vbid LIMIT 20`,
  );
  const livingAfter = sqlite.prepare<[string, number], Pick<ProductRow, 'vbid' | 'title' | 'body'>>(
    'SELECT vbid, title, body FROM products WHERE vbid > ? AND removed_at IS NULL ORDER BY vbid LIMIT ?',
  );
  const changedSeq = sqlite.prepare<[number], number>('SELECT changed_seq FROM products WHERE id = ?').pluck();
  const lastId = sqlite.prepare<[], number | null>('SELECT max(id) FROM products').pluck();
  const living = sqlite.prepare<[], number>('SELECT living FROM mirror WHERE id = 1').pluck();

  const match = sqlite
    .prepare<[string, string], number>(
      'SELECT CASE WHEN body = ? AND removed_at IS NULL THEN id ELSE -id END FROM products WHERE vbid = ?',
    )
    .pluck();

  return {
    match: (vbid, body) => match.get(body, vbid),
    find: (vbid) => {
      const row = find.get(vbid);
      return row === undefined ? undefined : { id: row[0], body: row[1], changedSeq: row[2], removed: row[3] !== null };
    },
    get: (vbid) => get.get(vbid),
    withIsbn: (forms) => withIsbn.all({ forms: JSON.stringify(forms) }),
    changedSeq: (id) => changedSeq.get(id) ?? 0,
    all: function* () {
      for (let after = ''; ; ) {
        const batch = livingAfter.all(after, READ_BATCH);
        yield* batch;
        const last = batch.at(-1);
        if (last === undefined) return;
        after = last.vbid;
      }
    },
    lastId: () => lastId.get() ?? 0,
    living: () => living.get() ?? 0,
  };
}

export function createProductWriter(sqlite: Database, reader: ProductReader): ProductWriter {
  const insertOne = sqlite.prepare(`INSERT INTO products (${COLUMNS}) VALUES ${VALUES}`);
  const insertMany = sqlite.prepare(
    `INSERT INTO products (${COLUMNS}) VALUES ${Array<string>(BATCH).fill(VALUES).join(', ')}`,
  );
  const update = sqlite.prepare(
    `UPDATE products SET first_seen_at = coalesce(first_seen_at, changed_at), title = ?, kind = ?, format = ?,
       publisher = ?, print_isbn = ?, e_isbn = ?, changed_at = ?, changed_seq = ?, removed_at = NULL, body = ?,
       withdrawn = ?
     WHERE id = ?`,
  );
  // A tombstone is about to be overwritten: the change record keeps the product that was removed.
  const keepRemoved = sqlite.prepare(
    `UPDATE changes SET before = (SELECT body FROM products WHERE id = :id)
     WHERE op = 2 AND seq = (SELECT changed_seq FROM products WHERE id = :id AND removed_at IS NOT NULL)`,
  );
  const index = sqlite.prepare(
    'INSERT OR REPLACE INTO products_fts (rowid, title, contributors, publisher, identifiers) VALUES (?, ?, ?, ?, ?)',
  );
  const unindex = sqlite.prepare('DELETE FROM products_fts WHERE rowid = ?');
  const mark = sqlite.prepare(
    `UPDATE products SET first_seen_at = coalesce(first_seen_at, changed_at), changed_at = ?, changed_seq = ?,
       removed_at = ? WHERE id = ?`,
  );
  const addLiving = sqlite.prepare('UPDATE mirror SET living = living + ? WHERE id = 1');

  function indexWords(id: number, { search }: Product): void {
    if (search !== null) index.run(id, search.title, search.contributors, search.publisher, search.identifiers);
  }

  return {
    ...reader,
    insert: (rows, atMs) => {
      let values: unknown[] = [];
      for (const { id, seq, product } of rows) {
        values.push(
          id,
          product.vbid,
          product.title,
          product.kind,
          product.format,
          product.publisher,
          product.printIsbn,
          product.eIsbn,
          atMs,
          seq,
          product.body,
          product.withdrawn ? 1 : 0,
        );
        if (values.length === BATCH * WIDTH) {
          insertMany.run(values);
          values = [];
        }
      }
      for (let at = 0; at < values.length; at += WIDTH) insertOne.run(values.slice(at, at + WIDTH));
      for (const { id, product } of rows) indexWords(id, product);
    },
    update: (id, product, seq, atMs) => {
      keepRemoved.run({ id });
      update.run(
        product.title,
        product.kind,
        product.format,
        product.publisher,
        product.printIsbn,
        product.eIsbn,
        atMs,
        seq,
        product.body,
        product.withdrawn ? 1 : 0,
        id,
      );
      if (product.search === null) unindex.run(id);
      else indexWords(id, product);
    },
    bury: (id, seq, atMs) => mark.run(atMs, seq, atMs, id),
    revive: (id, seq, atMs) => {
      keepRemoved.run({ id });
      mark.run(atMs, seq, null, id);
    },
    addLiving: (difference) => addLiving.run(difference),
    dropLookups: () => {
      for (const column of LOOKUPS) sqlite.exec(`DROP INDEX IF EXISTS products_${column}`);
    },
    ensureLookups: () => {
      for (const column of LOOKUPS) {
        sqlite.exec(
          `CREATE INDEX IF NOT EXISTS products_${column} ON products (${column}) WHERE ${column} IS NOT NULL`,
        );
      }
    },
  };
}
