import { Server } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import type { Service } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import { openStore } from '../store/store.ts';
import { watchMirror } from '../store/watch.ts';
import { type ApiOptions, addApi } from './api.ts';
import { addAuth } from './auth.ts';
import { createChangeFeed } from './change-feed.ts';
import { addDrain } from './drain.ts';
import { addHealth, type ReadinessOptions } from './health.ts';
import { answerError, sendError } from './http-error.ts';
import { checkExposure, listen } from './listen.ts';
import { addSseRoute } from './sse-route.ts';
import { STREAM_LIMITS, type StreamLimits } from './sse-stream.ts';

export interface WebOptions extends Omit<ReadinessOptions, 'store'>, Pick<ApiOptions, 'plans'> {
  /** Path of the mirror; created if missing. */
  readonly db: string;
  readonly dbMode?: number | undefined;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Bearer token required from clients; needed unless `host` is on loopback. */
  readonly token: string | undefined;
  /** The `source` of events if the mirror has not stored its own. */
  readonly source: string;
  readonly log: Logger;
  readonly limits?: Partial<StreamLimits>;
}

function createApp(log: Logger): FastifyInstance {
  const app = Fastify({
    // A silent connection is closed: a client that does not take its response would keep it in memory.
    connectionTimeout: 60_000,
    requestTimeout: 30_000,
    // Closing the server breaks open connections, so that a silent or slow client does not delay it.
    forceCloseConnections: true,
    // Longest product key in a path. For safety.
    routerOptions: { maxParamLength: 1_000 },
    // An invalid URL reaches neither hooks nor routes.
    frameworkErrors: (error, _request, reply) => void answerError(log, error, reply),
  });
  app.setErrorHandler((error: Error, _request, reply) => answerError(log, error, reply));
  app.setNotFoundHandler((_request, reply) =>
    sendError(reply, {
      code: 'NOT_FOUND',
      message: 'this path does not exist',
      hint: 'Use /api/status, /api/runs, /api/products?q=, /api/changes or /api/changes/stream.',
    }),
  );
  // Logs the route's pattern only: the address may contain private data.
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request;
    log.debug({ method, route: routeOptions.url ?? null, status: reply.statusCode }, 'request');
  });
  return app;
}

/**
 * Serves the mirror over HTTP, read-only, at `url`: `http://127.0.0.1:8080`.
 * @throws CatchwordError CONFIG_INVALID, MIRROR_UNUSABLE; then nothing stays open
 */
export async function startWeb(options: WebOptions): Promise<Service & { readonly url: string }> {
  const { clock, log, token } = options;
  checkExposure(options.host, token);
  const limits = { ...STREAM_LIMITS, ...options.limits };
  const store = openStore(options.db, { forReading: true, mode: options.dbMode });
  try {
    const app = createApp(log);
    addAuth(app, token);
    const drain = addDrain(app);
    addHealth(app, { ...options, store }, log);
    const changes = createChangeFeed(store, options.source);
    addApi(app, { ...options, store, changes });
    const endStreams = addSseRoute(app, { changes, clock, log, limits });
    const url = await listen(app, options.host, options.port);
    log.info({ address: url }, 'listening');
    const watching = watchMirror(store, clock);
    /**
     * Stops listening, ends the streams, and waits at most `stopMs` for open responses. A client that connects now is
     * refused, which a standard EventSource survives, unlike an error status.
     */
    const stop = async (): Promise<void> => {
      await watching.stop();
      // Not the HTTP server's own `close`: it breaks connections whose responses are written but not yet received.
      Server.prototype.close.call(app.server);
      const drained = new AbortController();
      const ended = endStreams();
      await Promise.race([drain(), clock.sleep(limits.stopMs, drained.signal)]);
      drained.abort();
      await app.close();
      await ended;
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
