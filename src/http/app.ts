import { type Clock, systemClock } from '@catchword/base/clock';
import type { Logger } from '@catchword/base/log';
import Fastify, { type FastifyInstance } from 'fastify';
import { answerBrokenRequest, answerOddRequests } from './broken-request.ts';
import { limitConnections } from './connection-limits.ts';
import { answerError, sendError } from './http-error.ts';
import { prefixOf } from './path-prefix.ts';
import { acceptZodSchemas } from './route-schema.ts';

/** @param hint what a client that asks for an unknown path should do */
export function createApp(log: Logger, hint: string, clock: Clock = systemClock): FastifyInstance {
  const app = Fastify({
    // A silent connection is closed: a client that does not take its response would keep it in memory.
    connectionTimeout: 60_000,
    requestTimeout: 30_000,
    // Closing the server breaks open connections, so that a silent or slow client does not delay it.
    forceCloseConnections: true,
    // Longest product key in a path. For safety.
    routerOptions: { maxParamLength: 1_000, ignoreTrailingSlash: true },
    // An invalid URL reaches neither hooks nor routes.
    frameworkErrors: (error, _request, reply) => void answerError(log, error, reply),
    // Not even a request: neither hooks nor routes see it.
    clientErrorHandler: answerBrokenRequest,
    // Checked below, because Node.js would answer without a text.
    http: { requireHostHeader: false },
  });
  answerOddRequests(app.server);
  // If this limit were larger than `requestTimeout`, Node.js would exchange the two: bodies could be slower.
  app.server.headersTimeout = app.server.requestTimeout;
  limitConnections(app.server, clock, log);
  acceptZodSchemas(app);
  app.setErrorHandler((error: Error, _request, reply) => answerError(log, error, reply));
  app.setNotFoundHandler((_request, reply) =>
    sendError(reply, { code: 'NOT_FOUND', message: 'this path does not exist', hint }),
  );
  app.addHook('onRequest', async ({ headers, raw }, reply) => {
    if (headers.host !== undefined || raw.httpVersion === '1.0') return;
    return sendError(reply, {
      code: 'USAGE',
      message: 'the header Host is missing',
      hint: 'Send a well-formed request.',
    });
  });
  app.addHook('onSend', async (request, reply) => {
    const to = reply.getHeader('location');
    if (typeof to === 'string' && to.startsWith('/')) reply.header('location', `${prefixOf(request)}${to}`);
  });
  // Logs the route's pattern only: the address may contain private data.
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request;
    log.debug({ method, route: routeOptions.url ?? null, status: reply.statusCode }, 'request');
  });
  return app;
}
