import type pg from 'pg';
import { columnsOf, type Fields, partsOf } from '../../../catalog/field-values.ts';
import { PART_NAMES } from '../../../catalog/fields.ts';
import { type BucketSum, type Mark, SinkError, type SinkEvent, type Verifier } from '../../sink.ts';
import { digestOf, md5 } from '../../store-digest.ts';
import type { OpenCursor } from '../sql/sink-table.ts';
import type { TableNames } from '../sql/table-layout.ts';
import { jsonbText, numericText } from './jsonb-text.ts';
import { PART_COLUMNS, PRODUCT_COLUMNS } from './postgres-layout.ts';
import { parametersOf } from './postgres-parameters.ts';
import { isTooMuch, type PostgresTables } from './postgres-table.ts';

/*
 * A product consists of its row and of the rows of its parts. Each row has a hash of a text that PostgreSQL and this process
 * make alike: each value behind "=", or "-" for null, and U+001F after each, in UTF-8 whatever the database's encoding is.
 * The digest of the product is that of its hashes in order, because parts of one kind have no order.
 */

/** Keys that one statement reads: far from its limit of time. */
const STEP = 50_000;

const END = '\x1f';
const endOf = (text: string | null): string => `${text === null ? '-' : `=${text}`}${END}`;
const joinSql = (values: readonly string[]): string =>
  values.map((sql) => `coalesce('=' || ${sql}, '-') || chr(31)`).join(' || ');
const md5Sql = (sql: string): string => `md5(convert_to(${sql}, 'UTF8'))`;

/** A value as PostgreSQL prints one of this type. */
function printed(value: string | number | boolean | null, type: string | undefined): string | null {
  if (value === null) return null;
  if (type === 'numeric') return numericText(String(value));
  return type === 'jsonb' ? jsonbText(String(value)) : String(value);
}

type Values = readonly (string | number | boolean | null)[];

const hashOf = (kind: number, values: Values, types: readonly string[]): string =>
  `${kind}${md5(values.map((value, at) => endOf(printed(value, types[at]))).join(''))}`;

const TYPES = [...Object.values(PRODUCT_COLUMNS), 'jsonb'];

function hashesOf({ vbid, body, seq, at }: SinkEvent, deep: boolean, positions: boolean): string[] {
  if (!deep) return [hashOf(0, positions ? [vbid, seq] : [vbid], [])];
  const fields = JSON.parse(body ?? '{}') as Fields;
  const keys = positions ? [vbid, seq, at] : [vbid];
  const product = hashOf(0, [...keys, ...columnsOf(fields), body], [...keys.map(() => 'text'), ...TYPES]);
  const parts = partsOf(fields);
  const rows = PART_NAMES.flatMap((part, index) =>
    parts[part].map((row) => hashOf(index + 1, [vbid, ...row], Object.values(PART_COLUMNS[part]))),
  );
  return [product, ...rows.sort()];
}

/**
 * SQL: key, bucket and digest of the living products with keys after $6 up to $7. One list that is grouped, because a join
 * with the parts takes hours if PostgreSQL has no statistics of a new table.
 * @param isChosen only those of the buckets $8, if they are not null
 */
function digestsSql(names: TableNames, deep: boolean, positions: boolean, isChosen: boolean): string {
  const bucket = `('x' || substr(${md5Sql('vbid')}, 1, 3))::bit(12)::int`;
  const chosen = isChosen ? ` AND ($8::int[] IS NULL OR ${bucket} = ANY($8::int[]))` : '';
  const rowsSql = (kind: number, table: string, values: readonly string[]): string =>
    `SELECT vbid, '${kind}' || ${md5Sql(joinSql(values))} AS hash FROM ${table}
     WHERE vbid > $6::text AND vbid <= $7::text${chosen}${kind === 0 ? ' AND removed_at IS NULL' : ''}`;
  const asText = (name: string): string => `${name}::text`;
  const at = '(round(extract(epoch FROM changed_at) * 1000)::bigint)';
  const keys = ['vbid', ...(positions ? ['seq', ...(deep ? [at] : [])] : [])];
  const columns = deep ? [...Object.keys(PRODUCT_COLUMNS), 'body'] : [];
  const parts = PART_NAMES.map((part, index) =>
    rowsSql(index + 1, names[part], Object.keys(PART_COLUMNS[part]).map(asText)),
  );
  const rows = [rowsSql(0, names.table, [...keys, ...columns].map(asText)), ...(deep ? parts : [])];
  return `SELECT vbid, ${bucket} AS bucket, substr(md5(string_agg(hash, '' ORDER BY hash COLLATE "C")), 1, 15) AS digest
    FROM (${rows.join(' UNION ALL ')}) AS hashed GROUP BY vbid HAVING bool_or(hash LIKE '0%')`;
}

/** Compares an open table with its source, and repairs it. */
export function createPostgresVerifier(
  db: pg.Client,
  names: TableNames,
  tables: PostgresTables,
  cursor: OpenCursor,
  positions: boolean,
): Verifier {
  /** Walks over the table, in the order of its key. @param select of the digests of some products, a list in JSON */
  async function* walk<Row>(select: string, mark: Mark, more: readonly unknown[] = []): AsyncGenerator<readonly Row[]> {
    const { incarnation, generation, cursor: at, late } = mark;
    const text = `SELECT (${select}) AS found, EXISTS (SELECT FROM ${names.cursor} WHERE table_name = $1
      AND incarnation = $2 AND generation = $3 AND cursor = $4 AND late = $5) AS "isCurrent"`;
    let size = STEP;
    for (let after = ''; ; ) {
      const bound = `SELECT max(vbid) AS last FROM (SELECT vbid FROM ${names.table} WHERE vbid > $1 ORDER BY vbid LIMIT $2) AS step`;
      try {
        const { rows: bounds } = await db.query<{ last: string | null }>({ text: bound, values: [after, size] });
        const last = bounds[0]?.last ?? null;
        if (last === null) return;
        const values = [names.key, incarnation, generation, at, late, after, last, ...more];
        const { rows } = await db.query<{ found: Row[] | null; isCurrent: boolean }>({ text, values });
        if (rows[0]?.isCurrent !== true) throw await cursor.conflict();
        yield rows[0].found ?? [];
        after = last;
      } catch (error) {
        if (!isTooMuch(error) || size === 1) throw error;
        size = Math.floor(size / 2);
      }
    }
  }

  return {
    compares: {
      fast: positions ? 'keys and positions' : 'keys',
      deep: `every column, prices and other parts, and the JSON${positions ? ', with positions' : ''}`,
    },
    digestOf: (event, deep) => digestOf(hashesOf(event, deep, positions).join('')),
    sums: async (deep, mark) => {
      const { rows } = await db.query<{ server_encoding: string }>('SHOW server_encoding');
      const encoding = rows[0]?.server_encoding ?? '';
      if (deep && !['UTF8', 'SQL_ASCII'].includes(encoding)) {
        throw new SinkError(
          'misconfigured',
          `PostgreSQL: jsonb has another order of keys in ${encoding}; compare without --deep`,
        );
      }
      const sums = new Map<number, BucketSum>();
      const select = `SELECT json_agg(json_build_array(bucket, count, sum::text)) FROM
        (SELECT bucket, count(*), sum(('x' || digest)::bit(60)::bigint)
         FROM (${digestsSql(names, deep, positions, false)}) AS digests GROUP BY bucket) AS summed`;
      for await (const found of walk<[bucket: number, count: number, sum: string]>(select, mark)) {
        for (const [bucket, count, sum] of found) {
          const before = sums.get(bucket) ?? { count: 0, sum: 0n };
          sums.set(bucket, { count: before.count + count, sum: before.sum + BigInt(sum) });
        }
      }
      return sums;
    },
    products: async function* (deep, buckets, mark) {
      const select = `SELECT json_agg(json_build_array(vbid, digest))
        FROM (${digestsSql(names, deep, positions, true)}) AS digests`;
      const wanted = [buckets && [...buckets]];
      for await (const found of walk<[vbid: string, digest: string]>(select, mark, wanted)) {
        yield found.map(([vbid, digest]) => ({ vbid, digest }));
      }
    },
    repair: async (events, extra, mark) => {
      const gone = extra.map((vbid) => ({ vbid, body: null, seq: mark.cursor, at: mark.at }));
      await cursor.moved(mark, await tables.repair(parametersOf([...events, ...gone]), mark, cursor.written()));
    },
  };
}
