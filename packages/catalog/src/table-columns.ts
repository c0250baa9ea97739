import { COLUMNS, PARTS, type Part } from './fields.ts';

/** `json` is the text of a JSON value; `seq`, `whole` and `time` (milliseconds since 1970) are whole numbers. */
export interface Column {
  readonly name: string;
  readonly form: 'key' | 'flag' | 'text' | 'json' | 'body' | 'seq' | 'time' | 'number' | 'whole';
  /** Default: true for `text`, `json` and `number` only. */
  readonly isNullable?: boolean;
}

export type Row = readonly (string | number | boolean | bigint | null)[];

/** Makes rows of each product. */
export interface Table {
  /** The columns; those of an expression are known once a row was made. */
  readonly columns: () => readonly Column[];
  /** @param text the product's JSON, or what a view made of it */
  readonly rows: (vbid: string, text: string) => readonly Row[];
}

export const KEY: Column = { name: 'vbid', form: 'key' };

const FORMS: Readonly<Record<string, Column['form']>> = {
  sellable: 'flag',
  texts: 'json',
  number: 'number',
  whole: 'whole',
};
/** The columns of the view `catalog`. */
export const CATALOG = [
  KEY,
  ...COLUMNS.map(({ column, form }): Column => ({ name: column, form: FORMS[form] ?? 'text' })),
];

/** The columns of a view that has a row for each part of a product. */
export function partColumns(part: Part): readonly Column[] {
  return [KEY, ...PARTS[part].map(({ column, form }): Column => ({ name: column, form: FORMS[form] ?? 'text' }))];
}
