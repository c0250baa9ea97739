import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '@catchword/base/clock';
import type { Logger } from '@catchword/base/log';
import { publish } from '@catchword/base/telemetry';
import { createTrouble } from '@catchword/base/trouble';
import { networkOf } from './token-check.ts';

/*
 * Anybody may connect, also without a token. So connections that do nothing must not keep others out:
 *
 * - a connection whose first byte does not arrive in time is closed
 * - when there are too many, of one network or in all, the one is closed that has waited longest without a request; if each
 *   of them has a request, the new one
 */

/** Connections. For safety: each takes a descriptor, and the mirror needs some, too. */
const MOST = 1_000;
/** Connections of one network: others, such as probes, always find room. A proxy needs one for each open stream. */
const MOST_OF_NETWORK = 500;
/** Time for the first byte, milliseconds. */
const FIRST_BYTE_MS = 5_000;

interface Connection {
  readonly network: string;
  /** Requests whose responses have not ended. */
  requests: number;
}

/** Limits the connections of a server that does not listen yet. */
export function limitConnections(server: Server, clock: Clock, log: Logger): void {
  /** The connection that ended its last request first, or never had one, comes first. */
  const open = new Map<Socket, Connection>();
  const trouble = createTrouble({ clock, log, wrong: 'connections without a request were closed' });
  // Beyond its own limit, Node.js closes new connections; these would not be counted.
  server.maxConnections = MOST + 100;

  function close(socket: Socket, why: 'silent' | 'too many'): void {
    publish({ of: 'connection', why });
    trouble.failed(why, { reason: why, address: open.get(socket)?.network ?? '' });
    socket.destroy();
  }

  /** Makes room for a new connection. */
  function makeRoom(socket: Socket, network: string): void {
    const own = [...open].filter(([, one]) => one.network === network);
    const some = own.length > MOST_OF_NETWORK ? own : open.size > MOST ? [...open] : [];
    if (some.length === 0) return;
    const [idle = socket] = some.find(([, { requests }]) => requests === 0) ?? [];
    close(idle, 'too many');
  }

  server.on('connection', (socket: Socket) => {
    const network = networkOf(socket.remoteAddress ?? '');
    open.set(socket, { network, requests: 0 });
    makeRoom(socket, network);
    const timer = setTimeout(() => {
      if (socket.bytesRead === 0) close(socket, 'silent');
    }, FIRST_BYTE_MS).unref();
    socket.once('close', () => {
      clearTimeout(timer);
      open.delete(socket);
    });
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const one = open.get(socket);
    if (one === undefined) return;
    one.requests++;
    response.once('close', () => {
      one.requests--;
      // It has just had a request: others wait longer.
      if (open.delete(socket) && !socket.destroyed) open.set(socket, one);
    });
  });
}
