import Database from 'better-sqlite3';

/** Runs one query on its own connection, as any reader does. */
export function query<T>(db: string, sql: string, ...values: readonly unknown[]): T[] {
  const sqlite = new Database(db, { readonly: true });
  try {
    return sqlite.prepare(sql).all(...values) as T[];
  } finally {
    sqlite.close();
  }
}

/** Changes a database without catchword. */
export function execute(db: string, sql: string): void {
  const sqlite = new Database(db);
  try {
    sqlite.exec(sql);
  } finally {
    sqlite.close();
  }
}
