import pg from 'pg';

/*
 * Random filters, each once as SQL over a product and once as SQL over a table of PostgreSQL, and random products for them.
 * A product that lacks a member, or has null there, is null in its column.
 */

/** The columns of the source table, with their types there. */
const TYPES = {
  vbid: 'text COLLATE "C"',
  title: 'text COLLATE "C"',
  language: 'text COLLATE "C"',
  edition: 'integer',
  price: 'numeric',
  pages: 'integer',
  sold: 'boolean',
} as const;

type Column = keyof typeof TYPES;
export const COLUMNS = Object.keys(TYPES) as readonly Column[];
/** The columns that identify a row where a publication has a list of columns: filters may read these only. */
export const IDENTITY = ['vbid', 'language', 'edition'] as const;
/** A list of columns, which must contain the identity. */
export const LISTED = ['vbid', 'title', 'language', 'edition'] as const;

export const COLUMN_TYPES = COLUMNS.map((column) => `${column} ${TYPES[column]}`);

export interface Filter {
  readonly ours: string;
  readonly postgres: string;
}

/** Conditions on the identity. */
const ON_IDENTITY: readonly (readonly [ours: string, postgres?: string])[] = [
  ["vbid > 'P2'"],
  ["language = 'en'"],
  ["language <> 'en'"],
  ["language IN ('en', 'cs')"],
  ["language NOT IN ('de', NULL)"],
  ["body->>'edition' > 1", 'edition > 1'],
  ["body->>'edition' BETWEEN 1 AND 2", 'edition BETWEEN 1 AND 2'],
  ["NOT body->>'edition' IN (1, 3)", 'NOT edition IN (1, 3)'],
  ["body->>'edition' % 2 = 1", 'edition % 2 = 1'],
];
/** Conditions on members that a product may lack. */
const OTHERS: typeof ON_IDENTITY = [
  ["title = 'Tides'"],
  ["title <> 'Tides'"],
  ["title > 'Tides'"],
  ["title < 'a'"],
  ["title LIKE 'ti%'", "title ILIKE 'ti%'"],
  ["title NOT LIKE '%II'", "title NOT ILIKE '%II'"],
  ["title GLOB 'T*'", "title LIKE 'T%'"],
  ["lower(title) = 'tides'"],
  ['length(title) > 5'],
  ['title IS NULL'],
  ["title || language = 'Tidesen'"],
  ["coalesce(title, 'none') <> 'none'"],
  ["nullif(title, 'Tides') IS NOT NULL"],
  ["body->>'price' > 9.5", 'price > 9.5'],
  ["body->>'price' <= 10", 'price <= 10'],
  ["body->>'price' * 2 = 21", 'price * 2 = 21'],
  ["body->>'price' IN (10.50, 9)", 'price IN (10.50, 9)'],
  ["body->>'pages' > 100", 'pages > 100'],
  ["body->>'pages' IS NULL", 'pages IS NULL'],
  ["body->>'pages' + body->>'edition' > 101", 'pages + edition > 101'],
  ["body->>'sold'", 'sold'],
  ["NOT body->>'sold'", 'NOT sold'],
];

type Below = (below: number) => number;

function pick<T>(below: Below, from: readonly [T, ...T[]] | readonly T[]): T {
  return from[below(from.length)] as T;
}

/** A filter: conditions that are joined at random. */
export function filterOf(below: Below, isListed: boolean, depth = 2): Filter {
  if (depth === 0 || below(4) === 0) {
    const [ours, postgres = ours] = pick(below, isListed ? ON_IDENTITY : [...ON_IDENTITY, ...OTHERS]);
    return { ours, postgres };
  }
  const [a, b, c] = [0, 1, 2].map(() => filterOf(below, isListed, depth - 1)) as [Filter, Filter, Filter];
  const made = (join: (a: string, b: string, c: string) => string): Filter => ({
    ours: join(`(${a.ours})`, `(${b.ours})`, `(${c.ours})`),
    postgres: join(`(${a.postgres})`, `(${b.postgres})`, `(${c.postgres})`),
  });
  return made(
    pick<(a: string, b: string, c: string) => string>(below, [
      (x, y) => `${x} AND ${y}`,
      (x, y) => `${x} OR ${y}`,
      (x) => `NOT ${x}`,
      (x) => `${x} IS NOT TRUE`,
      (x, y) => `${x} IS NULL OR ${y}`,
      (x, y, z) => `CASE WHEN ${x} THEN ${y} ELSE ${z} END`,
    ]),
  );
}

type Value = string | number | boolean | null;
export type Row = Readonly<Record<string, Value>>;

/** A product of some values: its body, and its row in SQL. */
export function productOf(below: Below, vbid: string, isListed: boolean): { body: string; values: string[] } {
  const text = (value: string): string => JSON.stringify(value);
  // The identity is never null.
  const maybe = (json: string): string | null => (below(4) === 0 && !isListed ? null : json);
  const members: Readonly<Record<Column, string | null>> = {
    vbid: text(vbid),
    title: below(5) === 0 ? null : text(pick(below, ['Tides', 'tides II', 'TIDES', 'Ebb', "O'Hara_1"])),
    language: maybe(text(pick(below, ['en', 'de', 'cs']))),
    edition: maybe(String(1 + below(3))),
    price: below(4) === 0 ? null : pick(below, ['9', '9.50', '10.50', '10', '12.75']),
    pages: below(3) > 0 ? null : pick(below, ['90', '99', '100', '101', '320']),
    sold: below(3) === 0 ? null : pick(below, ['true', 'false']),
  };
  const given = COLUMNS.flatMap((column) => {
    const value = members[column];
    // Absent, or null.
    return value === null && below(2) === 0 ? [] : `"${column}":${value}`;
  });
  const sql = (json: string | null): string =>
    json === null ? 'NULL' : json.startsWith('"') ? pg.escapeLiteral(JSON.parse(json) as string) : json;
  return { body: `{${given.join(',')}}`, values: COLUMNS.map((column) => sql(members[column])) };
}

/** The values of a product as it has arrived. */
export function rowOf(body: string, columns: readonly string[]): Row {
  const members = JSON.parse(body) as Record<string, Value>;
  return Object.fromEntries(columns.map((column) => [column, members[column] ?? null]));
}

/** The values of a row as PostgreSQL writes it. */
export function publishedRow(texts: Readonly<Record<string, string | null>>): Row {
  const value = (column: string, text: string | null): Value => {
    const type = TYPES[column as Column];
    if (text === null) return null;
    return type === 'boolean' ? text === 't' : type.startsWith('text') ? text : Number(text);
  };
  return Object.fromEntries(Object.entries(texts).map(([column, text]) => [column, value(column, text)]));
}
