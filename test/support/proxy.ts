import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A port in front of another one, at which the connection can be cut. */
export interface Proxy {
  readonly port: number;
  /** Breaks what is connected, and refuses what would like to be. */
  readonly cut: () => Promise<void>;
  readonly mend: () => Promise<void>;
}

export async function startProxy(target: number): Promise<Proxy> {
  const sockets = new Set<Socket>();

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

  async function listen(port: number): Promise<Server> {
    const listening = createServer(join).listen(port, '127.0.0.1');
    await once(listening, 'listening');
    return listening;
  }

  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    mend: async () => {
      server = await listen(port);
    },
    cut: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
