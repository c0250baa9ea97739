import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as otherWork } from 'node:timers/promises';
import type { Clock } from '@catchword/base/clock';
import type { Logger } from '@catchword/base/log';
import type { FastifyInstance } from 'fastify';
import { errorJson, HTTP_ERRORS, type HttpError } from './http-error.ts';
import type { StreamLimits } from './stream-limits.ts';

/*
 * Responses that slow readers have not received are buffered in this process. Each reader alone may keep little waiting,
 * but a thousand of them keep much, so there is one bound over all of them together:
 *
 *     above it, readers that have taken nothing since the last check are ended, the slowest first, until the rest fits;
 *     a reader that is still there at the next check is cut off; new large answers get OVERLOADED
 *
 * A reader that takes its data is never ended for the others.
 */

/** An answer of this size is large; bytes. Smaller ones (health, status, metrics) are sent whatever waits. */
const LARGE = 65_536;
/** Requests of one connection that may be unanswered. For safety: browsers and clients send one, a flood thousands. */
const MAX_PIPELINED = 32;

export const OVERLOADED = {
  code: 'OVERLOADED',
  message: 'too much data waits for readers that take it slowly',
  hint: 'Retry in a few seconds, and read answers to their end.',
  headers: { 'retry-after': '10' },
} as const satisfies HttpError;

/** A response that is written piece by piece. */
export interface Reader {
  /** The text that the reader has not taken to its end. A text that readers share counts once. */
  readonly pending: () => Buffer | null;
  /** Ends the response because its reader is slow. */
  readonly end: () => void;
}

interface Connection {
  readonly socket: Socket;
  /** Open responses, pipelined ones included, with the readers of responses that are written piece by piece. */
  readonly responses: Map<ServerResponse, Reader | null>;
  /** Bytes that the operating system had taken at the last check. */
  taken: number;
  /** Checks since the reader last took anything that waited. */
  stalled: number;
  isEnded: boolean;
}

const readersOf = ({ responses }: Connection): Reader[] => [...responses.values()].flatMap((reader) => reader ?? []);

const written = ({ responses }: Connection): number =>
  [...responses.keys()].reduce((sum, { writableLength }) => sum + writableLength, 0);

const pendingOf = (connection: Connection): Buffer[] =>
  readersOf(connection).flatMap((reader) => reader.pending() ?? []);

/** Bytes that wait, and how many readers share each pending text. */
function measure(connections: Iterable<Connection>) {
  const sharers = new Map<Buffer, number>();
  let bytes = 0;
  for (const connection of connections) {
    bytes += written(connection);
    for (const text of pendingOf(connection)) {
      const others = sharers.get(text) ?? 0;
      if (others === 0) bytes += text.length;
      sharers.set(text, others + 1);
    }
  }
  return { bytes, sharers };
}

/** Notes whether a reader has taken anything since the last check. */
function note(connection: Connection): void {
  const { socket } = connection;
  const taken = socket.bytesWritten - socket.writableLength;
  const hasMoved = taken !== connection.taken || written(connection) === 0;
  connection.stalled = hasMoved ? 0 : connection.stalled + 1;
  connection.taken = taken;
}

/** Chooses the connections to end, the slowest first, until what waits for the others fits. */
function choose(connections: readonly Connection[], { bytes, sharers }: ReturnType<typeof measure>, most: number) {
  const slowest = connections.filter(({ stalled }) => stalled > 0);
  slowest.sort((one, other) => other.stalled - one.stalled);
  const chosen: Connection[] = [];
  let excess = bytes - most;
  for (const connection of slowest) {
    if (excess <= 0) break;
    const own = pendingOf(connection).filter((text) => sharers.get(text) === 1);
    excess -= own.reduce((sum, { length }) => sum + length, written(connection));
    chosen.push(connection);
  }
  return chosen;
}

/** Waits for the last response, because they are received in order, or for the end of the connection. */
function received({ socket, responses }: Connection): Promise<void> {
  return new Promise((resolve) => {
    [...responses.keys()].at(-1)?.once('close', resolve);
    socket.once('close', resolve);
  });
}

/** Ends a connection that is slow, and destroys it if it was ended before. */
function end(connection: Connection): void {
  const readers = readersOf(connection);
  if (connection.isEnded || readers.length === 0) connection.socket.destroy();
  for (const reader of readers) reader.end();
  connection.isEnded = true;
}

interface WaitingOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: Pick<StreamLimits, 'maxWaitingBytes' | 'checkMs'>;
}

export type Waiting = ReturnType<typeof addWaiting>;

/** Bounds what waits for all readers of a server together. */
export function addWaiting(app: FastifyInstance, { clock, log, limits }: WaitingOptions) {
  const connections = new Map<Socket, Connection>();
  const stopping = new AbortController();
  let lastTurn = Promise.resolve();

  app.server.on('connection', (socket) => {
    connections.set(socket, { socket, responses: new Map(), taken: 0, stalled: 0, isEnded: false });
    socket.once('close', () => connections.delete(socket));
  });
  app.server.on('request', ({ socket }, response) => {
    const responses = connections.get(socket)?.responses;
    if (responses === undefined) return;
    responses.set(response, null);
    response.once('close', () => responses.delete(response));
    if (responses.size > MAX_PIPELINED) socket.destroy();
  });

  function check(): void {
    const all = [...connections.values()];
    for (const connection of all) note(connection);
    const waiting = measure(all);
    const chosen = choose(all, waiting, limits.maxWaitingBytes);
    for (const connection of chosen) end(connection);
    if (chosen.length === 0) return;
    log.warn({ waitingBytes: waiting.bytes, ended: chosen.length }, 'too much data waits for slow readers');
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(limits.checkMs, stopping.signal).catch(() => {});
      if (!stopping.signal.aborted) check();
    }
  }

  const isFull = (): boolean => measure(connections.values()).bytes > limits.maxWaitingBytes;

  app.addHook('onSend', async (_request, reply, payload) => {
    const isLarge = (typeof payload === 'string' || Buffer.isBuffer(payload)) && payload.length >= LARGE;
    if (!isLarge || !isFull()) return payload;
    const { code, headers } = OVERLOADED;
    reply.code(HTTP_ERRORS[code][0]).headers({ ...headers, 'content-type': 'application/json; charset=utf-8' });
    reply.removeHeader('content-length').removeHeader('content-encoding');
    return errorJson(OVERLOADED);
  });
  app.server.once('listening', () => void watch());
  app.server.once('close', () => stopping.abort());
  return {
    /** Names a response that is written piece by piece. */
    watch: (response: ServerResponse, reader: Reader): void => {
      const responses = connections.get(response.req.socket)?.responses;
      if (responses?.has(response)) responses.set(response, reader);
    },
    /**
     * Waits until every open response was received, or its connection is gone. For Node.js a response is finished once it
     * is handed to the socket, and closing the server then breaks the connection.
     */
    received: async (): Promise<void> => {
      const open = [...connections.values()].filter(({ responses }) => responses.size > 0);
      await Promise.all(open.map(received));
    },
    /** Whether more waits than may, so that nothing large is started. */
    isFull,
    /** Waits for this reader's turn: if all read between two rounds of other work, they would hold it up for seconds. */
    turn: (): Promise<void> => {
      lastTurn = lastTurn.then(() => otherWork());
      return lastTurn;
    },
  };
}
