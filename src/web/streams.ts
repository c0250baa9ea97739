import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { ChangeLog } from './change-log.ts';
import { createNews } from './news.ts';
import { checkPlace, parametersOf, wholeNumber } from './parameters.ts';
import { type Refusal, refuse } from './refusal.ts';
import { type EndCode, type StreamTimes, streamChanges } from './stream.ts';

const PATH = '/api/changes/stream';

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
  /** Ends every stream with SHUTDOWN. Resolves when the last words were taken, or cut off. */
  stop(): Promise<void>;
}

interface Open {
  readonly ending: AbortController;
  readonly done: Promise<void>;
}

/** Where to begin. The header of a reader that comes back goes before the address that it first asked. */
function placeOf(request: FastifyRequest, lastSeq: number): number {
  const { after = '0' } = parametersOf(request.query, ['after']);
  const asked = after === 'latest' ? lastSeq : wholeNumber('after', after, 0);
  const header = request.headers['last-event-id'];
  // An empty one means none.
  if (header === undefined || header === '') return checkPlace('after', asked, lastSeq);
  return checkPlace('Last-Event-ID', wholeNumber('Last-Event-ID', String(header), 0), lastSeq);
}

export function addStreams(app: FastifyInstance, { changes, clock, log, limits }: StreamsOptions): Streams {
  const news = createNews({ lastSeq: () => changes.lastSeq(), clock, pollMs: limits.pollMs });
  const streams = new Set<Open>();

  function obstacle(): Refusal | null {
    if (streams.size < limits.maxStreams) return null;
    return {
      ...{ code: 'TOO_MANY_STREAMS', message: `there are ${limits.maxStreams} streams already` },
      hint: 'Come back later, close streams that nobody reads, or page through /api/changes.',
      headers: { 'retry-after': '10' },
    };
  }

  async function serve(response: ServerResponse, from: number, ending: AbortController): Promise<EndCode> {
    const onError = (error: unknown) => log.error({ err: error }, 'a stream could not read the mirror');
    return await streamChanges(response, from, ending, { changes, news, clock, times: limits }, onError);
  }

  function open(response: ServerResponse, from: number): void {
    // Its readers are watched by what they take, not by silence.
    response.socket?.setTimeout(0);
    const ending = new AbortController();
    const done = serve(response, from, ending).then((code) => {
      streams.delete(stream);
      log.info({ code, from, streams: streams.size }, 'stream ended');
    });
    const stream: Open = { ending, done };
    streams.add(stream);
    log.info({ from, streams: streams.size }, 'stream started');
  }

  function handle(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const from = placeOf(request, changes.lastSeq());
    const refusal = obstacle();
    if (refusal !== null) return refuse(reply, refusal);
    if (request.method === 'HEAD') return reply.headers(HEADERS).send();
    reply.headers(HEADERS).hijack();
    reply.raw.writeHead(200, reply.getHeaders() as Record<string, string>);
    open(reply.raw, from);
    return reply;
  }

  app.route({ method: ['GET', 'HEAD'], url: PATH, exposeHeadRoute: false, handler: async (q, r) => handle(q, r) });

  return {
    stop: async () => {
      for (const { ending } of streams) ending.abort('SHUTDOWN' satisfies EndCode);
      await Promise.all([...streams].map(({ done }) => done));
    },
  };
}
