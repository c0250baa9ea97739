import type { Database, Statement } from 'better-sqlite3';

/**
 * Every statement, and its database, for as long as the process lives.
 *
 * From Node.js 24.19 on, the process aborts when a statement of better-sqlite3 12 is garbage-collected
 * (`RemoveEnvironmentCleanupHook … Assertion failed: (env) != nullptr`), and version 13 needs a newer Node.js than 20.
 * A store prepares its statements once, so there are few. `Database.pragma` and `Statement.iterate` create such objects
 * internally, where they cannot be kept: do not use them.
 */
const kept: unknown[] = [];

/**
 * Makes `sqlite.prepare` keep every statement. @returns the same database for drizzle, which prepares each query again: here
 * the same text returns the same statement
 */
export function keepStatements(sqlite: Database): Database {
  const prepare = sqlite.prepare.bind(sqlite);
  const byText = new Map<string, Statement>();

  function prepareAndKeep(text: string): Statement {
    const statement = prepare(text);
    kept.push(statement);
    return statement;
  }

  function prepareOnce(text: string): Statement {
    const statement = byText.get(text) ?? prepareAndKeep(text);
    byText.set(text, statement);
    return statement;
  }

  kept.push(sqlite);
  Object.defineProperty(sqlite, 'prepare', { value: prepareAndKeep });
  return Object.create(sqlite, { prepare: { value: prepareOnce } }) as Database;
}
