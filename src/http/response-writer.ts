import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '@catchword/base/clock';
import { errorFields, type Logger } from '@catchword/base/log';
import type { FastifyReply } from 'fastify';
import { sendError } from './http-error.ts';
import { OVERLOADED, type Waiting } from './slow-readers.ts';
import type { StreamLimits } from './stream-limits.ts';

/** Bytes written at once. A reader that takes one piece in time is alive, however large the whole is. */
const PIECE = 65_536;
/** Pause of an EventSource before it reconnects, milliseconds. */
export const RETRY_MS = 3_000;
const RETRY_AFTER_ERROR_MS = 10_000;

/** Reasons why a stream ends. Readers match on the code. */
const MESSAGES = {
  GONE: 'the reader disconnected',
  SHUTDOWN: 'catchword is stopping; reconnect with the last id',
  SLOW_READER: 'the reader took too little data for too long; reconnect with the last id',
  INTERNAL: "the mirror could not be read; see catchword's log",
  TOO_MANY_STREAMS: 'as many streams are open as are allowed; reconnect later',
  SEARCH_TIMEOUT: 'where or fields took too long, or what others asked for; reconnect later',
  TOO_MANY_VIEWS: 'open streams have as many different views as are allowed; reconnect later',
  OVERLOADED: 'too much data waits for slow readers; reconnect later',
  NOT_FOUND: 'this page does not exist any more',
};

export type EndCode = keyof typeof MESSAGES;

/** The last message of a stream. After a failure, its reader comes back later. */
export function endBlock(
  code: EndCode,
  retryMs = code === 'INTERNAL' || code === 'SEARCH_TIMEOUT' ? RETRY_AFTER_ERROR_MS : RETRY_MS,
): string {
  const data = JSON.stringify({ code, message: MESSAGES[code] });
  return `retry: ${Math.round(retryMs)}\nevent: end\ndata: ${data}\n\n`;
}

export interface WriterParts {
  readonly clock: Clock;
  readonly waiting: Pick<Waiting, 'watch' | 'turn'>;
  readonly limits: StreamLimits;
}

/** The same for a route, which starts nothing large while too much waits. */
export interface RouteParts extends WriterParts {
  readonly log: Logger;
  readonly waiting: Waiting;
}

/**
 * Writes a response no faster than its reader takes it: the socket holds at most its high-water mark and one piece.
 * @param ending aborted with an EndCode to end the response. The writer aborts it itself: GONE when the connection
 *   closes; SLOW_READER if one piece takes too long, or if all readers together keep too much waiting
 */
function createWriter(response: ServerResponse, ending: AbortController, parts: WriterParts) {
  const { clock, waiting, limits } = parts;
  const { signal } = ending;
  const { socket } = response.req;
  let pending: Buffer | null = null;

  const isOpen = (): boolean => !(response.destroyed || response.closed || socket.destroyed);
  const gone = () => ending.abort('GONE' satisfies EndCode);
  // Writing to a broken connection is not a failure: `close` follows.
  response.on('error', () => {});
  response.once('close', () => {
    socket.off('close', gone);
    gone();
  });
  // A response that waits behind another one on its connection is not notified when that breaks. There may be many.
  socket.setMaxListeners(0);
  socket.once('close', gone);
  // It may have closed before, while what is written first was read.
  if (!isOpen()) gone();
  const slow = () => ending.abort('SLOW_READER' satisfies EndCode);
  waiting.watch(response, { pending: () => pending, end: slow });

  async function drained(): Promise<void> {
    const over = new AbortController();
    const until = { signal: over.signal };
    const events = [once(response, 'drain', until), once(signal, 'abort', until)];
    // Behind another response of its connection, it has not begun to be taken.
    if (response.socket !== null) events.push(clock.sleep(limits.slowReaderMs, over.signal).then(() => [slow()]));
    // A broken connection is an error here, and ends the response by itself.
    await Promise.race(events).catch(() => {});
    over.abort();
  }

  return {
    /** Writes the whole text, even if `ending` aborts meanwhile: no message is cut off. Then others have their turn. */
    write: async (text: string | Buffer): Promise<void> => {
      const bytes = typeof text === 'string' ? Buffer.from(text) : text;
      pending = bytes;
      for (let at = 0; at < bytes.length && isOpen(); at += PIECE) {
        const isFull = !response.write(bytes.subarray(at, at + PIECE));
        if (isFull && !signal.aborted) await drained();
      }
      pending = null;
      await waiting.turn();
    },
    /** Sends a comment of a stream between two messages, so that proxies keep the connection. */
    beat: (): void => {
      if (pending === null && isOpen()) response.write(': still here\n\n');
    },
    /** Sends the last message of a stream, and destroys the connection if the reader does not take it. */
    end: async (last: string): Promise<void> => {
      if (!isOpen()) return;
      const closed = new AbortController();
      response.once('close', () => closed.abort());
      response.end(last);
      await clock.sleep(limits.graceMs, closed.signal).catch(() => {});
      if (!closed.signal.aborted) socket.destroy();
    },
  };
}

export interface Messages {
  /** Writes messages until `ending` aborts. */
  readonly write: (write: (text: string | Buffer) => Promise<void>, ending: AbortController) => Promise<void>;
  /** Names the reason why what `write` threw ends the stream. */
  readonly failed: (error: unknown) => EndCode;
}

/**
 * Streams messages into a response whose headers were sent, and a comment now and then.
 * @param ending aborted with an EndCode to end the stream; the stream aborts it when it ends by itself
 * @returns when it is done with the connection
 */
export async function writeStream(
  response: ServerResponse,
  ending: AbortController,
  parts: WriterParts,
  messages: Messages,
): Promise<EndCode> {
  const { clock, limits } = parts;
  const { signal } = ending;
  const { write, beat, end } = createWriter(response, ending, parts);
  const keepAlive = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(limits.heartbeatMs, signal);
      beat();
    }
  };
  keepAlive().catch(() => {});
  try {
    if (!signal.aborted) await messages.write(write, ending);
  } catch (error) {
    if (!signal.aborted) ending.abort(messages.failed(error));
  }
  const code = signal.reason as EndCode;
  if (code !== 'GONE') await end(endBlock(code));
  return code;
}

/**
 * Sends JSON that is made while it is taken. A client that is too slow, or whose page cannot be read to its end, sees a
 * broken connection, not the end of a page.
 * @throws what the first piece throws; then nothing was sent
 */
export async function sendPieces(
  reply: FastifyReply,
  pieces: AsyncIterator<string, void>,
  parts: RouteParts,
): Promise<void> {
  const { raw, request } = reply;
  if (parts.waiting.isFull()) return void sendError(reply, OVERLOADED);
  let piece = await pieces.next();
  reply.type('application/json; charset=utf-8').hijack();
  raw.writeHead(200, reply.getHeaders() as Record<string, string>);
  const ending = new AbortController();
  const { signal } = ending;
  const writer = createWriter(raw, ending, parts);
  try {
    while (!piece.done && !signal.aborted && request.method !== 'HEAD') {
      await writer.write(piece.value);
      if (!signal.aborted) piece = await pieces.next();
    }
  } catch (error) {
    parts.log.error(errorFields(error), 'a page could not be read to its end');
    ending.abort('INTERNAL' satisfies EndCode);
  }
  if (!signal.aborted) raw.end();
  else request.raw.socket.destroy();
}
