import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from './server.ts';

/** A port in front of another one, at which the connection can be cut. */
export interface Proxy {
  readonly port: number;
  /** Breaks what is connected, and refuses what would like to be. */
  readonly cut: () => Promise<void>;
  readonly mend: () => Promise<void>;
}

export async function startProxy(target: number): Promise<Proxy> {
  const port = await freePort();
  const sockets = new Set<Socket>();
  let server: Server;

  function join(client: Socket): void {
    const upstream = connect(target, '127.0.0.1');
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }

  async function mend(): Promise<void> {
    server = createServer(join).listen(port, '127.0.0.1');
    await once(server, 'listening');
  }

  await mend();
  return {
    port,
    mend,
    cut: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
