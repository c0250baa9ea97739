import { Socket } from 'node:net';
import { messageOf, systemCodeOf } from '@catchword/base/errors';
import type { ConnectionLife } from '@catchword/sink-kit/connection-scope';
import { SinkError } from '@catchword/sink-kit/sink';
import { withTimeout } from '@catchword/sink-kit/with-timeout';
import { type Connection, type ConnectionConfig, createConnection } from 'mariadb';
import * as z from 'zod';
import type { Row } from '../sql/event-rows.ts';
import { inTransaction } from '../sql/table-layout.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** How long a statement may wait for a lock, and how long MariaDB works on one. */
const LOCK_TIMEOUT_S = 20;
const STATEMENT_TIMEOUT_S = 60;
/** Longer, so that the server reports its own limit. */
const QUERY_TIMEOUT_MS = 65_000;
/** How long the server waits for the next statement of a transaction: a relay that is frozen must not keep its locks. */
const TRANSACTION_PAUSE_S = 20;

/** Ways to log in that do not give the password to a server that only pretends to be ours. */
const LOGINS = 'mysql_native_password,client_ed25519,parsec,caching_sha2_password,sha256_password';

/** The most bytes of one request: the driver splits longer ones without regard to the server's limit. */
const MAX_PIECE = 8_000_000;
/** What the protocol adds to a request and to each value. */
const REQUEST_BYTES = 8_192;
const VALUE_BYTES = 10;

/** What the driver says, without the statement and its values, which its own errors carry. */
export class MysqlError extends Error {
  readonly code: string | undefined;
  /** 0 if the server did not say it. */
  readonly errno: number;
  readonly state: string;
  /** What the operator can do after a login that the account or the address makes fail; empty: nothing is known. */
  advice = '';

  constructor(error: unknown) {
    const { sqlMessage, errno, sqlState } = error as { sqlMessage?: string; errno?: number; sqlState?: string };
    // Errors of a socket have a negative number; the driver's own are from 45001 on.
    const isServers = errno !== undefined && errno > 0 && errno < 45_000;
    super(sqlMessage ?? messageOf(error));
    this.name = 'MysqlError';
    this.code = systemCodeOf(error) ?? undefined;
    this.errno = isServers ? errno : 0;
    this.state = isServers ? (sqlState ?? '') : '';
  }
}

/** A row as the driver gets it: of texts, because it sends a request for each run of rows with the same types. */
export interface TextRow {
  readonly texts: (string | null)[];
  /** What it takes of a request. */
  readonly bytes: number;
}

export function textRow(row: Row): TextRow {
  const texts = row.map((value) =>
    typeof value === 'boolean' ? String(Number(value)) : value === null ? null : String(value),
  );
  const bytes = texts.reduce((sum, text) => sum + VALUE_BYTES + (text === null ? 0 : Buffer.byteLength(text)), 0);
  return { texts, bytes };
}

/** Splits rows into pieces of at most `maxBytes`, or of one row. @throws SinkError refused for a row that the server cannot take */
function piecesOf(rows: readonly TextRow[], maxPacket: number, maxBytes: number): (string | null)[][][] {
  const pieces: (string | null)[][][] = [];
  let left = 0;
  for (const { texts, bytes } of rows) {
    if (bytes + REQUEST_BYTES > maxPacket) {
      const limit = `max_allowed_packet of the server (${maxPacket})`;
      throw new SinkError('refused', `MySQL: a row takes ${bytes} bytes, more than ${limit}. Raise it`);
    }
    if (pieces.length === 0 || bytes > left) {
      pieces.push([]);
      left = maxBytes;
    }
    pieces.at(-1)?.push(texts);
    left -= bytes;
  }
  return pieces;
}

export type MysqlConnection = Awaited<ReturnType<typeof connect>>;

const limitsSchema = z.tuple([z.object({ maxPacket: z.coerce.number(), binlog: z.string() })]);

/** Access denied, as MariaDB says for a user that must use TLS; a connection without TLS. */
const WITHOUT_TLS = [1045, 3159];
/** The account is locked (MySQL; MariaDB), or blocked after wrong passwords (the same); the password has expired. */
const ACCOUNT = [3118, 4151, 3955, 4150, 1820, 1862];

/** Returns what the operator can do after the error of a login. */
function loginAdvice(errno: number, { ssl }: ConnectionConfig): string {
  if (WITHOUT_TLS.includes(errno)) {
    return ssl === false ? '. If the server demands TLS, add ssl-mode=REQUIRED to the address' : '';
  }
  return ACCOUNT.includes(errno) ? '. Unlock the account of this user at the server, or set a new password' : '';
}

/** Opens the driver's connection, which ends with `life`. */
async function openDriver(config: ConnectionConfig, life: ConnectionLife): Promise<Connection> {
  const { host = '', port = 0, socketPath } = config;
  const restricted = { restrictedAuth: LOGINS };
  const connection = await createConnection({
    ...config,
    // The types of the driver leave it out.
    ...restricted,
    connectTimeout: CONNECT_TIMEOUT_MS,
    logParam: false,
    forceVersionCheck: true,
    bigIntAsNumber: true,
    insertIdAsNumber: true,
    autoJsonMap: false,
    // The driver builds TLS on this socket. It opens a socket of this machine itself.
    ...(socketPath === undefined && {
      stream: (ready) => {
        const socket = new Socket().setNoDelay();
        life.own(socket);
        ready(undefined, socket);
        socket.connect(port, host);
      },
    }),
  });
  // Without a listener, an error would end the process.
  connection.on('error', (error) => life.end(new MysqlError(error)));
  // Its `destroy` would open another connection, whose errors end the process.
  if (socketPath !== undefined) life.atEnd(() => connection.end().catch(() => {}));
  return connection;
}

/** Connects. When `life` ends, so does the connection. */
export async function connect(config: ConnectionConfig, life: ConnectionLife) {
  /** Runs a call of the driver. */
  async function call<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await withTimeout(QUERY_TIMEOUT_MS, work, life.signal);
    } catch (error) {
      throw error instanceof SinkError ? error : new MysqlError(error);
    }
  }

  const driver = await call(() => openDriver(config, life)).catch((error: unknown) => {
    if (error instanceof MysqlError) error.advice = loginAdvice(error.errno, config);
    throw error;
  });
  const isMariaDb = driver.info?.isMariaDB() === true;
  const isKnown = isMariaDb ? driver.info?.hasMinVersion(10, 3, 0) : driver.info?.hasMinVersion(8, 0, 17);
  if (isKnown !== true) throw new SinkError('misconfigured', 'MySQL 8.0.17 or MariaDB 10.3 is needed, or a newer one');
  /** @returns the rows of a SELECT */
  const query = async (sql: string, values: readonly unknown[] = []): Promise<unknown[]> =>
    await call(() => driver.query<unknown[]>(sql, [...values]));
  const settings = {
    sql_mode: `'STRICT_ALL_TABLES'`,
    autocommit: 1,
    sql_safe_updates: 0,
    sql_select_limit: '18446744073709551615',
    completion_type: 0,
    innodb_lock_wait_timeout: LOCK_TIMEOUT_S,
    lock_wait_timeout: LOCK_TIMEOUT_S,
    ...(isMariaDb && { max_statement_time: STATEMENT_TIMEOUT_S }),
  };
  await query(
    `SET SESSION ${Object.entries(settings)
      .map(([name, value]) => `${name} = ${value}`)
      .join(', ')}`,
  );
  const [{ maxPacket, binlog }] = limitsSchema.parse(
    await query(`SELECT @@max_allowed_packet AS maxPacket, ${isMariaDb ? '@@binlog_format' : "''"} AS binlog`),
  );
  // MariaDB cannot write the rows of one request into a log of statements.
  const bulk = binlog !== 'STATEMENT';
  const maxBytes = Math.min(maxPacket - REQUEST_BYTES, MAX_PIECE);

  return {
    server: 'MySQL',
    isMariaDb,
    query,
    parameter: () => '?',
    /** Runs a statement for each row. */
    each: async (sql: string, rows: readonly TextRow[]): Promise<void> => {
      for (const piece of piecesOf(rows, maxPacket, maxBytes)) await call(() => driver.batch({ sql, bulk }, piece));
    },
    /** Runs a statement for all keys, of which it names some at once. @param sql with a list for IN @returns all rows */
    forKeys: async (sql: (list: string) => string, keys: readonly string[]): Promise<unknown[]> => {
      const found: unknown[] = [];
      const rows = keys.map((key) => textRow([key]));
      // In the text of a statement, a character may be escaped.
      for (const piece of piecesOf(rows, maxPacket, maxBytes / 2)) {
        const answer = await query(sql(piece.map(() => '?').join()), piece.flat());
        if (Array.isArray(answer)) for (const row of answer) found.push(row);
      }
      return found;
    },
    inTransaction: async <T>(end: 'COMMIT' | 'ROLLBACK', work: () => Promise<T>): Promise<T> => {
      await query(`SET SESSION wait_timeout = ${TRANSACTION_PAUSE_S}`);
      try {
        return await inTransaction({ query }, end, work);
      } finally {
        await query('SET SESSION wait_timeout = DEFAULT').catch(() => {});
      }
    },
    end: () => driver.end(),
  };
}
