import { createConnection, Socket } from 'node:net';
import { userInfo } from 'node:os';
import type { Duplex } from 'node:stream';
import type { ConnectionLife } from '@catchword/sink-kit/connection-scope';
import pg from 'pg';
import { messageCheck } from './message-check.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** How long the server works on a statement: it also ends one whose client is gone without a word. */
const STATEMENT_TIMEOUT_MS = 60_000;
/** Longer, so that the server reports its own limit. */
const QUERY_TIMEOUT_MS = 65_000;
const CANCEL_TIMEOUT_MS = 2_000;

try {
  // An address without a user means the user of the process, as in libpq. The driver asks USER, which a service may lack.
  pg.defaults.user ??= userInfo().username;
} catch {
  // In a container, the user of the process may have no name: PostgreSQL says then that the user is missing.
}

/** Members that the types of the driver leave out. */
interface Internals {
  readonly processID: number | null;
  readonly secretKey: number | null;
  /** `attachListeners` is called with the stream that the parser reads, with TLS or without. */
  readonly connection: { attachListeners(stream: Duplex): void };
}
type Client = pg.Client & Internals;

/**
 * Asks the server to end the statement that a connection runs, over a connection of its own, as the protocol has it.
 * Otherwise a backend that waits for a lock would not notice that its client is gone, and each try would add one.
 */
function cancelStatement({ host, port, processID, secretKey }: Client): void {
  if (processID === null || secretKey === null) return;
  const request = Buffer.alloc(16);
  request.writeInt32BE(request.length, 0);
  request.writeInt32BE(80_877_102, 4);
  request.writeInt32BE(processID, 8);
  request.writeInt32BE(secretKey, 12);
  const socket = createConnection(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port });
  socket.setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy());
  // The statement ends at the latest with the server's own limit.
  socket.on('error', () => {});
  socket.on('connect', () => socket.end(request)).resume();
}

export type PostgresConnection = Awaited<ReturnType<typeof connectWith>>;

async function connectWith(config: pg.ClientConfig, life: ConnectionLife, isPooled: boolean) {
  // The driver builds TLS on this socket.
  const socket = new Socket();
  const client = new pg.Client({
    ...config,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    // 0: not sent.
    statement_timeout: config.statement_timeout ?? (isPooled ? 0 : STATEMENT_TIMEOUT_MS),
    application_name: config.application_name ?? (isPooled ? undefined : 'catchword'),
    stream: () => socket,
  }) as Client;
  const { connection } = client;
  const attach = connection.attachListeners.bind(connection);
  connection.attachListeners = (stream) => {
    const checked = messageCheck().on('error', (error) => stream.destroy(error));
    attach(stream.pipe(checked));
  };
  // Without a listener, an error would end the process.
  client.on('error', (error) => {
    // Its statement has ended with it, so nothing has to be cancelled.
    socket.destroy();
    life.end(error);
  });
  life.atEnd(() => {
    if (!socket.destroyed) cancelStatement(client);
  });
  life.own(socket);
  await client.connect();
  return {
    server: 'PostgreSQL',
    /** @returns the rows of a SELECT */
    query: async <Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
      (await client.query<Row>({ text, values: [...values] })).rows,
    parameter: (n: number): string => `$${n}`,
    end: (): Promise<void> => client.end(),
  };
}

/** Connects. When `life` ends, so do the connection and the statement that it runs. */
export async function connect(config: pg.ClientConfig, life: ConnectionLife): Promise<PostgresConnection> {
  try {
    return await connectWith(config, life, false);
  } catch (error) {
    // A pooler such as PgBouncer refuses settings of a session, which it would pass on to other applications.
    if (!(error instanceof Error) || !/unsupported startup parameter/i.test(error.message)) throw error;
    return await connectWith(config, life, true);
  }
}
