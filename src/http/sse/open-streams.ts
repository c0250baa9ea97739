import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '@catchword/base/clock';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type HttpError, sendError } from '../http-error.ts';
import { type EndCode, endBlock, type Messages, type RouteParts, writeStream } from '../response-writer.ts';
import { OVERLOADED } from '../slow-readers.ts';

/** Path of the stream of the change log. */
export const STREAM_PATH = '/api/changes/stream';
/** Prefix of a page's path, under which its live sections are streamed. */
export const LIVE_PATH = '/live';

export const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Without it, nginx buffers events.
  'x-accel-buffering': 'no',
  connection: 'close',
};

/** Pause of a refused EventSource, milliseconds; random, so that not all of them return at once. */
const RETRY_MS = { from: 10_000, to: 30_000 };

/** Whether the client is an EventSource, or reads streams as one does. */
export function accepts(headers: IncomingHttpHeaders): boolean {
  return headers.accept?.includes('text/event-stream') === true;
}

/** Whether the request is for a stream, which ends by itself when catchword stops. */
export function isStream({ routeOptions: { url = '' } }: FastifyRequest): boolean {
  return url === STREAM_PATH || url.startsWith(`${LIVE_PATH}/`);
}

/** Answers an EventSource with a stream that has only the reason and when to come back. Its last id stays as it is. */
export function endAtOnce(reply: FastifyReply, clock: Clock, code: EndCode): FastifyReply {
  const retryMs = RETRY_MS.from + clock.random() * (RETRY_MS.to - RETRY_MS.from);
  return reply.headers(STREAM_HEADERS).send(endBlock(code, retryMs));
}

/** Refuses a stream: an EventSource with a stream that ends at once, because any status but 200 would end it for good. */
export function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  clock: Clock,
  error: HttpError & { readonly code: EndCode },
): FastifyReply {
  if (!accepts(request.headers)) return sendError(reply, error);
  return endAtOnce(reply.headers(error.headers ?? {}), clock, error.code);
}

/** How many streams may be open, for safety, and why the next one is refused. */
type Limit = Pick<HttpError, 'message' | 'hint'> & { readonly most: number };

/** The open streams of one kind. */
export function createOpenStreams(parts: RouteParts, { most, message, hint }: Limit) {
  const { clock, waiting } = parts;
  /** The end of each stream, by the controller that ends it. */
  const open = new Map<AbortController, Promise<unknown>>();
  let stopping = false;

  return {
    count: (): number => open.size,
    /** Refuses a stream if it may not be opened now. @returns null if it may */
    refusal: (request: FastifyRequest, reply: FastifyReply): FastifyReply | null => {
      if (waiting.isFull()) return refuse(request, reply, clock, OVERLOADED);
      if (open.size < most) return null;
      const headers = { 'retry-after': '10' };
      return refuse(request, reply, clock, { code: 'TOO_MANY_STREAMS', message, hint, headers });
    },
    /** Opens a stream, and sends its headers; the rest is as `writeStream` does it. */
    begin: (reply: FastifyReply, messages: Messages): Promise<EndCode> => {
      const { raw } = reply.headers(STREAM_HEADERS).hijack();
      raw.writeHead(200, reply.getHeaders() as Record<string, string>);
      // A reader that takes too little is ended; a silent one may wait for changes.
      raw.socket?.setTimeout(0);
      const ending = new AbortController();
      if (stopping) ending.abort('SHUTDOWN' satisfies EndCode);
      const done = writeStream(raw, ending, parts, messages).finally(() => open.delete(ending));
      open.set(ending, done);
      return done;
    },
    /** Ends all streams, later ones too. It resolves when their readers took the last message, or are gone. */
    stop: async (): Promise<void> => {
      stopping = true;
      for (const ending of open.keys()) ending.abort('SHUTDOWN' satisfies EndCode);
      await Promise.all(open.values());
    },
  };
}
