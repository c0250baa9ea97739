import { printable } from '@catchword/base/printable';
import * as z from 'zod';
import { type Colours, count, table, time } from '../report/text.ts';

/*
 * What people and programs see of a thing (a sink, a run, a decision …) is declared once, as rows. From the rows of a thing
 * come its table in commands, `--json`, `/api` with its description in /openapi.json, its table and its facts on pages, and
 * its table in the documents.
 */

/** `bad` and `warn` need somebody, `accent` is under way, `good` is as it should be, `soft` does not matter. */
export type Tone = 'good' | 'warn' | 'bad' | 'soft' | 'accent';

/** A part of a text for people. */
export interface Said {
  readonly text?: string | number;
  /** The address on the page to which it leads. */
  readonly href?: string | undefined;
  /** A time that belongs to it: milliseconds since 1970, or ISO 8601. */
  readonly at?: number | string | null;
  /** How much of it is done, from 0 to 1: pages draw a bar. */
  readonly share?: number;
  /** Default: the tone of the row. */
  readonly tone?: Tone;
}

/** One thing that is known of `Of`. */
export interface Row<Of> {
  /** The name of its member in `--json` and `/api`. Without a schema, only people get it. */
  readonly key: string;
  readonly schema?: z.ZodType;
  readonly value: (of: Of) => unknown;
  /** A sentence for documents and schemas. */
  readonly about: string;
  /** Its name for people: the head of a column, the name of a fact. Without one, only programs get it. */
  readonly label?: string;
  /**
   * `column`: the tables of commands and pages have it. `long`: only those of pages have it, because a line of a command is
   * short. Otherwise it is a fact of the thing's own page.
   */
  readonly list?: 'column' | 'long';
  /** Default: the value, if it is a text or a number. Null: nothing to say. Numbers are aligned to the right. */
  readonly text?: (of: Of) => string | number | Said | readonly Said[] | null;
  /** A command prints what is not in its table below it, if its tone is `bad`, `warn` or `accent`. */
  readonly tone?: (of: Of) => Tone;
}

type Keyed<R> = R extends { readonly key: infer K extends string; readonly schema: z.ZodType } ? K : never;
/** What rows make of a thing for programs. */
export type JsonOf<Rows extends readonly unknown[]> = {
  [R in Rows[number] as Keyed<R>]: R extends { readonly value: (of: never) => infer V } ? V : never;
};
type ShapeOf<Rows extends readonly unknown[]> = {
  [R in Rows[number] as Keyed<R>]: R extends { readonly schema: infer S } ? S : never;
};

/** A time in JSON. */
export const TIME = z.string().meta({ format: 'date-time' });
export const COUNT = z.int().min(0);

/** A thing for `--json` and `/api`. */
export function jsonOf<Of, Rows extends readonly Row<Of>[]>(rows: Rows, of: Of): JsonOf<Rows> {
  const members = rows.flatMap((row) => (row.schema === undefined ? [] : [[row.key, row.value(of)]]));
  return Object.fromEntries(members) as JsonOf<Rows>;
}

/** The schema of what `jsonOf` returns. @param id the name in /openapi.json */
export function schemaOf<Rows extends readonly Row<never>[]>(id: string, description: string, rows: Rows) {
  const members = rows.flatMap(({ key, schema, about }) =>
    schema === undefined ? [] : [[key, schema.meta({ description: about })]],
  );
  return z.object(Object.fromEntries(members) as ShapeOf<Rows>).meta({ id, description });
}

/** Some of the rows, by their keys. */
export function rowsOf<R extends { readonly key: string }, K extends R['key']>(rows: readonly R[], ...keys: K[]) {
  return rows.filter((row): row is Extract<R, { readonly key: K }> => keys.some((key) => key === row.key));
}

/** The names that people see, by the keys of their rows. */
export function labelsOf<K extends string>(rows: readonly { readonly key: K; readonly label?: string }[]) {
  return Object.fromEntries(rows.map(({ key, label = '' }) => [key, label])) as Readonly<Record<K, string>>;
}

/** What a row says to people; empty if it has nothing to say. */
export function saidOf<Of>(row: Row<Of>, of: Of): readonly Said[] {
  const said = row.text === undefined ? row.value(of) : row.text(of);
  if (typeof said === 'string' || typeof said === 'number') return said === '' ? [] : [{ text: said }];
  return said === null || typeof said !== 'object' ? [] : [said].flat();
}

export function textOf({ text = '', at = null }: Said): string {
  const words = typeof text === 'number' ? count(text) : printable(text);
  if (at === null) return words;
  return words === '' ? time(at) : `${words} (${time(at)})`;
}

/** Things as a command prints them: a table, and below it what somebody should know. @param nameOf names a thing there */
export function shownLines<Of>(c: Colours, rows: readonly Row<Of>[], all: readonly Of[], nameOf: (of: Of) => string) {
  const columns = rows.filter(({ list }) => list === 'column');
  const cells = all.map((of) =>
    columns.map((row) => {
      const [first, ...more] = saidOf(row, of);
      if (first === undefined) return null;
      return typeof first.text === 'number' ? first.text : [first, ...more].map(textOf).join(', ');
    }),
  );
  const notes = all.flatMap((of) =>
    rows.flatMap((row) => {
      const isQuiet = row.list === 'column' || ['good', 'soft'].includes(row.tone?.(of) ?? 'soft');
      if (isQuiet) return [];
      return saidOf(row, of).map((said) => c.yellow(`${nameOf(of)}: ${row.label?.toLowerCase()}: ${textOf(said)}`));
    }),
  );
  return [
    table(
      columns.map(({ label = '' }) => label.toLowerCase()),
      cells,
    ),
    ...notes,
  ];
}
