import { CatchwordError, messageOf } from '@catchword/base/errors';
import { SinkError } from '@catchword/sink-kit/sink';
import pg from 'pg';
import { sqlSinks } from '../sql/sql-sink.ts';
import { inTransaction } from '../sql/table-layout.ts';
import { driverConfig, FOLLOWED, WITHOUT_EFFECT } from './postgres-address.ts';
import { connect } from './postgres-connection.ts';
import { postgresDialect } from './postgres-dialect.ts';
import { ensureLayout, resolveNames } from './postgres-layout.ts';
import { isTooMuch, postgresTables } from './postgres-table.ts';

/**
 * A table with one row per product, and tables with its prices and other parts, written set-based. The mark is in
 * `catchword_cursor`, written in the same transaction: effectively once.
 */

/** How long a check waits for a lock on the table. */
const CHECK_LOCK_TIMEOUT_MS = 3_000;

/** The class of the SQLSTATE tells whether the data, the settings or the server is the cause. */
function toSinkError(error: unknown): SinkError {
  const code = error instanceof pg.DatabaseError ? (error.code ?? '') : '';
  const message = `PostgreSQL: ${messageOf(error) || 'cannot be reached'}${code === '' ? '' : ` (${code})`}`;
  // 0A: the encoding or the version of the database cannot represent the data. P0001: a trigger has raised an exception.
  const isRefused = /^(2[23]|54|0A|P0001)/.test(code);
  // The driver has no code for a server without TLS.
  const isSetting = /^(28|3D|3F|42)/.test(code) || error instanceof CatchwordError || / support SSL /.test(message);
  const failure = isRefused ? 'refused' : isSetting ? 'misconfigured' : 'unavailable';
  // A proxy that ends a statement because it takes long says nothing.
  const timedOut = failure === 'unavailable' && (code === '' || isTooMuch(error));
  return new SinkError(failure, message, { cause: error, timedOut });
}

export const createPostgresSink = sqlSinks({
  batch: { events: 10_000, chars: 8_000_000 },
  followed: FOLLOWED,
  withoutEffect: WITHOUT_EFFECT,
  connect: async (url, asked, life) => await connect(await driverConfig(url, asked), life),
  resolveNames,
  ensureLayout,
  tablesOf: postgresTables,
  dialectOf: postgresDialect,
  check: async (db, { table, names }, tryToWrite) => {
    await inTransaction(db, 'ROLLBACK', async () => {
      await db.query(`SET LOCAL lock_timeout = ${CHECK_LOCK_TIMEOUT_MS}`);
      await ensureLayout(db, names, true);
      await tryToWrite(db);
    });
    const tried = 'tried in a transaction that was rolled back';
    return names.exists
      ? `rows of table ${table} can be written and removed (${tried})`
      : `table ${table} can be created and written (${tried})`;
  },
  toSinkError,
});
