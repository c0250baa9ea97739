import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import { type HttpError, sendError } from '../http-error.ts';
import { type EndCode, endBlock } from '../response-writer.ts';

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

/**
 * Refuses a stream. Any status but 200 would end an EventSource for good, so it gets a stream that has only the reason
 * and when to come back. Its last id stays as it is.
 */
export function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  clock: Clock,
  error: HttpError & { readonly code: EndCode },
): FastifyReply {
  if (!accepts(request.headers)) return sendError(reply, error);
  const retryMs = RETRY_MS.from + clock.random() * (RETRY_MS.to - RETRY_MS.from);
  return reply.headers({ ...error.headers, ...STREAM_HEADERS }).send(endBlock(error.code, retryMs));
}
