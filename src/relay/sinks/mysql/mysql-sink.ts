import { CatchwordError, messageOf } from '../../../base/errors.ts';
import { SinkError, type SinkFactory } from '../../sink.ts';
import { readOptions } from '../../sink-options.ts';
import { tryToWrite } from '../sql/sink-table.ts';
import { createSqlSink } from '../sql/sql-sink.ts';
import { TABLE_OPTIONS } from '../sql/table-layout.ts';
import { driverConfig, FOLLOWED } from './mysql-address.ts';
import { connect, type MysqlConnection, MysqlError } from './mysql-connection.ts';
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

/** The class of the state tells whether the data, the settings or the server is the cause. */
function toSinkError(error: unknown): SinkError {
  const { errno, state, code = '' } = error instanceof MysqlError ? error : { errno: 0, state: '' };
  const message = `MySQL: ${messageOf(error) || 'cannot be reached'}${errno === 0 ? '' : ` (${errno})`}`;
  // 45: a trigger has raised an error.
  const isRefused = /^(2[23]|45)/.test(state) || REFUSED.includes(errno);
  const isSetting = (/^(28|3D|42)/.test(state) && !BUSY.includes(errno)) || SETTINGS.test(code);
  const isOurs = error instanceof CatchwordError;
  const failure = isRefused ? 'refused' : isSetting || isOurs ? 'misconfigured' : 'unavailable';
  return new SinkError(failure, message, { cause: error, timedOut: isTooMuch(error) });
}

export const createMysqlSink: SinkFactory = ({ url, hide }) => {
  const { table, removals } = readOptions(url, TABLE_OPTIONS, Object.keys(FOLLOWED));
  const asked = readOptions(url, FOLLOWED, Object.keys(TABLE_OPTIONS));

  return createSqlSink(
    {
      batch: { events: 5_000, chars: 8_000_000 },
      connect: (life) => connect(driverConfig(url, asked), life),
      leave: (db) => db.end(),
      resolveNames: (db) => resolveNames(db, table),
      ensureLayout,
      tablesOf: (db, names) => mysqlTables(db, { table, names, removals }),
      dialectOf: mysqlDialect,
      check: async (db, ...given) => {
        const names = await resolveNames(db, table);
        if (!(await checkLayout(db, names))) {
          return `table ${table} can be created (only the right to it was checked, because MySQL cannot undo CREATE TABLE)`;
        }
        await db.query(`SET SESSION innodb_lock_wait_timeout = ${CHECK_LOCK_TIMEOUT_S}`);
        const transaction: MysqlConnection['inTransaction'] = (_, work) => work();
        await db.inTransaction('ROLLBACK', () =>
          tryToWrite((own) => mysqlTables(db, { table, names: own, removals, transaction }), names, given),
        );
        return `rows of table ${table} can be written and removed (tried in a transaction that was rolled back)`;
      },
      toSinkError,
    },
    hide,
  );
};
