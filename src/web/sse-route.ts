import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { parsePosition } from '../catalog/position.ts';
import { errorFields } from '../log.ts';
import { requireKnownSeq } from '../store/history.ts';
import type { ChangeFeed } from './change-feed.ts';
import { parameters, textParameter } from './parameters.ts';
import type { EndCode, RouteParts } from './response-writer.ts';
import { body, sending, typed } from './route-schema.ts';
import { accepts, refuse, STREAM_HEADERS, STREAM_PATH } from './sse-refusal.ts';
import { type StreamLimits, streamChanges } from './sse-stream.ts';
import { OVERLOADED } from './waiting.ts';

interface SseOptions extends RouteParts {
  readonly limits: StreamLimits;
  readonly changes: ChangeFeed;
}

const MAX_LOGGED = 80;

const QUERY = parameters({
  after: textParameter(
    'Where to start: the number of a change, an `id` of this stream, or `latest` for new changes only. `Last-Event-ID` wins.',
    (text) => text === 'latest' || parsePosition(text) !== null,
    'Use the number of a change, an id of this stream, or latest.',
  ).default('0'),
});
const SCHEMA = sending(
  body(
    'Server-sent events. `data` of a message is one event of the change log, and `id` its position. Other types, each with JSON: `start`; `reset`: discard what you have, the stream goes on after `after`; `end`: `code` says why.',
    'text/event-stream',
    z.string(),
  ),
  {
    operationId: 'streamChanges',
    summary: 'The change log as a stream',
    description:
      'Sends the changes after a position, then new ones as they are recorded. An EventSource resumes by itself. Comments keep a silent connection alive. A reader that accepts `text/event-stream` is never refused with 503: it gets an `end` that says when to come back.',
    tags: ['changes'],
  },
  400,
);

/**
 * Serves the change log as server-sent events.
 * @returns a function that ends every stream with SHUTDOWN, later ones too; it resolves when their readers took the last
 *   message, or are gone
 */
export function addSseRoute(app: FastifyInstance, { log, ...parts }: SseOptions): () => Promise<void> {
  const { changes, clock, limits, waiting } = parts;
  /** When each open stream ends, by what ends it. */
  const streams = new Map<AbortController, Promise<void>>();
  let stopping = false;

  /**
   * Reads where to start. `Last-Event-ID` of a reader that reconnects wins over the address it first used.
   * @returns a position in the log, or `latest`, and whether a reader whose position is not in this log gets all of it
   * @throws CatchwordError USAGE for a position beyond the newest change. A standard EventSource
   *   gets `event: reset` for such a position, because it reconnects with the address it first used.
   */
  function readRequest({ after }: z.output<typeof QUERY>, headers: FastifyRequest['headers']) {
    const position = parsePosition(after);
    const wantsPast = after !== 'latest';
    const lastId = headers['last-event-id'];
    if (lastId !== undefined && lastId !== '') return { position: String(lastId), wantsPast };
    if (position !== null && !accepts(headers)) requireKnownSeq('after', position.seq, changes.lastSeq());
    return { position: after, wantsPast };
  }

  function open(response: ServerResponse, { position, wantsPast }: ReturnType<typeof readRequest>): void {
    // A reader is judged by what it takes, not by silence.
    response.socket?.setTimeout(0);
    const ending = new AbortController();
    if (stopping) ending.abort('SHUTDOWN' satisfies EndCode);
    const after = position.slice(0, MAX_LOGGED);
    const onError = (error: unknown) => log.error(errorFields(error), 'a stream could not read the mirror');
    const begin = () => {
      const start = changes.start(position, wantsPast);
      if (start.reset !== null) log.warn({ code: start.reset, after, seq: start.from }, 'stream reset');
      return start;
    };
    const done = streamChanges(response, begin, ending, parts, onError).then((code) => {
      streams.delete(ending);
      log.info({ code, after, streams: streams.size }, 'stream ended');
    });
    streams.set(ending, done);
    log.info({ after, streams: streams.size }, 'stream started');
  }

  function handle(
    request: FastifyRequest,
    reply: FastifyReply,
    streamRequest: ReturnType<typeof readRequest>,
  ): FastifyReply {
    if (streams.size >= limits.maxStreams) {
      return refuse(request, reply, clock, {
        code: 'TOO_MANY_STREAMS',
        message: `${limits.maxStreams} streams are open, which is the limit`,
        hint: 'Close streams that are not in use, retry later, or page through /api/changes.',
        headers: { 'retry-after': '10' },
      });
    }
    if (waiting.isFull()) return refuse(request, reply, clock, OVERLOADED);
    if (request.method === 'HEAD') return reply.headers(STREAM_HEADERS).send();
    reply.headers(STREAM_HEADERS).hijack();
    reply.raw.writeHead(200, reply.getHeaders() as Record<string, string>);
    open(reply.raw, streamRequest);
    return reply;
  }

  const routes = typed(app);
  for (const method of ['GET', 'HEAD'] as const) {
    routes.route({
      method,
      url: STREAM_PATH,
      exposeHeadRoute: false,
      schema: { ...(method === 'GET' && SCHEMA), querystring: QUERY },
      handler: async (request, reply) => handle(request, reply, readRequest(request.query, request.headers)),
    });
  }

  return async () => {
    stopping = true;
    for (const ending of streams.keys()) ending.abort('SHUTDOWN' satisfies EndCode);
    await Promise.all(streams.values());
  };
}
