import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';

/** A port that forwards to another port until it is cut. */
export interface TcpProxy {
  readonly port: number;
  /** Bytes that went through, in both directions. */
  readonly bytes: () => number;
  /** Breaks open connections and rejects new ones. */
  readonly cut: () => Promise<void>;
  readonly restore: () => Promise<void>;
  /** Keeps open connections, but forwards nothing more on them. */
  readonly mute: () => void;
  /** Resets each open connection when its client sends something, as a firewall that has forgotten them. */
  readonly forget: () => void;
  /** Keeps back the next piece that contains `text`, and what follows it on its connection. Others are forwarded. */
  readonly hold: (text: string) => Held;
}

interface Held {
  /** Resolves when there is such a piece. */
  readonly arrived: Promise<void>;
  /** Forwards it after all. */
  readonly release: () => void;
}

export async function startProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let forgotten = new Set<Socket>();
  let bytes = 0;
  let onPiece: ((piece: Buffer, forward: () => void) => void) | null = null;

  /** Forwards pieces of a client, unless one is to be kept back. */
  function gate(client: Socket): Transform {
    return new Transform({
      transform: (piece: Buffer, _, done) => {
        if (forgotten.has(client)) {
          client.resetAndDestroy();
          return;
        }
        const forward = (): void => done(null, piece);
        if (onPiece === null) forward();
        else onPiece(piece, forward);
      },
    });
  }

  function hold(text: string): Held {
    let release = (): void => {};
    const arrived = new Promise<void>((resolve) => {
      onPiece = (piece, forward) => {
        if (!piece.includes(text)) {
          forward();
          return;
        }
        onPiece = null;
        release = forward;
        resolve();
      };
    });
    return { arrived, release: () => release() };
  }

  function join(client: Socket): void {
    const upstream = connect(target, '127.0.0.1');
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('data', ({ length }: Buffer) => {
        bytes += length;
      });
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.pipe(gate(client)).pipe(upstream);
    upstream.pipe(client);
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
    bytes: () => bytes,
    restore: async () => {
      server = await listen(port);
    },
    hold,
    forget: () => {
      forgotten = new Set(sockets);
    },
    mute: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    cut: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
