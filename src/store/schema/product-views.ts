import { type Field, MEMBER, PRICE_FIELDS, READ, STORED } from '@catchword/catalog/fields';
import type { Database } from 'better-sqlite3';

/*
 * The views of products: what users may rely on. They are made of the table of fields when a mirror is opened for writing,
 * and read what catalog/field-values.ts reads. Programs of users run them, with SQLite from 3.38 on.
 */

/** SQL: a scalar as text, null if there is none. @param type its JSON type */
function textSql(type: string, value: string): string {
  const size = `abs(${value})`;
  const isShort = `${size} >= 1e-4 AND ${size} < 1e15 AND CAST(printf('%.15g', ${value}) AS REAL) = ${value}`;
  return `CASE WHEN ${type} = 'text' THEN nullif(nullif(${value}, ''), 'null')
    WHEN ${type} IN ('integer', 'real') AND (${value} = 0 OR (${isShort})) THEN printf('%.15g', ${value} + 0) END`;
}

/** SQL: a member as text. @param path of it in `json`, an expression */
const memberSql = (json: string, path: string): string =>
  textSql(`json_type(${json}, '$.${path}')`, `json_extract(${json}, '$.${path}')`);

/** SQL: a name, or the name in an object. */
function nameSql(type: string, value: string): string {
  const named = ['name', 'value'].map((key) => memberSql(value, key)).join(', ');
  return `CASE ${type} WHEN 'object' THEN coalesce(${named}) ELSE ${textSql(type, value)} END`;
}

/** SQL: a list as JSON, empty if it is something else. */
function listSql(json: string, path: string, kind = 'array'): string {
  return `CASE json_type(${json}, '$.${path}') WHEN '${kind}' THEN json_extract(${json}, '$.${path}') ELSE '[]' END`;
}

/** SQL: a field of a row of `products`. */
function fieldSql({ form, path }: Field): string {
  if (form === 'sellable') return 'NOT withdrawn';
  if (form === 'name') return nameSql(`json_type(body, '$.${path}')`, `json_extract(body, '$.${path}')`);
  if (form === 'texts') {
    const texts = `SELECT ${textSql('one.type', 'one.value')} AS text FROM json_each(body, '$.${path}') AS one`;
    const list = `(SELECT json_group_array(text) FROM (${texts}) WHERE text IS NOT NULL)`;
    return `CASE json_type(body, '$.${path}') WHEN 'array' THEN ${list} END`;
  }
  if (form !== 'names') return memberSql('body', path);
  const names = `SELECT ${nameSql('one.type', 'one.value')} AS name FROM json_each(${listSql('body', path)}) AS one`;
  return `(SELECT group_concat(name, '; ') FROM (${names}))`;
}

/** SQL: a column of the view `catalog`, of a row that has only `body`. */
export function columnSql(field: Field): string {
  if (field.form === 'sellable') return PRICE_SQL.sellable('body', field.path);
  return field.kept === 'stored' ? `CAST(${fieldSql(field)} AS TEXT)` : fieldSql(field);
}

/** SQL: a number, or the text of one; up to 2^53. */
function numberSql(json: string, path: string): string {
  const [type, value] = [`json_type(${json}, '$.${path}')`, `json_extract(${json}, '$.${path}')`];
  const text = `ltrim(trim(${value}), '+-')`;
  const isNumber = `${text} GLOB '*[0-9]*' AND ${text} NOT GLOB '*[^0-9.]*' AND ${text} NOT GLOB '*.*.*'
    AND trim(${value}) NOT GLOB '[+-][+-]*'`;
  return `(SELECT number FROM (SELECT CASE WHEN ${type} IN ('integer', 'real') THEN ${value}
    WHEN ${type} = 'text' AND ${isNumber} THEN CAST(trim(${value}) AS NUMERIC) END AS number)
    WHERE abs(number) <= ${Number.MAX_SAFE_INTEGER})`;
}

/** SQL: a time. An index has this expression of `changed_at`, to the letter, or SQLite does not use it. */
const time = (column: string, from = column): string =>
  `strftime('%Y-%m-%dT%H:%M:%fZ', ${from} / 1000.0, 'unixepoch') AS ${column}`;

/** Living products. Columns keep their places: users may have written `SELECT *`. */
function catalogView(): string {
  return `CREATE VIEW catalog AS
SELECT
  vbid, ${STORED.map(({ column }) => column).join(', ')}, body,
  ${time('first_seen_at', 'coalesce(first_seen_at, changed_at)')},
  ${time('changed_at')},
  changed_seq,
  id,
  ${READ.map((field) => `${fieldSql(field)} AS ${field.column}`).join(',\n  ')}
FROM products
WHERE removed_at IS NULL`;
}

const PRICE_SQL = {
  text: memberSql,
  number: numberSql,
  sellable: (json: string, path: string) =>
    `NOT coalesce(json_type(${json}, '$.${path}') = 'false' OR json_extract(${json}, '$.${path}') = 'false', 0)`,
} as const;

/** SQL: the columns of a price. */
const PRICE_COLUMNS = PRICE_FIELDS.map(({ column, of, member, form }) => `${PRICE_SQL[form](of, member)} AS ${column}`);

/** SQL: each `price` of each `variant`. @param from tables, and a comma @param json has the variants @param more columns */
function pricesFrom(from: string, json: string, more: string): string {
  const ofVariant = `CASE variants.type WHEN 'object' THEN ${listSql('variants.value', MEMBER.prices)} ELSE '[]' END`;
  return `SELECT ${more}, variants.value AS variant, CASE prices.type WHEN 'object' THEN prices.value ELSE '{}' END AS price
  FROM ${from} json_each(${listSql(json, MEMBER.variants)}) AS variants, json_each(${ofVariant}) AS prices`;
}

/** A row for each price of each variant of a living product. */
function pricesView(): string {
  return `CREATE VIEW prices AS
SELECT
  vbid,
  ${PRICE_COLUMNS.join(',\n  ')}
FROM (
  ${pricesFrom('products,', 'products.body', 'products.vbid AS vbid')}
  WHERE products.removed_at IS NULL
)`;
}

/**
 * A row for each price that a change changed, added or dropped. The prices after a change are in the product's next record
 * that has former ones, or else in the product. Of prices that agree in all but the value, the nth is compared with the nth.
 */
function priceChangesView(): string {
  const key = 'sku, type, duration, currency';
  const has = (change: string): string => `(json_type(${change}.before, '$.${MEMBER.variants}') IS NOT NULL
      OR '${MEMBER.variants}' IN (SELECT value FROM json_each(${change}.added)))`;
  const later = `SELECT later.before FROM changes AS later WHERE later.product_id = changes.product_id
      AND later.seq > changes.seq AND ${has('later')} ORDER BY later.seq LIMIT 1`;
  const values = (json: string, columns: string): string => `SELECT ${key}, ${columns},
      row_number() OVER (PARTITION BY ${key} ORDER BY place) AS nth
    FROM (SELECT ${PRICE_COLUMNS.join(', ')}, place FROM (${pricesFrom('', json, 'variants.key * 1e6 + prices.key AS place')}))`;
  return `CREATE VIEW price_changes AS
SELECT changes.seq, ${time('at', 'changes.at')}, changes.run_id, products.vbid,
  ${[...key.split(', '), 'before', 'after'].map((name, at) => `json_extract(one.value, '$[${at}]') AS ${name}`).join(', ')}
FROM changes JOIN products ON products.id = changes.product_id, json_each((
  SELECT json_group_array(json_array(${key}, was, now)) FROM (
    SELECT ${key}, max(was) AS was, max(now) AS now FROM (
      ${values('changes.before', 'value AS was, NULL AS now')}
      UNION ALL ${values(`coalesce((${later}), products.body)`, 'NULL, value')}
    ) GROUP BY ${key}, nth HAVING max(was) IS NOT max(now)
  )
)) AS one
WHERE changes.op IN (1, 3) AND ${has('changes')}`;
}

/** A row for each contributor of a living product who has a name. */
function contributorsView(): string {
  return `CREATE VIEW contributors AS
SELECT vbid, one.key + 1 AS position, ${nameSql('one.type', 'one.value')} AS name,
  CASE one.type WHEN 'object' THEN ${memberSql('one.value', 'type')} END AS type
FROM products, json_each(${listSql('products.body', MEMBER.contributors)}) AS one
WHERE products.removed_at IS NULL AND name IS NOT NULL`;
}

/** A row for each identifier of a living product. */
function identifiersView(): string {
  const values = `CASE WHEN forms.type = 'array' THEN forms.value
    WHEN forms.type IN ('text', 'integer', 'real') THEN json_array(forms.value) ELSE '[]' END`;
  return `CREATE VIEW identifiers AS
SELECT vbid, form, value FROM (
  SELECT products.vbid AS vbid, forms.key AS form, ${textSql('one.type', 'one.value')} AS value
  FROM products, json_each(${listSql('products.body', MEMBER.identifiers, 'object')}) AS forms, json_each(${values}) AS one
  WHERE products.removed_at IS NULL
) WHERE value IS NOT NULL`;
}

/** Creates the views, or replaces those of a version with other fields. A program that reads them goes on. */
export function ensureProductViews(sqlite: Database): void {
  const wanted = [catalogView(), pricesView(), contributorsView(), identifiersView(), priceChangesView()];
  const found = sqlite.prepare("SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = ?").pluck();
  const nameOf = (view: string): string => view.split(/\s/)[2] ?? '';
  const replace = wanted.filter((view) => found.get(nameOf(view)) !== view);
  if (replace.length === 0) return;
  const statements = replace.map((view) => `DROP VIEW IF EXISTS ${nameOf(view)}; ${view};`);
  sqlite.transaction(() => sqlite.exec(statements.join('\n'))).immediate();
}
