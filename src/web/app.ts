import Fastify, { type FastifyInstance } from 'fastify';
import type { Logger } from '../log.ts';
import { answerError, sendError } from './http-error.ts';

/** A silent connection is closed: a client that does not take its response would keep it in memory. */
const CONNECTION_TIMEOUT_MS = 60_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Longest product key in a path. For safety. */
const MAX_KEY = 1_000;

/** @param hint what a client that asks for an unknown path should do */
export function createApp(log: Logger, hint: string): FastifyInstance {
  const app = Fastify({
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Closing the server breaks open connections, so that a silent or slow client does not delay it.
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MAX_KEY },
    // An invalid URL reaches neither hooks nor routes.
    frameworkErrors: (error, _request, reply) => void answerError(log, error, reply),
  });
  app.setErrorHandler((error: Error, _request, reply) => answerError(log, error, reply));
  app.setNotFoundHandler((_request, reply) =>
    sendError(reply, { code: 'NOT_FOUND', message: 'this path does not exist', hint }),
  );
  // Logs the route's pattern only: the address may contain private data.
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request;
    log.debug({ method, route: routeOptions.url ?? null, status: reply.statusCode }, 'request');
  });
  return app;
}
