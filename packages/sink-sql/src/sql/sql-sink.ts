import { masked } from '@catchword/base/redact';
import { type ConnectedStore, createConnectedSink } from '@catchword/sink-kit/connected-sink';
import type { ConnectionLife } from '@catchword/sink-kit/connection-scope';
import { SinkError, type SinkFactory } from '@catchword/sink-kit/sink';
import { readOptions } from '@catchword/sink-kit/sink-options';
import type * as z from 'zod';
import { openTable, type SqlTables, tryToWrite } from './sink-table.ts';
import { type Dialect, listTables } from './sql-digests.ts';
import { allTables, inTransaction, type SqlClient, type TableNames, type TableOptions } from './table-layout.ts';
import { TABLE_OPTIONS } from './table-options.ts';

/** What one kind of database has for a sink. */
interface SqlServer<Db extends SqlClient, Changes, Followed extends z.ZodRawShape>
  extends Pick<ConnectedStore<Db, never>, 'batch' | 'toSinkError'> {
  /** Options of the database's own clients that catchword follows. */
  readonly followed: Followed;
  /** Names of further ones, which change nothing here. */
  readonly withoutEffect: readonly string[];
  readonly connect: (url: URL, asked: z.output<z.ZodObject<Followed>>, life: ConnectionLife) => Promise<Db>;
  readonly resolveNames: (db: Db, table: string) => Promise<TableNames>;
  /** Creates missing tables. */
  readonly ensureLayout: (db: Db, names: TableNames) => Promise<void>;
  readonly tablesOf: (db: Db, options: TableOptions) => SqlTables<Changes>;
  readonly dialectOf: (db: Db) => Dialect;
  /** As `check` of a sink. @param tryToWrite writes two products; call it in a transaction that is rolled back */
  readonly check: (db: Db, options: TableOptions, tryToWrite: (db: Db) => Promise<void>) => Promise<string>;
}

/** Makes sinks of tables in a database. */
export function sqlSinks<Db extends SqlClient, Changes, Followed extends z.ZodRawShape>(
  server: SqlServer<Db, Changes, Followed>,
): SinkFactory {
  const { batch, followed, withoutEffect, resolveNames, ensureLayout, tablesOf, dialectOf, toSinkError } = server;
  return ({ url, hide }) => {
    const { table, removals } = readOptions(url, TABLE_OPTIONS, [...Object.keys(followed), ...withoutEffect]);
    const asked = readOptions(url, followed, [...Object.keys(TABLE_OPTIONS), ...withoutEffect]);
    return createConnectedSink({
      batch,
      toSinkError,
      hide,
      has: ['list', 'digests', 'apply'],
      connect: async (life) => {
        const db = await server.connect(url, asked, life);
        return { db, options: { table, names: await resolveNames(db, table), removals } };
      },
      leave: ({ db }) => db.end(),
      open: async ({ db, options }, mark) => {
        await ensureLayout(db, options.names);
        const tables = tablesOf(db, options);
        const opened = await openTable(tables, mark);
        return {
          ...opened,
          ...listTables(tables, opened.conflict, dialectOf(db)),
          apply: (events, extra, ...to) =>
            opened.apply(events, extra, ...to).catch((error: unknown) => {
              const known = error instanceof SinkError ? error : toSinkError(masked(error, hide));
              if (known.failure !== 'refused' || extra.length === 0) throw error;
              const what = `rows of ${table} that the mirror does not have cannot be removed`;
              const advice = `${what}: ${known.message}. Use removals=tombstone`;
              throw new SinkError('misconfigured', advice, { cause: error });
            }),
        };
      },
      drop: async ({ db, options: { names } }) => {
        await ensureLayout(db, names);
        // MySQL commits by itself with DROP TABLE.
        await inTransaction(db, 'COMMIT', async () => {
          await db.query(`DROP TABLE ${allTables(names).slice(0, -1).join(', ')}`);
          await db.query(`DELETE FROM ${names.cursor} WHERE table_name = ${db.parameter(1)}`, [names.key]);
        });
        return `the table ${names.cursor}, which all sinks of this database share`;
      },
      check: ({ db, options }, ...given) =>
        server.check(db, options, (inside) => tryToWrite((own) => tablesOf(inside, own), options, given)),
    });
  };
}
