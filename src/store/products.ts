import type { Database } from 'better-sqlite3';
import type { Product } from '../catalog/product.ts';

/** A row as the upsert sees it. `removed` marks a tombstone. */
export interface KnownProduct {
  readonly id: number;
  readonly body: string;
  readonly changedSeq: number;
  readonly removed: boolean;
}

/** A product to be written, with the id and `seq` it gets. */
export interface NewProduct {
  readonly id: number;
  readonly seq: number;
  readonly product: Product;
}

export interface ProductRow {
  readonly id: number;
  readonly vbid: string;
  readonly body: string;
  readonly title: string | null;
  readonly kind: string | null;
  readonly format: string | null;
  readonly publisher: string | null;
  readonly printIsbn: string | null;
  readonly eIsbn: string | null;
  /** Milliseconds since 1970, as all times here. */
  readonly firstSeenAt: number;
  readonly changedAt: number;
  readonly changedSeq: number;
  readonly removedAt: number | null;
}

export interface ProductStore {
  /** The id of a living product that has exactly this body; less than 0 for another body or a tombstone. */
  match(vbid: string, body: string): number | undefined;
  find(vbid: string): KnownProduct | undefined;
  get(vbid: string): ProductRow | undefined;
  /** Products, removed ones as well, with one of these as print or electronic ISBN, in the order of their keys; at most 20. */
  withIsbn(forms: readonly string[]): ProductRow[];
  /** The product's newest change; 0 for an id that is not in use. */
  changedSeq(id: number): number;
  /** All living products, in the order of their keys, a batch at a time: memory does not grow with them. */
  all(): Generator<Pick<ProductRow, 'vbid' | 'title' | 'body'>>;
  /** The highest id in use; ids are given out by the keeper, in order. */
  lastId(): number;
  insert(products: readonly NewProduct[], atMs: number): void;
  /** Writes a new version over a living product or a tombstone. */
  update(id: number, product: Product, seq: number, atMs: number): void;
  /** Makes a living product a tombstone. Its words stay in the full-text search, which leaves tombstones out. */
  bury(id: number, seq: number, atMs: number): void;
  /** Makes a tombstone a living product again, as it was. */
  revive(id: number, seq: number, atMs: number): void;
  /** Number of rows that are not tombstones. */
  living(): number;
  addLiving(difference: number): void;
  /**
   * Drops the indexes by ISBN, which upserts do not need: filling an empty mirror takes two thirds of the time and writes
   * a third of the bytes when they are made afterwards.
   */
  dropLookups(): void;
  /** Makes what `dropLookups` dropped; otherwise does nothing. */
  ensureLookups(): void;
}

const COLUMNS =
  'id, vbid, title, kind, format, publisher, print_isbn, e_isbn, changed_at, changed_seq, body, withdrawn';
const WIDTH = 12;
const VALUES = `(${Array<string>(WIDTH).fill('?').join(', ')})`;
/** Rows of one INSERT: measured 5.0 µs a product at 50, 6.5 at 1; more gain nothing. */
const BATCH = 50;
/** Rows that are read at a time where all are. */
const READ_BATCH = 1000;

/** As in schema.ts. */
const LOOKUPS = ['print_isbn', 'e_isbn'] as const;

const ROW = `id, vbid, body, title, kind, format, publisher, print_isbn AS printIsbn, e_isbn AS eIsbn,
  coalesce(first_seen_at, changed_at) AS firstSeenAt, changed_at AS changedAt, changed_seq AS changedSeq,
  removed_at AS removedAt`;

export function createProductStore(sqlite: Database): ProductStore {
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
  // Of a tombstone that is about to become a product again: the log keeps what was removed.
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
  const living = sqlite.prepare<[], number>('SELECT living FROM mirror WHERE id = 1').pluck();
  const addLiving = sqlite.prepare('UPDATE mirror SET living = living + ? WHERE id = 1');

  function indexWords(id: number, { search }: Product): void {
    if (search !== null) index.run(id, search.title, search.contributors, search.publisher, search.identifiers);
  }

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
    bury: (id, seq, atMs) => {
      mark.run(atMs, seq, atMs, id);
    },
    revive: (id, seq, atMs) => {
      keepRemoved.run({ id });
      mark.run(atMs, seq, null, id);
    },
    living: () => living.get() ?? 0,
    addLiving: (difference) => {
      addLiving.run(difference);
    },
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
