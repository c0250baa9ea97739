import type { Queries } from '../schema/queries.ts';

/* Indexes that only readers need, and that a mirror does not have while it is filled. */

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

/** The names of these indexes. */
export const LOOKUPS = Object.keys(CREATE_LOOKUP) as readonly Lookup[];

export function createLookupReader({ exec, number }: Queries) {
  const lookups = number(
    `SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name IN ('${LOOKUPS.join("', '")}')`,
  );
  return {
    /** Keeps in memory what undoes a statement with functions, while the mirror has none of `LOOKUPS`. */
    keepUndo: () => exec(`PRAGMA temp_store = ${lookups() === 0 ? 'MEMORY' : 'DEFAULT'}`),
  };
}

export function createLookupWriter({ exec, number }: Queries) {
  const hasLookup = number<[name: Lookup]>('SELECT count(*) FROM sqlite_schema WHERE name = ?');
  const cacheSize = number('PRAGMA cache_size');
  return {
    /**
     * Drops these indexes: filling an empty mirror without them takes two thirds of the time. With
     * an index on an expression, `FAIL` (see products.ts) saves no temporary file.
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
