import { hasCode } from '@catchword/base/errors';
import { errorFields } from '@catchword/base/log';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import { requireKnownSeq } from '../../store/history/history.ts';
import { isPosition } from '../../store/history/log-position.ts';
import type { ChangeFeed, streamStart } from '../change-feed.ts';
import { parameters, textParameter } from '../parameters.ts';
import { APPROVED, type ReaderView, type ReaderViews, TOO_MANY_VIEWS, VIEW_PARAMETERS } from '../reader-views.ts';
import { type EndCode, type Messages, RETRY_MS, type RouteParts } from '../response-writer.ts';
import { body, sending } from '../route-schema.ts';
import { accepts, createOpenStreams, endAtOnce, refuse, STREAM_HEADERS, STREAM_PATH } from './open-streams.ts';

/** The parts of routes that read the change log. */
export interface ChangeParts extends RouteParts {
  readonly changes: ChangeFeed;
  readonly views: ReaderViews;
}

const MAX_LOGGED = 80;

const QUERY = parameters({
  after: textParameter(
    'Where to start: the number of a change, an `id` of this stream, or `latest` for new changes only. `Last-Event-ID` wins.',
    (text) => text === 'latest' || isPosition(text),
    'Use the number of a change, an id of this stream, or latest.',
  ).default('0'),
  ...VIEW_PARAMETERS,
  approved: APPROVED,
});
const BODY = body(
  'Server-sent events. `data` of a message is one event of the change log, and `id` its position. Other types, each with JSON: `start`; `reset`: discard what you have, the stream goes on after `after`; `end`: `code` says why.',
  'text/event-stream',
  z.string(),
);
const SCHEMA = sending(BODY, {
  operationId: 'streamChanges',
  summary: 'The change log as a stream',
  description:
    'Sends the changes after a position, then new ones as they are recorded. An EventSource resumes by itself. Comments keep a silent connection alive. A reader that accepts `text/event-stream` is never refused with 503: it gets an `end` that says when to come back.',
  tags: ['changes'],
  querystring: QUERY,
});

/*
 * One reader of the change log, from a position on:
 *
 *     send the start
 *          │
 *     read a batch ──► write it, piece by piece ──► read the next …
 *          │ nothing new          │ the socket is full
 *     wait for a change       wait until it drains; if one piece takes 30 s: SLOW_READER
 *
 * At most one batch is read ahead, and nothing is read while written data waits. An event that was started is always
 * written to its end before the stream ends.
 */

/** @param start reads where to start; if it throws, the stream ends */
export function changeMessages(
  start: () => ReturnType<typeof streamStart>,
  { batch, polled }: Pick<ChangeFeed, 'batch' | 'polled'>,
): Messages['write'] {
  return async (write, { signal }) => {
    const { from, block } = start();
    let seq = from;
    // A reader that was refused before has been told to wait longer.
    await write(`retry: ${RETRY_MS}\n${block}`);
    while (!signal.aborted) {
      const found = await batch(seq);
      if (found === null) {
        while ((await polled(signal)) <= seq);
      } else {
        await write(found.bytes);
        seq = found.to;
      }
    }
  };
}

/** Serves the change log as server-sent events. @returns a function that ends every stream, later ones too */
export function addSseRoute(app: FastifyInstance, options: ChangeParts): () => Promise<void> {
  const { changes, clock, limits, log, views } = options;
  const streams = createOpenStreams(options, {
    most: limits.maxStreams,
    message: `${limits.maxStreams} streams are open, which is the limit`,
    hint: 'Close streams that are not in use, retry later, or page through /api/changes.',
  });

  /** Names the reason why a stream ends with this error. */
  function failed(error: unknown): EndCode {
    if (hasCode(error, 'SEARCH_TIMEOUT')) return 'SEARCH_TIMEOUT';
    if (hasCode(error, 'INTERRUPTED')) return 'SHUTDOWN';
    log.error(errorFields(error), 'a stream could not read the mirror');
    return 'INTERNAL';
  }

  /** @param given where to start, whether the past is wanted, too, and as of which state */
  async function open(reply: FastifyReply, reading: ReaderView, ...given: [string, boolean, 'true' | undefined]) {
    const [position, wantsPast, approved] = given;
    const after = position.slice(0, MAX_LOGGED);
    const start = () => {
      const found = changes.start(position, wantsPast, reading.digest, changes.asOf(approved));
      if (found.reset !== null) log.warn({ code: found.reset, after, seq: found.from }, 'stream reset');
      return found;
    };
    const batch = (seq: number) => changes.batch(seq, reading, approved === 'true');
    reading.streams++;
    const ended = streams.begin(reply, { write: changeMessages(start, { ...changes, batch }), failed });
    log.info({ after, streams: streams.count() }, 'stream started');
    const code = await ended;
    reading.streams--;
    log.info({ code, after, streams: streams.count() }, 'stream ended');
  }

  const routes = app.withTypeProvider<ZodTypeProvider>();
  for (const method of ['GET', 'HEAD'] as const) {
    routes.route({
      method,
      url: STREAM_PATH,
      exposeHeadRoute: false,
      schema: method === 'GET' ? SCHEMA : { querystring: QUERY },
      handler: async (request, reply) => {
        const { after, approved, ...text } = request.query;
        const reading = await views.of(text).catch((error: unknown) => {
          // An expression that is not valid stays so: only then may an EventSource end for good.
          if (!accepts(request.headers) || hasCode(error, 'USAGE')) throw error;
          return failed(error);
        });
        if (typeof reading === 'string') return endAtOnce(reply, clock, reading);
        // That of a reader that reconnects wins over the address it first used.
        const lastId = String(request.headers['last-event-id'] ?? '');
        // An EventSource gets `event: reset` instead.
        const isChecked = lastId === '' && /^\d+$/.test(after) && !accepts(request.headers);
        if (isChecked) requireKnownSeq('after', Number(after), changes.lastSeq());
        const refusal = streams.refusal(request, reply);
        if (refusal !== null) return refusal;
        if (!views.mayStream(reading)) return refuse(request, reply, clock, TOO_MANY_VIEWS);
        if (method === 'HEAD') return reply.headers(STREAM_HEADERS).send();
        void open(reply, reading, lastId || after, after !== 'latest', approved);
        return reply;
      },
    });
  }

  return streams.stop;
}
