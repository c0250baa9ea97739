import { CatchwordError, messageOf } from '@catchword/base/errors';
import { SinkError } from '@catchword/sink-kit/sink';
import { sqlSinks } from '../sql/sql-sink.ts';
import { driverConfig, FOLLOWED } from './mysql-address.ts';
import { connect, MysqlError } from './mysql-connection.ts';
import { mysqlDialect } from './mysql-dialect.ts';
import { checkLayout, ensureLayout, resolveNames } from './mysql-layout.ts';
import { isTooMuch, mysqlTables } from './mysql-table.ts';

/**
 * The same tables as in PostgreSQL, in MySQL or MariaDB. A batch is one transaction, which locks the row of the mark in
 * `catchword_cursor` first: effectively once. A row is never overwritten by an older version.
 */

/** How long a check waits for a lock on a row. */
const CHECK_LOCK_TIMEOUT_S = 3;

/** A check of a column (MySQL's has no state of its own); a column without a default; a row that is too long for its page. */
const REFUSED = [3819, 1364, 1118, 139];
/** Too many connections of the user: their state is that of a wrong statement. */
const BUSY = [1203, 1226];
/** The driver's own: the server has no TLS, or wants to be told the password. */
const SETTINGS = /SSL_DISABLED|RSA_KEY|AUTH_PLUGIN|WITHOUT_SSL|SELF_SIGNED|TLS_IDENTITY/;

const NO_ANSWER = { errno: 0, state: '', code: undefined, advice: '' };

/** The class of the state tells whether the data, the settings or the server is the cause. */
function toSinkError(error: unknown): SinkError {
  const { errno, state, code = '', advice } = error instanceof MysqlError ? error : NO_ANSWER;
  const message = `MySQL: ${messageOf(error) || 'cannot be reached'}${errno === 0 ? '' : ` (${errno})`}${advice}`;
  // 45: a trigger has raised an error.
  const isRefused = /^(2[23]|45)/.test(state) || REFUSED.includes(errno);
  const isSetting = (/^(28|3D|42)/.test(state) && !BUSY.includes(errno)) || SETTINGS.test(code);
  const isOurs = error instanceof CatchwordError || advice !== '';
  const failure = isRefused ? 'refused' : isSetting || isOurs ? 'misconfigured' : 'unavailable';
  return new SinkError(failure, message, { cause: error, timedOut: isTooMuch(error) });
}

export const createMysqlSink = sqlSinks({
  batch: { events: 5_000, chars: 8_000_000 },
  followed: FOLLOWED,
  withoutEffect: [],
  connect: async (url, asked, life) => await connect(await driverConfig(url, asked), life),
  resolveNames,
  ensureLayout,
  tablesOf: mysqlTables,
  dialectOf: mysqlDialect,
  check: async (db, { table, names }, tryToWrite) => {
    if (!(await checkLayout(db, names))) {
      return `table ${table} can be created (only the right to it was checked, because MySQL cannot undo CREATE TABLE)`;
    }
    await db.query(`SET SESSION innodb_lock_wait_timeout = ${CHECK_LOCK_TIMEOUT_S}`);
    await db.inTransaction('ROLLBACK', () => tryToWrite({ ...db, inTransaction: (_end, work) => work() }));
    return `rows of table ${table} can be written and removed (tried in a transaction that was rolled back)`;
  },
  toSinkError,
});
