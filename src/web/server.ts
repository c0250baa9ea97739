import { Server } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import type { Plans } from '../catalog/tick.ts';
import type { Clock } from '../clock.ts';
import type { Service } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import { openStore, type Store } from '../store/store.ts';
import { watchMirror } from '../store/watch.ts';
import { addApi } from './api.ts';
import { addGuard } from './auth.ts';
import { createChangeLog } from './change-feed.ts';
import { type Answers, addAnswers } from './drain.ts';
import { addHealth } from './health.ts';
import { createErrorHandler, refuse } from './http-error.ts';
import { checkExposure, listen } from './listen.ts';
import { addStreams, STREAM_LIMITS, type StreamLimits, type Streams } from './sse-route.ts';

export interface WebOptions {
  /** The mirror; created where there is none. */
  readonly db: string;
  /** Permission bits of the mirror's files; undefined: as they are, or 0600 for new ones. */
  readonly dbMode?: number | undefined;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** What readers must show. Needed where `host` is not on loopback. */
  readonly token: string | undefined;
  /** The `source` of events where the mirror has not noted its own. */
  readonly source: string;
  /** `/readyz` answers 503 when the mirror is older, milliseconds. */
  readonly readyMaxAgeMs: number;
  /** Why what stands beside the mirror (sinks) is not as it should be; null where it is. Asked by `/readyz`. */
  readonly unready: (store: Store) => string | null;
  /** When the schedule starts the next runs. */
  readonly plans: (nowMs: number) => Plans;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits?: Partial<StreamLimits>;
}

export interface WebService extends Service {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
}

/** A connection on which nothing moves is closed: a reader that takes no answer would keep it in memory. */
const CONNECTION_TIMEOUT_MS = 60_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Longest key of a product in an address. For safety. */
const MAX_KEY = 1_000;

function createApp(log: Logger): FastifyInstance {
  const onError = createErrorHandler(log);
  const app = Fastify({
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Closing it breaks what is still connected: nobody who is silent, or slow with a request, holds it up.
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MAX_KEY },
    // What cannot be read as an address reaches no hook and no route.
    frameworkErrors: (error, _request, reply) => {
      onError(error, reply);
    },
  });
  app.setErrorHandler((error: Error, _request, reply) => onError(error, reply));
  app.setNotFoundHandler((_request, reply) =>
    refuse(reply, {
      code: 'NOT_FOUND',
      message: 'there is nothing at this path',
      hint: 'See /api/status, /api/runs, /api/products?q=, /api/changes, /api/changes/stream.',
    }),
  );
  // The path's pattern only: an address may carry what is nobody's business.
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request;
    log.debug({ method, route: routeOptions.url ?? null, status: reply.statusCode }, 'request');
  });
  return app;
}

interface Parts {
  readonly app: FastifyInstance;
  readonly answers: Answers;
  readonly streams: Streams;
}

/**
 * Stops listening, ends the streams, and waits for what is under way. Whoever comes now finds nothing that listens, which
 * a standard EventSource survives, other than an error. A reader that takes its answer too slowly is cut off: a process
 * manager waits for a few seconds only, and other parts stop after this one.
 */
async function close({ app, answers, streams }: Parts, clock: Clock, stopMs: number): Promise<void> {
  // Not the HTTP server's own `close`, which breaks connections whose answers were handed over and are not taken yet.
  Server.prototype.close.call(app.server);
  const taken = new AbortController();
  const ended = streams.stop();
  await Promise.race([answers.stop(), clock.sleep(stopMs, taken.signal)]);
  taken.abort();
  await app.close();
  await ended;
}

/**
 * Serves the mirror over HTTP, for reading.
 * @throws CatchwordError CONFIG_INVALID, MIRROR_UNUSABLE; nothing stays open then
 */
export async function startWeb(options: WebOptions): Promise<WebService> {
  const { clock, log, token } = options;
  checkExposure(options.host, token);
  const limits = { ...STREAM_LIMITS, ...options.limits };
  const store = openStore(options.db, { forReading: true, mode: options.dbMode });
  try {
    const app = createApp(log);
    addGuard(app, token);
    const answers = addAnswers(app);
    addHealth(app, { store, clock, maxAgeMs: options.readyMaxAgeMs, unready: options.unready }, log);
    const changes = createChangeLog(store, options.source);
    addApi(app, { store, changes, clock, plans: options.plans });
    const streams = addStreams(app, { changes, clock, log, limits });
    const url = await listen(app, options.host, options.port);
    log.info({ address: url }, 'listening');
    const watching = watchMirror(store, clock);
    const stop = async (): Promise<void> => {
      await watching.stop();
      await close({ app, answers, streams }, clock, limits.stopMs);
      store.close();
    };
    let stopped: Promise<void> | undefined;
    return {
      name: 'web',
      url,
      failed: watching.failed,
      stop: () => {
        stopped ??= stop();
        return stopped;
      },
    };
  } catch (error) {
    store.close();
    throw error;
  }
}
