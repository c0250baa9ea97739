import Fastify, { type FastifyInstance } from 'fastify';
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { Service } from '../service.ts';
import { openStore, type Store } from '../store/store.ts';
import { addApi } from './api.ts';
import { createChangeLog } from './change-log.ts';
import { addGuard } from './guard.ts';
import { addHealth } from './health.ts';
import { checkExposure, listen } from './listen.ts';
import { createErrorHandler, refuse } from './refusal.ts';
import { addStreams, STREAM_LIMITS, type StreamLimits, type Streams } from './streams.ts';

export interface WebOptions {
  /** The mirror; created where there is none. */
  readonly db: string;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** What readers must show. Needed where `host` is not on loopback. */
  readonly token: string | undefined;
  /** The `source` of events. */
  readonly source: string;
  /** `/readyz` answers 503 when the mirror is older, milliseconds. */
  readonly readyMaxAgeMs: number;
  /** Why what stands beside the mirror (sinks) is not as it should be; null where it is. Asked by `/readyz`. */
  readonly unready: (store: Store) => string | null;
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
    routerOptions: { maxParamLength: MAX_KEY },
    // What cannot be read as an address reaches no hook and no route.
    frameworkErrors: (error, _request, reply) => {
      onError(error, reply);
    },
  });
  app.setErrorHandler((error: Error, _request, reply) => onError(error, reply));
  app.setNotFoundHandler((_request, reply) =>
    refuse(reply, {
      ...{ code: 'NOT_FOUND', message: 'there is nothing at this path' },
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

/**
 * Stops listening and ends the streams. A reader that was sent away comes back elsewhere; one that takes its answer, or
 * sends its request, too slowly is cut off: a process manager waits for a few seconds only, and other parts stop after
 * this one.
 */
async function close(app: FastifyInstance, streams: Streams, clock: Clock, stopMs: number): Promise<void> {
  const closed = new AbortController();
  const closing = app.close().finally(() => closed.abort());
  clock.sleep(stopMs, closed.signal).then(
    () => app.server.closeAllConnections(),
    () => {},
  );
  await streams.stop();
  await closing;
}

/**
 * Serves the mirror over HTTP, for reading.
 * @throws CatchwordError CONFIG_INVALID, MIRROR_UNUSABLE; nothing stays open then
 */
export async function startWeb(options: WebOptions): Promise<WebService> {
  const { clock, log, token } = options;
  checkExposure(options.host, token);
  const limits = { ...STREAM_LIMITS, ...options.limits };
  const store = openStore(options.db, { mustExist: false });
  try {
    const app = createApp(log);
    addGuard(app, token);
    addHealth(app, { store, clock, maxAgeMs: options.readyMaxAgeMs, unready: options.unready }, log);
    const changes = createChangeLog(store, options.source);
    addApi(app, store, changes, clock);
    const streams = addStreams(app, { changes, clock, log, limits });
    const url = await listen(app, options.host, options.port);
    log.info({ address: url }, 'listening');
    const stop = async (): Promise<void> => {
      await close(app, streams, clock, limits.stopMs);
      store.close();
    };
    let stopped: Promise<void> | undefined;
    return {
      name: 'web',
      url,
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
