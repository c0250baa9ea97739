import BetterSqlite, { type Database, type Options, type Statement } from 'better-sqlite3';

/*
 * Opens every database of the program, and keeps its statements.
 *
 * On Node.js 24.19 a process was seen to abort when a statement of better-sqlite3 12 was garbage-collected
 * (`RemoveEnvironmentCleanupHook … Assertion failed: (env) != nullptr`). docs/dev/sqlite.md says what was measured, and what
 * version 13 would need. `Database.pragma` and `Statement.iterate` create such objects internally, where they
 * cannot be kept: do not use them.
 */

/** For as long as the process lives: a store prepares its statements once, so there are few. */
const kept: unknown[] = [];
/** What was made of texts that readers choose, the newest last. */
const chosen: unknown[] = [];
/** For safety: a statement takes some 10 kB, and readers may choose any number of texts. Older ones may be collected. */
const MOST_CHOSEN = 1_000;

/**
 * Seen on 24.21 after some thousand different views; not on 26. There, memory grows with each new text: by 4 kB for a
 * statement, some 30 kB for a view. A daemon replaces the process that has them (search-subprocess.ts).
 */
const ABORTS = process.versions.node.startsWith('24.');

function keepChosen(made: unknown): void {
  chosen.push(made);
  if (chosen.length > MOST_CHOSEN && !ABORTS) chosen.shift();
}

function open(path: string, options: Options | undefined, keep: (made: unknown) => void): Database {
  const sqlite = new BetterSqlite(path, options);
  const prepare = sqlite.prepare.bind(sqlite);
  const value = (text: string): Statement => {
    const statement = prepare(text);
    keep(statement);
    return statement;
  };
  keep(sqlite);
  return Object.defineProperty(sqlite, 'prepare', { value });
}

/** Opens a database for statements whose texts the program has. @throws SqliteError */
export function openSqlite(path: string, options?: Options): Database {
  return open(path, options, (made) => kept.push(made));
}

/** Opens a database in memory for statements whose texts readers choose. */
export function openForTexts(): Database {
  return open(':memory:', undefined, keepChosen);
}

/** The same database for drizzle, which prepares each query again: here the same text returns the same statement. */
export function preparedOnce(sqlite: Database): Database {
  const byText = new Map<string, Statement>();

  function prepareOnce(text: string): Statement {
    const statement = byText.get(text) ?? sqlite.prepare(text);
    byText.set(text, statement);
    return statement;
  }

  return Object.create(sqlite, { prepare: { value: prepareOnce } }) as Database;
}
