import { columnsOf, type Fields, partsOf } from '../../../catalog/field-values.ts';
import { PART_NAMES } from '../../../catalog/fields.ts';
import type { SinkEvent } from '../../sink.ts';
import { PART_COLUMNS } from './postgres-layout.ts';
import { WIDTHS } from './postgres-statements.ts';

/** A character as a JSON escape, or a pair of them that is one character. */
const ESCAPED = /\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)/g;

/** Writes characters beyond ASCII without escapes: a database in SQL_ASCII cannot read those. */
function unescaped(json: string): string {
  if (!json.includes('\\u')) return json;
  return json.replace(ESCAPED, (text, code: string) => {
    if (!code.startsWith('u')) return text;
    const character = JSON.parse(`"${text}"`) as string;
    // Half of a surrogate pair cannot be written in another way.
    return character > '\x7f' && character.isWellFormed() ? character : text;
  });
}

/** Values of one column, as texts. */
type Column = (string | null)[];

function emptyColumns(width: number): Column[] {
  return Array.from({ length: width }, () => []);
}

function addRow(columns: readonly Column[], row: readonly (string | number | boolean | null)[]): void {
  for (let index = 0; index < row.length; index++) {
    const value = row[index] ?? null;
    columns[index]?.push(value === null ? null : String(value));
  }
}

const HEADER_BYTES = 20;
const LENGTH_BYTES = 4;
const TYPE_TEXT = 25;
const NULL = -1;

/**
 * Writes texts as a parameter of the type `text[]`, as PostgreSQL reads them in binary: for each text its length and its
 * bytes, without quotes and escapes. The driver writes arrays as text: with them, a fill takes this process half as long
 * again (measured).
 */
function textArray(values: readonly (string | null)[]): Buffer {
  let bytes = HEADER_BYTES + values.length * LENGTH_BYTES;
  for (const value of values) if (value !== null) bytes += Buffer.byteLength(value);
  const array = Buffer.allocUnsafe(bytes);
  // One dimension, with nulls, of `values.length` texts, the first of which has the number 1.
  const header = [1, 1, TYPE_TEXT, values.length, 1];
  let at = 0;
  for (const word of header) at = array.writeInt32BE(word, at);
  for (const value of values) {
    const length = value === null ? NULL : array.write(value, at + LENGTH_BYTES);
    at = array.writeInt32BE(length, at) + Math.max(length, 0);
  }
  return array;
}

/** Changes that a batch of events makes to the tables. */
export type Changes = ReturnType<typeof changesOf>;

/**
 * Makes the changes of a batch from each product's last event.
 * @returns `parameters` of `deliver`: each column of products, of their parts and of removed products
 */
export function changesOf(events: readonly Pick<SinkEvent, 'vbid' | 'body' | 'seq' | 'at'>[]) {
  const living = emptyColumns(WIDTHS.products);
  const parts = PART_NAMES.map((name) => ({ name, columns: emptyColumns(Object.keys(PART_COLUMNS[name]).length) }));
  const gone = emptyColumns(WIDTHS.gone);
  for (const { vbid, body, seq, at } of new Map(events.map((event) => [event.vbid, event])).values()) {
    if (body === null) {
      addRow(gone, [vbid, seq, at / 1000]);
      continue;
    }
    const fields = JSON.parse(body) as Fields;
    addRow(living, [unescaped(body), vbid, ...columnsOf(fields), seq, at / 1000]);
    const found = partsOf(fields);
    for (const { name, columns } of parts) for (const row of found[name]) addRow(columns, [vbid, ...row]);
  }
  const parameters = [...living, ...parts.flatMap(({ columns }) => columns), ...gone].map(textArray);
  return { parameters, hasRemovals: events.some(({ body }) => body === null) };
}
