import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.ts';
import { errorFields, type Logger } from '../log.ts';
import type { ChangeLog } from './change-feed.ts';
import { createNews } from './change-notifier.ts';
import { type Refusal, refuse } from './http-error.ts';
import { checkPlace, parametersOf, wholeNumber } from './parameters.ts';
import { type EndCode, type StreamTimes, streamChanges } from './sse-stream.ts';
import { type Beginning, parsePlace } from './start-position.ts';

export const STREAM_PATH = '/api/changes/stream';

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // nginx would keep events back until its buffer is full.
  'x-accel-buffering': 'no',
  connection: 'close',
};

export interface StreamLimits extends StreamTimes {
  /** Streams at a time. For safety: each may hold a batch. */
  readonly maxStreams: number;
  /** How often the mirror is looked at for all streams that wait. */
  readonly pollMs: number;
  /** How long an answer, or the last words of a stream, may take where catchword itself stops; default 5 s. */
  readonly stopMs: number;
}

export const STREAM_LIMITS: StreamLimits = {
  maxStreams: 100,
  pollMs: 250,
  heartbeatMs: 15_000,
  slowReaderMs: 30_000,
  graceMs: 30_000,
  stopMs: 5_000,
};

export interface StreamsOptions {
  readonly changes: ChangeLog;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: StreamLimits;
}

export interface Streams {
  /** Ends every stream with SHUTDOWN, also those that are asked for from now on. Resolves when the last words were taken, or cut off. */
  stop(): Promise<void>;
}

interface Open {
  readonly ending: AbortController;
  readonly done: Promise<void>;
}

/** What a log line repeats of what was asked. */
const MAX_SHOWN = 80;

interface Asked {
  /** A place in the log, or `latest`. */
  readonly place: string;
  /** Whether a reader whose place is not in this log is sent all of it. */
  readonly wantsPast: boolean;
}

export function addStreams(app: FastifyInstance, { changes, clock, log, limits }: StreamsOptions): Streams {
  const news = createNews({ lastSeq: () => changes.lastSeq(), clock, pollMs: limits.pollMs });
  const streams = new Set<Open>();
  let stopping = false;

  function obstacle(): Refusal | null {
    if (streams.size < limits.maxStreams) return null;
    return {
      code: 'TOO_MANY_STREAMS',
      message: `there are ${limits.maxStreams} streams already`,
      hint: 'Come back later, close streams that nobody reads, or page through /api/changes.',
      headers: { 'retry-after': '10' },
    };
  }

  /**
   * Where to begin. The header of a reader that comes back goes before the address that it first asked.
   * @throws CatchwordError USAGE for an address that says something else, or a place beyond the newest change. A standard
   *   EventSource is told of such a place in the stream: it has come back to the address it once began with.
   */
  function askedBy({ query, headers }: FastifyRequest): Asked {
    const { after = '0' } = parametersOf(query, ['after']);
    const place = parsePlace(after);
    if (after !== 'latest' && place === null) wholeNumber('after', after, 0);
    const wantsPast = after !== 'latest';
    const known = headers['last-event-id'];
    // An empty one means none.
    if (known !== undefined && known !== '') return { place: String(known), wantsPast };
    const isEventSource = headers.accept?.includes('text/event-stream') === true;
    if (place !== null && !isEventSource) checkPlace('after', place.seq, changes.lastSeq());
    return { place: after, wantsPast };
  }

  async function serve(response: ServerResponse, { place, wantsPast }: Asked, ending: AbortController) {
    const onError = (error: unknown) => log.error(errorFields(error), 'a stream could not read the mirror');
    const begin = (): Beginning => {
      const beginning = changes.begin(place, wantsPast);
      const { from, reset } = beginning;
      if (reset !== null) log.warn({ code: reset, after: place.slice(0, MAX_SHOWN), seq: from }, 'stream reset');
      return beginning;
    };
    return await streamChanges(response, begin, ending, { changes, news, clock, times: limits }, onError);
  }

  function open(response: ServerResponse, asked: Asked): void {
    // Its readers are watched by what they take, not by silence.
    response.socket?.setTimeout(0);
    const ending = new AbortController();
    if (stopping) ending.abort('SHUTDOWN' satisfies EndCode);
    const from = asked.place.slice(0, MAX_SHOWN);
    const done = serve(response, asked, ending).then((code) => {
      streams.delete(stream);
      log.info({ code, after: from, streams: streams.size }, 'stream ended');
    });
    const stream: Open = { ending, done };
    streams.add(stream);
    log.info({ after: from, streams: streams.size }, 'stream started');
  }

  function handle(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const asked = askedBy(request);
    const refusal = obstacle();
    if (refusal !== null) return refuse(reply, refusal);
    if (request.method === 'HEAD') return reply.headers(HEADERS).send();
    reply.headers(HEADERS).hijack();
    reply.raw.writeHead(200, reply.getHeaders() as Record<string, string>);
    open(reply.raw, asked);
    return reply;
  }

  app.route({
    method: ['GET', 'HEAD'],
    url: STREAM_PATH,
    exposeHeadRoute: false,
    handler: async (q, r) => handle(q, r),
  });

  return {
    stop: async () => {
      stopping = true;
      for (const { ending } of streams) ending.abort('SHUTDOWN' satisfies EndCode);
      await Promise.all([...streams].map(({ done }) => done));
    },
  };
}
