import pg from 'pg';
import * as z from 'zod';
import { CatchwordError, messageOf } from '../../../base/errors.ts';
import { masked } from '../../../base/redact.ts';
import { type Mark, SinkError, type SinkEvent, type SinkFactory } from '../../sink.ts';
import { readOptions } from '../../sink-options.ts';
import { createConnectedSink } from '../connected-sink.ts';
import { driverConfig, FOLLOWED, WITHOUT_EFFECT } from './postgres-address.ts';
import { connect } from './postgres-connection.ts';
import { dropLayout, ensureLayout, inTransaction, resolveNames } from './postgres-layout.ts';
import { statementsOf } from './postgres-statements.ts';
import { isTooMuch, openCursorRow, openTable, UNKNOWN_OWNER } from './postgres-table.ts';
import { createPostgresVerifier } from './postgres-verifier.ts';

/**
 * A table with one row per product, and tables with its prices and other parts, written set-based. The mark is in
 * `catchword_cursor`, written in the same transaction: effectively once. A row is never overwritten by an older version.
 *
 * A fill delivers every product: to a new sink, after a replay, to a table that was emptied or that another mirror filled.
 * It does not empty the table. Each fill has a number, which its rows carry: rows of an earlier fill are overwritten
 * whatever their `seq`, and the ones that remain when the fill ends are removed.
 */

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/;

const OPTIONS = {
  table: z
    .string()
    .refine((name) => name.split('.').length <= 2 && name.split('.').every((part) => IDENTIFIER.test(part)), {
      error: 'a name such as products or shop.products',
    })
    .default('products'),
  removals: z.enum(['delete', 'tombstone'], 'tombstone or delete').default('tombstone'),
};

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

const CHECK_MARK: Mark = { ...UNKNOWN_OWNER, incarnation: 'catchword doctor' };
/** A new product and a removed one, to try both statements. */
const CHECK_EVENTS: readonly SinkEvent[] = [
  { id: '', seq: 1, at: 0, op: 'created', vbid: 'catchword-doctor-1', body: '{"vbid":"catchword-doctor-1"}', text: '' },
  { id: '', seq: 2, at: 0, op: 'removed', vbid: 'catchword-doctor-2', body: null, text: '' },
];

export const createPostgresSink: SinkFactory = ({ url, hide }) => {
  const { table, removals } = readOptions(url, OPTIONS, [...Object.keys(FOLLOWED), ...WITHOUT_EFFECT]);
  const asked = readOptions(url, FOLLOWED, [...Object.keys(OPTIONS), ...WITHOUT_EFFECT]);

  return createConnectedSink({
    hide,
    batch: { events: 10_000, chars: 8_000_000 },
    verifies: true,
    connect: async (life) => connect(driverConfig(url, asked), life),
    leave: (db) => db.end(),
    open: async (db, mark) => {
      const names = await resolveNames(db, table);
      await ensureLayout(db, names);
      const opened = await openTable(db, { table, names, sql: statementsOf(names, removals) }, mark);
      return {
        ...opened,
        verifier: (positions) => createPostgresVerifier(db, names, opened.cursor, positions),
        fillEnds: (...args) =>
          opened.fillEnds(...args).catch((error: unknown) => {
            const { failure, message } = error instanceof SinkError ? error : toSinkError(masked(error, hide));
            if (failure !== 'refused') throw error;
            const what = `rows of ${table} that the mirror does not have cannot be removed`;
            throw new SinkError('misconfigured', `${what}: ${message}. Use removals=tombstone`, { cause: error });
          }),
      };
    },
    drop: async (db) => {
      const names = await resolveNames(db, table);
      await dropLayout(db, names);
      return `the table ${names.cursor}, which all sinks of this database share`;
    },
    check: async (db, signal, tell) => {
      const names = await resolveNames(db, table);
      await inTransaction(db, 'ROLLBACK', async () => {
        await db.query(`SET LOCAL lock_timeout = ${CHECK_LOCK_TIMEOUT_MS}`);
        await ensureLayout(db, names, true);
        const sql = statementsOf(names, removals);
        const { found } = await openCursorRow(db, { table, names, sql });
        if (found?.isFilled === true) tell?.(found);
        // A cursor row of its own: a relay may have locked the real one, which must not change.
        const own = { ...names, key: `${names.key} (catchword doctor)` };
        const tried = await openTable(db, { table, names: own, sql }, CHECK_MARK);
        await tried.fillBegins(CHECK_MARK, signal);
        await tried.deliver(CHECK_EVENTS, { ...CHECK_MARK, cursor: CHECK_EVENTS.length }, signal);
      });
      const tried = 'tried in a transaction that was rolled back';
      return names.exists
        ? `rows of table ${table} can be written and removed (${tried})`
        : `table ${table} can be created and written (${tried})`;
    },
    toSinkError,
  });
};
