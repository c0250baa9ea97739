import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import { decoded } from '@catchword/base/percent-decode';
import { readTextInTime } from '@catchword/base/text-file';
import type { ConnectionLife } from '@catchword/sink-kit/connection-scope';
import { SinkError, type SinkSettings } from '@catchword/sink-kit/sink';
import { connect as connectNats, credsAuthenticator } from '@nats-io/transport-node';

const CONNECT_TIMEOUT_MS = 10_000;

/** Tells settings from failures that pass. */
export function toSinkError(error: unknown): SinkError {
  const name = error instanceof Error ? error.name : '';
  const message = messageOf(error);
  // Requests that the user may not make, and contents of files of credentials, have no error of a name of its own.
  const ofSetting = /^(Authori|UserAuth|JetStreamNotEnabled|InvalidName)|: (Permissions V|unable to p|nkeys)/;
  const isSetting = error instanceof CatchwordError || ofSetting.test(`${name}: ${message}`);
  return new SinkError(isSetting ? 'misconfigured' : 'unavailable', `NATS: ${message}`, {
    cause: error,
    timedOut: name === 'TimeoutError',
  });
}

/** Node.js announces here each socket that is made to connect. */
const SOCKETS = 'net.client.socket';
const connecting = new AsyncLocalStorage<ConnectionLife>();

/** Connects. The driver leaves sockets open on which it gave up, and hands out none: its sockets are found as they are made. */
export async function connect(
  { url, urls }: SinkSettings,
  { creds, inbox_prefix }: { readonly creds?: string | undefined; readonly inbox_prefix: string },
  life: ConnectionLife,
) {
  const user = decoded(url.username);
  const pass = decoded(url.password);
  let socket: Socket | undefined;
  /** The name of the server, if its address is one. */
  let name = '';
  const own = (message: unknown): void => {
    if (connecting.getStore() !== life) return;
    ({ socket } = message as { readonly socket: Socket });
    life.own(socket);
    name = '';
    socket.once('lookup', (...[, , , host]) => {
      name = host;
    });
  };
  // Without `host`, the driver compares the certificate of an IP address with localhost.
  const tls = {
    get host() {
      return socket?.remoteAddress;
    },
    get servername() {
      return name;
    },
  };
  subscribe(SOCKETS, own);
  try {
    const connection = await connecting.run(life, async () =>
      connectNats({
        servers: urls.map(({ hostname, port }) => `${hostname}:${port || '4222'}`),
        name: 'catchword',
        // The relay reconnects.
        reconnect: false,
        // The driver would give each address of a name the whole time, in an order by chance.
        resolve: false,
        timeout: CONNECT_TIMEOUT_MS,
        ...(url.protocol === 'tls:' && { tls: tls as object }),
        ...(user !== '' && (pass === '' ? { token: user } : { user, pass })),
        authenticator: creds === undefined ? [] : credsAuthenticator(Buffer.from(await readTextInTime(creds, creds))),
        inboxPrefix: inbox_prefix,
      }),
    );
    void connection.closed().then((error) => life.end(error ?? new Error('the server closed the connection')));
    return connection;
  } finally {
    unsubscribe(SOCKETS, own);
  }
}
