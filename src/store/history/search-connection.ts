import BetterSqlite from 'better-sqlite3';
import { createQueries } from '../schema/queries.ts';
import { keepStatements } from '../schema/statements.ts';
import { createSearch } from './search.ts';

/**
 * Opens a mirror only to search it. Loads little, so that a process starts quickly that does nothing else.
 * @param path of a mirror that another process has opened with `openStore`, which checks it
 */
export function openSearch(path: string): ReturnType<typeof createSearch> {
  const sqlite = new BetterSqlite(path, { readonly: true, fileMustExist: true });
  keepStatements(sqlite);
  sqlite.exec('PRAGMA cache_size = -32768');
  return createSearch(createQueries(sqlite));
}
