import { type Hide, masked } from '../../../base/redact.ts';
import { type Sink, SinkError } from '../../sink.ts';
import { type ConnectedStore, createConnectedSink } from '../connected-sink.ts';
import { openTable, type SqlTables } from './sink-table.ts';
import { createSqlVerifier, type Dialect } from './sql-verifier.ts';
import { allTables, inTransaction, type TableNames } from './table-layout.ts';

/** What one kind of database has for a sink. */
interface SqlServer<Db, Changes>
  extends Pick<ConnectedStore<Db, never>, 'batch' | 'connect' | 'leave' | 'check' | 'toSinkError'> {
  readonly resolveNames: (db: Db) => Promise<TableNames>;
  /** Creates missing tables. */
  readonly ensureLayout: (db: Db, names: TableNames) => Promise<void>;
  readonly tablesOf: (db: Db, names: TableNames) => SqlTables<Changes>;
  readonly dialectOf: (db: Db) => Dialect;
}

/** Makes a sink of tables in a database. */
export function createSqlSink<Db, Changes>(server: SqlServer<Db, Changes>, hide: Hide): Sink {
  const { resolveNames, ensureLayout, tablesOf, dialectOf, toSinkError, ...shared } = server;
  return createConnectedSink<Db>({
    ...shared,
    toSinkError,
    hide,
    verifies: true,
    open: async (db, mark) => {
      const names = await resolveNames(db);
      await ensureLayout(db, names);
      const tables = tablesOf(db, names);
      const opened = await openTable(tables, mark);
      return {
        ...opened,
        verifier: (positions) => createSqlVerifier(tables, opened.cursor, dialectOf(db), positions),
        fillEnds: (...args) =>
          opened.fillEnds(...args).catch((error: unknown) => {
            const known = error instanceof SinkError ? error : toSinkError(masked(error, hide));
            if (known.failure !== 'refused') throw error;
            const what = `rows of ${tables.table} that the mirror does not have cannot be removed`;
            throw new SinkError('misconfigured', `${what}: ${known.message}. Use removals=tombstone`, { cause: error });
          }),
      };
    },
    drop: async (db) => {
      const names = await resolveNames(db);
      await ensureLayout(db, names);
      const { query, parameter } = dialectOf(db);
      // MySQL commits by itself with DROP TABLE.
      await inTransaction({ query }, 'COMMIT', async () => {
        await query(`DROP TABLE ${allTables(names).slice(0, -1).join(', ')}`);
        await query(`DELETE FROM ${names.cursor} WHERE table_name = ${parameter(1)}`, [names.key]);
      });
      return `the table ${names.cursor}, which all sinks of this database share`;
    },
  });
}
