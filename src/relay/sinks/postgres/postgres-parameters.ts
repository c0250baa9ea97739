import { columnsOf, type Fields, partsOf } from '../../../catalog/field-values.ts';
import { PART_NAMES } from '../../../catalog/fields.ts';
import type { SinkEvent } from '../../sink.ts';
import { PART_COLUMNS } from './postgres-layout.ts';
import { WIDTHS } from './postgres-statements.ts';
import { textArray } from './text-array.ts';

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

/** @param events at most one per product */
function parametersOf(events: Iterable<SinkEvent>): Buffer[] {
  const living = emptyColumns(WIDTHS.products);
  const parts = PART_NAMES.map((name) => ({ name, columns: emptyColumns(Object.keys(PART_COLUMNS[name]).length) }));
  const gone = emptyColumns(WIDTHS.gone);
  for (const { vbid, body, seq, at } of events) {
    if (body === null) {
      addRow(gone, [vbid, seq, at / 1000]);
      continue;
    }
    const fields = JSON.parse(body) as Fields;
    addRow(living, [unescaped(body), vbid, ...columnsOf(fields), seq, at / 1000]);
    const found = partsOf(fields);
    for (const { name, columns } of parts) for (const row of found[name]) addRow(columns, [vbid, ...row]);
  }
  return [...living, ...parts.flatMap(({ columns }) => columns), ...gone].map(textArray);
}

/** Changes that a batch of events makes to the tables. */
export interface Changes {
  /** Parameters of `deliver`: each column of products, of their parts and of removed products. */
  readonly parameters: readonly Buffer[];
  readonly hasRemovals: boolean;
}

/** Makes the changes of a batch from each product's last event. */
export function changesOf(events: readonly SinkEvent[]): Changes {
  const last = new Map(events.map((event) => [event.vbid, event]));
  return { parameters: parametersOf(last.values()), hasRemovals: events.some(({ body }) => body === null) };
}
