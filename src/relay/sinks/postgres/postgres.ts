import pg from 'pg';
import { z } from 'zod';
import { messageOf } from '../../../errors.ts';
import { type Mark, SinkError, type SinkEvent, type SinkFactory } from '../../sink.ts';
import { readOptions } from '../../sink-options.ts';
import { createConnectedSink } from '../connected-sink.ts';
import { ensureLayout, namesOf } from './layout.ts';
import { statementsOf } from './statements.ts';
import { fullName, openTable, UNKNOWN_OWNER } from './table.ts';

/**
 * A table with one row per product, and one with its prices, written set-based. The mark is in `catchword_cursor`, written
 * in the same transaction: effectively once. A row is never overwritten by an older version.
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

/** Options of catchword, which the driver must not get. */
const OWN = ['table', 'removals', 'refused'];
/** Options that are passed to the driver. */
const DRIVER = [
  ...'sslmode sslrootcert sslcert sslkey sslpassword ssl sslnegotiation uselibpqcompat'.split(' '),
  ...'application_name fallback_application_name options client_encoding keepalives'.split(' '),
  ...'host port user password'.split(' '),
  ...'connect_timeout lock_timeout statement_timeout idle_in_transaction_session_timeout'.split(' '),
];
const CONNECT_TIMEOUT_MS = 10_000;
const QUERY_TIMEOUT_MS = 60_000;
/** How long a check waits for a lock on the table. */
const CHECK_LOCK_TIMEOUT_MS = 3_000;

/** The class of the SQLSTATE tells whether the data, the settings or the server is the cause. */
function toSinkError(error: unknown): SinkError {
  const code = error instanceof pg.DatabaseError ? (error.code ?? '') : '';
  const message = `PostgreSQL: ${messageOf(error) || 'cannot be reached'}${code === '' ? '' : ` (${code})`}`;
  const failure = /^2[23]|^54/.test(code) ? 'refused' : /^(28|3D|3F|42)/.test(code) ? 'misconfigured' : 'unavailable';
  return new SinkError(failure, message, { cause: error });
}

const CHECK_MARK: Mark = { ...UNKNOWN_OWNER, incarnation: 'catchword doctor' };
/** A new product and a removed one, to try both statements. */
const CHECK_EVENTS: readonly SinkEvent[] = [
  { seq: 1, at: 0, op: 'created', vbid: 'catchword-doctor-1', body: '{"vbid":"catchword-doctor-1"}', text: '' },
  { seq: 2, at: 0, op: 'removed', vbid: 'catchword-doctor-2', body: null, text: '' },
];

async function connect(url: URL): Promise<pg.Client> {
  const driverUrl = new URL(url);
  for (const option of OWN) driverUrl.searchParams.delete(option);
  const client = new pg.Client({
    connectionString: driverUrl.href,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    application_name: driverUrl.searchParams.get('application_name') ?? 'catchword',
  });
  // The next query reports it; without a listener it would end the process.
  client.on('error', () => {});
  await client.connect();
  // If a power failure loses the newest rows, it loses their cursor as well, and they are delivered again: batches need
  // not wait for the disk.
  await client.query('SET synchronous_commit = off');
  return client;
}

export const createPostgresSink: SinkFactory = ({ url }) => {
  const { table, removals } = readOptions(url, OPTIONS, DRIVER);
  const names = namesOf(table);
  const sql = statementsOf(names, removals);

  /** Delivers products of its own, in a transaction that it rolls back. */
  async function tryToWrite(db: pg.Client, name: string): Promise<void> {
    await db.query('BEGIN');
    try {
      await db.query(`SET LOCAL lock_timeout = ${CHECK_LOCK_TIMEOUT_MS}`);
      await ensureLayout(db, names);
      // A cursor row of its own: a relay may have locked the real one, which must not change.
      const key = `${name} (catchword doctor)`;
      const tried = await openTable(db, { table, names, sql, key }, CHECK_MARK);
      const { signal } = new AbortController();
      await tried.fillBegins(CHECK_MARK, signal);
      await tried.deliver(CHECK_EVENTS, { ...CHECK_MARK, cursor: CHECK_EVENTS.length }, signal);
    } finally {
      // Report the first error, not this one.
      await db.query('ROLLBACK').catch(() => {});
    }
  }

  return createConnectedSink({
    batch: { events: 2_000, chars: 8_000_000 },
    connect: () => connect(url),
    disconnect: (db) => db.end(),
    open: async (db, mark) => {
      await ensureLayout(db, names);
      const key = (await fullName(db, names)) ?? table;
      const opened = await openTable(db, { table, names, sql, key }, mark);
      return {
        ...opened,
        fillEnds: (...args) =>
          opened.fillEnds(...args).catch((error: unknown) => {
            const { failure, message } = error instanceof SinkError ? error : toSinkError(error);
            if (failure !== 'refused') throw error;
            const what = `rows of ${table} that the mirror does not have cannot be removed`;
            throw new SinkError('misconfigured', `${what}: ${message}. Use removals=tombstone`, { cause: error });
          }),
      };
    },
    check: async (db) => {
      const found = await fullName(db, names);
      await tryToWrite(db, found ?? table);
      const tried = 'tried in a transaction that was rolled back';
      return found !== null
        ? `rows of table ${table} can be written and removed (${tried})`
        : `table ${table} can be created and written (${tried})`;
    },
    toSinkError,
  });
};
