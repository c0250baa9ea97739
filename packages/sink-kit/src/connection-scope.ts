import { SinkError } from './sink.ts';

/** The most that a store may send in answer to one call: far more than any answer that a sink waits for. */
const MAX_RECEIVED_BYTES = 128 * 2 ** 20;
const CHECK_MS = 100;
/** Sooner than firewalls forget a connection that is idle (the first ones do after about four minutes). */
const KEEP_ALIVE_MS = 60_000;

/** What is used of a socket of node:net, so that the declarations need no types of Node.js. */
export interface OwnedSocket {
  readonly bytesRead: number;
  setKeepAlive(enable: boolean, initialDelayMs: number): unknown;
  once(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
}

export type ConnectionLife = ReturnType<typeof createConnectionLife>;

/**
 * Makes the life of one connection. Whatever a driver makes for it is handed over here as soon as it exists, so that it is
 * released at the end, in whatever state the driver is.
 */
export function createConnectionLife() {
  const ended = new AbortController();
  const signal: AbortSignal = ended.signal;
  /** Open sockets. A receiver of HTTP may close one after each request. */
  const sockets = new Set<OwnedSocket>();
  let bytesOfClosed = 0;
  let bytesBefore = 0;

  const bytesRead = (): number => [...sockets].reduce((sum, socket) => sum + socket.bytesRead, bytesOfClosed);
  const end = (reason?: unknown): void => ended.abort(reason);

  /** Calls `release` at the end; at once if this is the end already. */
  function atEnd(release: () => unknown): void {
    if (signal.aborted) release();
    else signal.addEventListener('abort', release, { once: true });
  }

  // Drivers keep what they have not understood yet, without a limit.
  const timer = setInterval(() => {
    if (bytesRead() - bytesBefore <= MAX_RECEIVED_BYTES) return;
    end(
      new SinkError('unavailable', `the store sent more than ${MAX_RECEIVED_BYTES / 2 ** 20} MB in answer to a call`),
    );
  }, CHECK_MS).unref();
  atEnd(() => clearInterval(timer));

  return {
    /** Aborts when the connection ends, with the reason. */
    signal,
    atEnd,
    /** Keeps an idle socket alive, and destroys it at the end. A store that floods it ends the connection. */
    own: (socket: OwnedSocket): void => {
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
      const destroy = (): unknown => socket.destroy();
      sockets.add(socket);
      atEnd(destroy);
      socket.once('close', () => {
        sockets.delete(socket);
        bytesOfClosed += socket.bytesRead;
        signal.removeEventListener('abort', destroy);
      });
    },
    /** Notes that a call begins, which the store may answer. */
    callBegins: (): void => {
      bytesBefore = bytesRead();
    },
    end,
  };
}
