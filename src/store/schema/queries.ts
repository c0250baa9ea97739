import type { Database, Statement } from 'better-sqlite3';

export type Queries = ReturnType<typeof createQueries>;

/** Makes a value when it is first asked for it, and only once. */
export function onFirstUse<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/**
 * Makes functions of SQL texts. Each prepares its statement once, and takes the statement's parameters: `P` is their
 * tuple, one object for named parameters.
 */
export function createQueries(sqlite: Database) {
  /** Prepares the statement when it is first used: most processes need few of them. */
  function lazily<P extends unknown[], R>(text: string, form?: 'pluck' | 'raw'): () => Statement<P, R> {
    return onFirstUse(() => {
      const statement = sqlite.prepare(text) as Statement<unknown[], unknown> as Statement<P, R>;
      return form === undefined ? statement : statement[form]();
    });
  }

  function first<P extends unknown[], R>(statement: () => Statement<P, R>) {
    return (...params: P): R | undefined => statement().get(...params);
  }

  function all<P extends unknown[], R>(statement: () => Statement<P, R>) {
    return (...params: P): R[] => statement().all(...params);
  }

  function value<P extends unknown[], V>(text: string) {
    const read = first(lazily<P, V>(text, 'pluck'));
    return (...params: P): V | null => read(...params) ?? null;
  }

  return {
    isReadonly: sqlite.readonly,
    exec: (text: string): void => void sqlite.exec(text),
    /** The first row. */
    row: <P extends unknown[], R>(text: string) => first(lazily<P, R>(text)),
    rows: <P extends unknown[], R>(text: string) => all(lazily<P, R>(text)),
    /** As `row` and `rows`, but arrays, which cost half as much to read as objects. */
    tuple: <P extends unknown[], R extends unknown[]>(text: string) => first(lazily<P, R>(text, 'raw')),
    tuples: <P extends unknown[], R extends unknown[]>(text: string) => all(lazily<P, R>(text, 'raw')),
    /** The first column of the first row; null without a row. */
    value,
    /** The first column of every row. */
    values: <P extends unknown[], V>(text: string) => all(lazily<P, V>(text, 'pluck')),
    /** A number as `value` reads it; 0 if it is null. */
    number: <P extends unknown[] = []>(text: string) => {
      const read = value<P, number | null>(text);
      return (...params: P): number => read(...params) ?? 0;
    },
    /** Writes. @returns how many rows were changed */
    write: <P extends unknown[] = unknown[]>(text: string) => {
      const statement = lazily<P, unknown>(text);
      return (...params: P): number => statement().run(...params).changes;
    },
  };
}

/** Characters of a product's text that lists have: a title may have a million. */
const MAX_LISTED = 2_000;

/** A part of a list by numbers that grow: the newest first; with `after`, the oldest first. */
export interface Range {
  readonly before?: number | undefined;
  readonly after?: number | undefined;
}

/** Reads a list in the order that a range asks for. @param prepare makes the query of an order */
export function inRange<Query>(prepare: (order: 'ASC' | 'DESC') => Query) {
  const [newest, oldest] = [prepare('DESC'), prepare('ASC')];
  return ({ before = Number.MAX_SAFE_INTEGER, after }: Range) => ({
    query: after === undefined ? newest : oldest,
    range: { before, after: after ?? 0 },
  });
}

/** The beginning of a column of `products`, for a list. */
export function listed(column: string, name = column): string {
  return `substr(products.${column}, 1, ${MAX_LISTED}) AS ${name}`;
}
