import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A port that forwards to another port until it is cut. */
export interface Proxy {
  readonly port: number;
  /** Breaks open connections and rejects new ones. */
  readonly cut: () => Promise<void>;
  readonly restore: () => Promise<void>;
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
    restore: async () => {
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
