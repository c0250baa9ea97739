import { stringify } from 'csv-stringify/sync';
import { usageError } from '../../../base/errors.ts';
import { columnsOf, type Fields } from '../../../catalog/field-values.ts';
import { objectMembers } from '../../../catalog/json-text.ts';
import { CATALOG, type Column, KEY, type Row, type Table } from '../../../catalog/table-columns.ts';
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
  return { columns: () => columns, row: (_, text) => names.map((name) => textOf(jsonAt(text, name))) };
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
  return { columns: () => columns ?? [KEY], row };
}

/** @param fields what `--fields` chooses; null: the columns of the view `catalog` @param withBody adds the product's JSON */
export function tableOf(fields: string | null, withBody: boolean): Table {
  if (fields !== null) return isFieldList(fields) ? listTable(fields) : objectTable();
  const columns = withBody ? [...CATALOG, { name: 'body', form: 'body' } as const] : CATALOG;
  const row = (vbid: string, body: string): Row => {
    const values = [vbid, ...columnsOf(JSON.parse(body) as Fields)];
    return withBody ? [...values, body] : values;
  };
  return { columns: () => columns, row };
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
  const form = excel ? { ...CSV, delimiter: ';', escape_formulas: true } : CSV;
  const head = (): string => `${excel ? '\ufeff' : ''}${stringify([columns().map(({ name }) => name)], form)}`;
  let isEmpty = true;
  for (const rows of batches) {
    if (isEmpty) yield head();
    isEmpty = false;
    yield stringify([...rows], form);
  }
  if (isEmpty) yield head();
}
