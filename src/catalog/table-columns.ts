import { COLUMNS } from './fields.ts';

/** `json` is the text of a JSON value; `seq` and `time` (milliseconds since 1970) are whole numbers. */
export interface Column {
  readonly name: string;
  readonly form: 'key' | 'flag' | 'text' | 'json' | 'body' | 'seq' | 'time';
  /** Default: true for `text` and `json` only. */
  readonly isNullable?: boolean;
}

export type Row = readonly (string | boolean | bigint | null)[];

/** Makes a row of each product. */
export interface Table {
  /** The columns; those of an expression are known once a row was made. */
  readonly columns: () => readonly Column[];
  /** @param text the product's JSON, or what a view made of it */
  readonly row: (vbid: string, text: string) => Row;
}

export const KEY: Column = { name: 'vbid', form: 'key' };

const FORMS: Readonly<Record<string, Column['form']>> = { sellable: 'flag', texts: 'json' };
/** The columns of the view `catalog`. */
export const CATALOG = [
  KEY,
  ...COLUMNS.map(({ column, form }): Column => ({ name: column, form: FORMS[form] ?? 'text' })),
];
