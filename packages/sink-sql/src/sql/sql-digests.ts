import { PART_NAMES } from '@catchword/catalog/fields';
import type { BucketSum, Digests, Listing, Mark, SinkError, SinkEvent } from '@catchword/sink-kit/sink';
import { digestOf } from '@catchword/sink-kit/store-digest';
import type { Listed } from '@catchword/sink-kit/wrap-listed';
import * as z from 'zod';
import { type Row, rowsOf } from './event-rows.ts';
import { inSteps, type SqlTables } from './sink-table.ts';
import type { Columns, layoutIn, SqlClient, TableNames } from './table-layout.ts';

/*
 * A product consists of its row and of the rows of its parts. Each row has a number: the first 60 bits of the MD5 of a text
 * that the database and this process make alike. The text is the number of the table, then each value behind "=", or "-" for
 * null, with U+001F after each. The digest of the product is the sum of these numbers, because parts of one kind have no
 * order, and because no database limits the length of a sum.
 */

/** Keys that one statement reads: far from its limit of time. */
const STEP = 50_000;
const END = '\x1f';
const DIGITS = 15;
const MODULUS = 16n ** BigInt(DIGITS);

/** How one kind of database writes values, and calculates with texts. */
export interface Dialect {
  readonly layout: ReturnType<typeof layoutIn>;
  /** Optional. @throws SinkError if its texts cannot be compared */
  readonly beforeDeep?: () => Promise<void>;
  /** SQL: a value of this type as text. */
  readonly textSql: (column: string, type: string) => string;
  /** The same text, of a value that this process has. A time is in milliseconds since 1970. */
  readonly textOf: (value: string | number | boolean, type: string) => string;
  /** SQL: the MD5 of a text in UTF-8, in hexadecimal digits. */
  readonly md5Sql: (text: string) => string;
  /** SQL: the first hexadecimal digits as a whole number. */
  readonly numberSql: (hex: string, digits: number) => string;
}

const boundSchema = z.tuple([z.object({ last: z.string().nullable() })]);
/** A row without a name stands for a step without products. */
const foundSchema = z.array(
  z.object({
    is_current: z.coerce.boolean(),
    name: z.coerce.string().nullable(),
    products: z.coerce.number(),
    total: z.coerce.bigint().nullable(),
  }),
);

const totalsSchema = z.array(z.object({ name: z.coerce.string(), totals: z.coerce.string() }));

const totalOf = (numbers: readonly bigint[]): bigint => numbers.reduce((one, other) => one + other, 0n) % MODULUS;

const KINDS = ['table', ...PART_NAMES] as const;

/** The rows that an event makes of each table. */
function rowsIn(event: SinkEvent): readonly (readonly Row[])[] {
  const { living, parts } = rowsOf([event], { body: (json) => json, time: (ms) => ms, row: (values) => values });
  return [living, ...PART_NAMES.map((part) => parts[part])];
}

/** The numbers of rows, on both sides. */
function createNumbers({ layout, textSql, textOf, md5Sql, numberSql }: Dialect) {
  /** The columns that a listing compares of each table. */
  function comparedOf({ whole, positions }: Listing): readonly Columns[] {
    const { vbid = '', seq = '', changed_at: _, ...others } = layout.living;
    if (!whole) return [{ vbid, ...(positions && { seq }) }];
    const product = positions ? layout.living : { vbid, ...others };
    return [product, ...PART_NAMES.map((part) => layout.parts[part])];
  }

  function numberOf(kind: number, columns: Columns, row: Row): bigint {
    const texts = Object.values(columns).map((type, at) => {
      const value = row[at] ?? null;
      return `${value === null ? '-' : `=${textOf(value, type)}`}${END}`;
    });
    return BigInt(`0x${digestOf(`${kind}${texts.join('')}`)}`);
  }

  function numbersOf(event: SinkEvent, listing: Listing): bigint[] {
    const compared = comparedOf(listing);
    const rows = listing.whole ? rowsIn(event) : [[[event.vbid, event.seq]]];
    return rows.flatMap((some, kind) => some.map((row) => numberOf(kind, compared[kind] ?? {}, row)));
  }

  /** SQL: the number of a row of the table `t`. */
  function rowNumberSql(kind: number, columns: Columns): string {
    const values = Object.entries(columns).map(
      ([name, type]) =>
        `CASE WHEN t.${name} IS NULL THEN '-${END}' ELSE concat('=', ${textSql(`t.${name}`, type)}, '${END}') END`,
    );
    return numberSql(md5Sql(`concat('${kind}', ${values.join(', ')})`), DIGITS);
  }

  return { comparedOf, numberOf, numbersOf, rowNumberSql };
}

/** Names the columns and parts of products that have another content. */
function differencesIn(
  names: TableNames,
  { query, parameter }: Pick<SqlClient, 'query' | 'parameter'>,
  dialect: Dialect,
): Required<Digests>['differences'] {
  const { comparedOf, numberOf, rowNumberSql } = createNumbers(dialect);
  return async (events, listing) => {
    const differing = new Map(events.map(({ vbid }) => [vbid, [] as string[]]));
    const keys = events.map((_, at) => parameter(at + 1)).join();
    for (const [kind, columns] of comparedOf(listing).entries()) {
      const part = PART_NAMES[kind - 1];
      const single = Object.entries(columns).map(([name, type], from) => ({
        name,
        columns: { [name]: type },
        from,
      }));
      // A column may have the name of a part.
      const groups = part === undefined ? single : [{ name: `rows of ${part}`, columns, from: 0 }];
      const totals = groups.map((group) => `mod(sum(${rowNumberSql(kind, group.columns)}), ${MODULUS})`);
      const text = `SELECT t.vbid AS name, concat_ws(' ', ${totals.join(', ')}) AS totals
        FROM ${names[part ?? 'table']} AS t WHERE t.vbid IN (${keys}) GROUP BY t.vbid`;
      const rows = totalsSchema.parse(await query(text, [...differing.keys()]));
      const found = new Map(rows.map((row) => [row.name, row.totals.split(' ')]));
      for (const event of events) {
        const made = rowsIn(event)[kind] ?? [];
        const isWrong = ({ from, columns: compared }: (typeof groups)[number], at: number): boolean =>
          `${totalOf(made.map((row) => numberOf(kind, compared, row.slice(from))))}` !==
          (found.get(event.vbid)?.[at] ?? '0');
        differing.get(event.vbid)?.push(...groups.filter(isWrong).map(({ name }) => name));
      }
    }
    return differing;
  };
}

/** Lists the products of open tables. @param conflict explains why the cursor is another one */
export function listTables<Changes>(
  { names, db, isTooMuch }: SqlTables<Changes>,
  conflict: () => Promise<SinkError>,
  dialect: Dialect,
): Required<Omit<Listed, 'apply'>> {
  const { query, parameter } = db;
  const { beforeDeep, md5Sql, numberSql } = dialect;
  const { comparedOf, numbersOf, rowNumberSql } = createNumbers(dialect);

  /**
   * SQL: key, bucket and digest of the living products of a step, and of parts of a product that is not there: one more than
   * there should be. One list that is grouped, because a join with the parts takes hours if PostgreSQL has no statistics of a
   * new table.
   */
  function digestsSql(listing: Listing, buckets: ReadonlySet<number> | null, range: () => string): string {
    const bucketOf = (key: string): string => numberSql(md5Sql(key), 3);
    const chosen = buckets === null ? '' : ` AND ${bucketOf('t.vbid')} IN (${[...buckets].join()})`;
    const rows = comparedOf(listing).map((columns, kind) => {
      return `SELECT t.vbid, ${kind} AS kind, ${rowNumberSql(kind, columns)} AS number FROM ${names[KINDS[kind] ?? 'table']} AS t
        WHERE ${range()}${chosen}${kind === 0 ? ' AND t.removed_at IS NULL' : ''}`;
    });
    return `SELECT vbid, min(kind) AS kind, ${bucketOf('vbid')} AS bucket, mod(sum(number), ${MODULUS}) AS digest
      FROM (${rows.join(' UNION ALL ')}) AS numbered GROUP BY vbid`;
  }

  /** Walks over the table, in the order of its key. @param of makes a SELECT of a name, a number of products and their total */
  async function* walk(
    listing: Listing,
    buckets: ReadonlySet<number> | null,
    mark: Mark,
    of: (digests: string) => string,
  ) {
    const { incarnation, generation, cursor: at, late } = mark;
    const steps = inSteps(isTooMuch, STEP, async (after, size) => {
      const keys: string[] = [];
      const next = (table: string): string =>
        `(SELECT vbid FROM ${table} WHERE vbid > ${parameter(keys.push(after))} ORDER BY vbid LIMIT ${size})`;
      const lastOf = (tables: readonly string[]): string =>
        `(SELECT max(vbid) FROM (${tables.map(next).join(' UNION ALL ')}) AS step)`;
      // Behind the last product, parts of others may be left.
      const parts = listing.whole ? [lastOf(PART_NAMES.map((part) => names[part]))] : [];
      const bound = [lastOf([names.table]), ...parts, 'NULL'].join(', ');
      const [{ last }] = boundSchema.parse(await query(`SELECT coalesce(${bound}) AS last`, keys));
      if (last === null) return null;
      const values: unknown[] = [];
      const bind = (value: unknown): string => parameter(values.push(value));
      const range = () => `t.vbid > ${bind(after)} AND t.vbid <= ${bind(last)}`;
      const current = `SELECT 1 FROM ${names.cursor} AS c WHERE c.table_name = ${bind(names.key)} AND c.incarnation = ${bind(incarnation)}
        AND c.generation = ${bind(generation)} AND c.cursor = ${bind(at)} AND c.late = ${bind(late)}`;
      const text = `SELECT EXISTS (${current}) AS is_current, coalesce(products, 0) AS products, name, total
        FROM (SELECT 1 AS one) AS one LEFT JOIN (${of(digestsSql(listing, buckets, range))}) AS found ON true`;
      const found = foundSchema.parse(await query(text, values));
      if (found[0]?.is_current !== true) throw await conflict();
      return { last, found };
    });
    for await (const { found } of steps) {
      yield found.flatMap(({ name, products, total }) =>
        name === null ? [] : [{ name, products, total: total ?? 0n }],
      );
    }
  }

  return {
    digests: {
      compares: ({ whole, positions }) =>
        whole
          ? `every column, prices and other parts, and the JSON${positions ? ', with positions' : ''}`
          : positions
            ? 'keys and positions'
            : 'keys',
      digestOf: (event, listing) => totalOf(numbersOf(event, listing)).toString(16).padStart(DIGITS, '0'),
      sums: async (listing, mark) => {
        if (listing.whole) await beforeDeep?.();
        const sums = new Map<number, BucketSum>();
        const bySum = (digests: string): string =>
          `SELECT bucket AS name, count(*) AS products, sum(digest) AS total FROM (${digests}) AS digests GROUP BY bucket`;
        for await (const found of walk(listing, null, mark, bySum)) {
          for (const { name, products, total } of found) {
            const before = sums.get(Number(name)) ?? { count: 0, sum: 0n };
            sums.set(Number(name), { count: before.count + products, sum: before.sum + total });
          }
        }
        return sums;
      },
      differences: differencesIn(names, db, dialect),
    },
    list: async function* (listing, buckets, mark) {
      const each = (digests: string): string =>
        `SELECT vbid AS name, CASE kind WHEN 0 THEN 1 ELSE 0 END AS products, digest AS total FROM (${digests}) AS digests`;
      for await (const found of walk(listing, buckets, mark, each)) {
        yield found.map(({ name, products, total }) => {
          return { vbid: name, digest: total.toString(16).padStart(DIGITS, '0'), isRest: products === 0 };
        });
      }
    },
  };
}
