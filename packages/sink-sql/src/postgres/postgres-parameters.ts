import { PART_NAMES } from '@catchword/catalog/fields';
import { type Row, rowsOf, type Written } from '../sql/event-rows.ts';
import { LAYOUT } from './postgres-layout.ts';
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

/** The parameters of rows: each column. */
function columnsOf(rows: readonly Row[], width: number): Buffer[] {
  const textAt = (row: Row, at: number): string | null => {
    const value = row[at] ?? null;
    return value === null ? null : String(value);
  };
  return Array.from({ length: width }, (_, at) => textArray(rows.map((row) => textAt(row, at))));
}

const WRITTEN = { body: unescaped, time: (ms: number) => ms / 1000, row: (values: Row) => values };

/** @returns parameters of `deliver`: each column of products, of their parts and of removed products */
export function parametersOf(events: readonly Written[]): Buffer[] {
  const { living, parts, gone } = rowsOf(events, WRITTEN);
  return [
    ...columnsOf(living, WIDTHS.products),
    ...PART_NAMES.flatMap((part) => columnsOf(parts[part], Object.keys(LAYOUT.parts[part]).length)),
    ...columnsOf(gone, WIDTHS.gone),
  ];
}
