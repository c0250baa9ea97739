import { usageError } from '@catchword/base/errors';
import { columnsOf, type Fields, partsOf } from '@catchword/catalog/field-values';
import type { Part } from '@catchword/catalog/fields';
import { objectMembers } from '@catchword/catalog/json-text';
import { CATALOG, type Column, KEY, partColumns, type Row, type Table } from '@catchword/catalog/table-columns';
import { stringify } from 'csv-stringify/sync';
import { isFieldList } from '../../../view/field-list.ts';

/** The text of a string, the JSON of any other value: numbers keep their digits. */
function textOf(json: string | undefined): string | null {
  if (json === undefined || json === 'null') return null;
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** The JSON at a path such as `metadata.description`. */
function jsonAt(json: string | undefined, path: string): string | undefined {
  return path.split('.').reduce((at, key) => (at?.startsWith('{') ? objectMembers(at).get(key) : undefined), json);
}

/** A column for each path of a list. */
function listTable(list: string): Table {
  const names = [...new Set([KEY.name, ...list.split(',').map((path) => path.trim())])];
  const columns = names.map((name): Column => (name === KEY.name ? KEY : { name, form: 'text' }));
  return { columns: () => columns, rows: (_, text) => [names.map((name) => textOf(jsonAt(text, name)))] };
}

/** A column for each member of the first object that an expression makes. */
function objectTable(): Table {
  let columns: readonly Column[] | undefined;
  const row = (vbid: string, text: string): Row => {
    const members = objectMembers(text);
    columns ??= [...members.keys()].map((name) => ({ name, form: 'text' }));
    const values = columns.map(({ name }) => textOf(members.get(name)));
    for (const { name } of columns) members.delete(name);
    const [other] = members.keys();
    if (other === undefined) return values;
    const message = `--fields yields the member ${JSON.stringify(other)} for ${vbid}, but not for the first product`;
    throw usageError(message, 'A table has the columns of its first row: yield the same members for each product.');
  };
  return { columns: () => columns ?? [KEY], rows: (vbid, text) => [row(vbid, text)] };
}

/** A row for each part of a product, such as each price. */
function partTable(part: Part): Table {
  const columns = partColumns(part);
  const rows = (vbid: string, body: string) => partsOf(JSON.parse(body) as Fields)[part].map((one) => [vbid, ...one]);
  return { columns: () => columns, rows };
}

/**
 * @param fields what `--fields` chooses; null: the columns of the view `catalog`
 * @param part what `--view` chooses; undefined: the view `catalog`
 * @param withBody adds the product's JSON
 */
export function tableOf(fields: string | null, part: Part | undefined, withBody: boolean): Table {
  if (part !== undefined) return partTable(part);
  if (fields !== null) return isFieldList(fields) ? listTable(fields) : objectTable();
  const columns: readonly Column[] = withBody ? [...CATALOG, { name: 'body', form: 'body' }] : CATALOG;
  const row = (vbid: string, body: string): Row => {
    const values = [vbid, ...columnsOf(JSON.parse(body) as Fields)];
    return withBody ? [...values, body] : values;
  };
  return { columns: () => columns, rows: (vbid, body) => [row(vbid, body)] };
}

/** The rows as JSON objects, a line each. */
export function* jsonLines(batches: Iterable<readonly Row[]>, { columns }: Table): Iterable<string> {
  for (const rows of batches) {
    const names = columns().map(({ name }) => name);
    const lines = rows.map((row) => JSON.stringify(Object.fromEntries(names.map((name, at) => [name, row[at]]))));
    yield lines.map((line) => `${line}\n`).join('');
  }
}

/** RFC 4180. An empty text is `""`, and null is nothing, so that the two can be told apart. */
const CSV = {
  record_delimiter: '\r\n',
  // Readers end a row at CR or LF alone, too. With its own `record_delimiter`, csv-stringify would not quote either.
  quote_record_delimiter: true,
  quoted_match: /^$/,
  cast: { boolean: (is: boolean) => (is ? '1' : '0') },
};

/** Writes a head, then rows. Excel needs a byte order mark to read UTF-8, and runs a text that begins with `=`, `+`, `-`, `@`. */
export function* csvChunks(batches: Iterable<readonly Row[]>, { columns }: Table, excel: boolean): Iterable<string> {
  // csv-stringify does not know that a line feed may come before a formula, too.
  const cast = { ...CSV.cast, string: (text: string) => text.replace(/^\n/, "'\n") };
  const form = excel ? { ...CSV, delimiter: ';', escape_formulas: true, cast } : CSV;
  const head = (): string => `${excel ? '\ufeff' : ''}${stringify([columns().map(({ name }) => name)], form)}`;
  let isEmpty = true;
  for (const rows of batches) {
    if (isEmpty) yield head();
    isEmpty = false;
    yield stringify([...rows], form);
  }
  if (isEmpty) yield head();
}
