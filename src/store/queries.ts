import type { Database, Statement } from 'better-sqlite3';

export type Queries = ReturnType<typeof createQueries>;

/**
 * Makes functions of SQL texts. Each prepares its statement once, and takes the statement's parameters: `P` is their
 * tuple, one object for named parameters.
 */
export function createQueries(sqlite: Database) {
  function prepare<P extends unknown[], R>(text: string): Statement<P, R> {
    return sqlite.prepare(text) as Statement<unknown[], unknown> as Statement<P, R>;
  }

  return {
    /** Whether this user may only read the file. */
    isReadonly: sqlite.readonly,
    exec: (text: string): void => {
      sqlite.exec(text);
    },
    /** The first row. */
    row: <P extends unknown[], R>(text: string) => {
      const statement = prepare<P, R>(text);
      return (...params: P): R | undefined => statement.get(...params);
    },
    rows: <P extends unknown[], R>(text: string) => {
      const statement = prepare<P, R>(text);
      return (...params: P): R[] => statement.all(...params);
    },
    /** All rows as arrays, which cost half as much to read as objects. */
    tuples: <P extends unknown[], R extends unknown[]>(text: string) => {
      const statement = prepare<P, R>(text).raw();
      return (...params: P): R[] => statement.all(...params);
    },
    /** The first column of the first row; null without a row. */
    value: <P extends unknown[], V>(text: string) => {
      const statement = prepare<P, V>(text).pluck();
      return (...params: P): V | null => statement.get(...params) ?? null;
    },
    /** The first column of every row. */
    values: <P extends unknown[], V>(text: string) => {
      const statement = prepare<P, V>(text).pluck();
      return (...params: P): V[] => statement.all(...params);
    },
    /** A number as `value` reads it; 0 if there is none. */
    number: <P extends unknown[] = []>(text: string) => {
      const statement = prepare<P, number | null>(text).pluck();
      return (...params: P): number => statement.get(...params) ?? 0;
    },
    /** Writes. @returns how many rows were changed */
    write: <P extends unknown[] = unknown[]>(text: string) => {
      const statement = prepare<P, unknown>(text);
      return (...params: P): number => statement.run(...params).changes;
    },
  };
}
