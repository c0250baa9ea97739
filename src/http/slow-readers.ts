import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as otherWork } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { type HttpError, STATUS } from './http-error.ts';

/*
 * What readers have asked for and not taken waits in this process. Each reader alone may keep little waiting, but a
 * thousand of them keep much, so there is one bound over all of them together:
 *
 *     below the bound    nothing happens
 *     above it           who has taken nothing since the last check is ended, the slowest first, until the rest fits;
 *                        who is still there at the next check is cut off; new large answers get OVERLOADED
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
  /** What it has in hand and has not written to its end; readers may share it, then it counts once. */
  readonly pending: () => Buffer | null;
  /** Ends it because it is slow. */
  readonly end: () => void;
}

interface Connection {
  readonly socket: Socket;
  /** Open responses, pipelined ones included. */
  readonly responses: Set<ServerResponse>;
  /** Bytes that the operating system had taken at the last check. */
  taken: number;
  /** Checks since the reader last took anything that waited. */
  stalled: number;
  isEnded: boolean;
}

interface WaitingOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: {
    /** Bytes that may wait for all readers together. For safety: they are memory of this process. */
    readonly maxWaitingBytes: number;
    /** How often readers are looked at, milliseconds. */
    readonly checkMs: number;
  };
}

export type Waiting = ReturnType<typeof addWaiting>;

/** Bounds what waits for all readers of a server together. */
export function addWaiting(app: FastifyInstance, { clock, log, limits }: WaitingOptions) {
  const connections = new Map<Socket, Connection>();
  const readers = new WeakMap<ServerResponse, Reader>();
  const stopping = new AbortController();
  let lastTurn = Promise.resolve();

  app.server.on('connection', (socket) => {
    connections.set(socket, { socket, responses: new Set(), taken: 0, stalled: 0, isEnded: false });
    socket.once('close', () => connections.delete(socket));
  });
  app.server.on('request', ({ socket }, response) => {
    const responses = connections.get(socket)?.responses;
    if (responses === undefined) return;
    responses.add(response);
    response.once('close', () => responses.delete(response));
    if (responses.size > MAX_PIPELINED) socket.destroy();
  });

  const written = ({ responses }: Connection): number =>
    [...responses].reduce((sum, { writableLength }) => sum + writableLength, 0);

  const pendingOf = ({ responses }: Connection): Buffer[] =>
    [...responses].flatMap((response) => readers.get(response)?.pending() ?? []);

  /** Bytes that wait, and how many readers share each pending text. */
  function measure() {
    const sharers = new Map<Buffer, number>();
    let bytes = 0;
    for (const connection of connections.values()) {
      bytes += written(connection);
      for (const text of pendingOf(connection)) {
        const others = sharers.get(text) ?? 0;
        if (others === 0) bytes += text.length;
        sharers.set(text, others + 1);
      }
    }
    return { bytes, sharers };
  }

  function end(connection: Connection): void {
    const known = [...connection.responses].flatMap((response) => readers.get(response) ?? []);
    if (connection.isEnded || known.length === 0) connection.socket.destroy();
    for (const reader of known) reader.end();
    connection.isEnded = true;
  }

  function check(): void {
    for (const connection of connections.values()) {
      const { socket } = connection;
      const taken = socket.bytesWritten - socket.writableLength;
      const hasMoved = taken !== connection.taken || written(connection) === 0;
      connection.stalled = hasMoved ? 0 : connection.stalled + 1;
      connection.taken = taken;
    }
    const { bytes, sharers } = measure();
    let excess = bytes - limits.maxWaitingBytes;
    if (excess <= 0) return;
    const slowest = [...connections.values()].filter(({ stalled }) => stalled > 0);
    slowest.sort((one, other) => other.stalled - one.stalled);
    let ended = 0;
    for (const connection of slowest) {
      if (excess <= 0) break;
      excess -= written(connection);
      for (const text of pendingOf(connection)) if (sharers.get(text) === 1) excess -= text.length;
      end(connection);
      ended++;
    }
    if (ended > 0) log.warn({ waitingBytes: bytes, ended }, 'too much data waits for slow readers');
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(limits.checkMs, stopping.signal).catch(() => {});
      if (!stopping.signal.aborted) check();
    }
  }

  const isFull = (): boolean => measure().bytes > limits.maxWaitingBytes;

  app.addHook('onSend', async (_request, reply, payload) => {
    const isLarge = (typeof payload === 'string' || Buffer.isBuffer(payload)) && payload.length >= LARGE;
    if (!isLarge || !isFull()) return payload;
    const { code, message, hint, headers } = OVERLOADED;
    reply.code(STATUS[code]).headers({ ...headers, 'content-type': 'application/json; charset=utf-8' });
    reply.removeHeader('content-length').removeHeader('content-encoding');
    return JSON.stringify({ error: { code, message, hint } });
  });
  app.server.once('listening', () => void watch());
  app.server.once('close', () => stopping.abort());
  return {
    /** Names a response that is written piece by piece. */
    watch: (response: ServerResponse, reader: Reader): void => {
      readers.set(response, reader);
    },
    /** Whether more waits than may, so that nothing large is started. */
    isFull,
    /**
     * Waits until it is this reader's turn to read. One reads between two rounds of all other work: if every reader read
     * in each round, hundreds of them would hold up small answers for seconds.
     */
    turn: (): Promise<void> => {
      lastTurn = lastTurn.then(() => otherWork());
      return lastTurn;
    },
  };
}
