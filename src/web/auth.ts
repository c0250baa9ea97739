import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { hostOf, isLoopback } from '../loopback.ts';
import { type HttpError, sendError, setSafetyHeaders } from './http-error.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route takes decisions of operators, with POST. */
    action?: boolean;
  }
}

/** Needs no token: it says only that the process is alive. */
export const HEALTH_PATH = '/healthz';

/** Compares digests, so that timing reveals neither the token's length nor a prefix of it. */
function holdsToken(header: string | undefined, token: string): boolean {
  const [, given] = /^bearer +(\S+) *$/i.exec(header ?? '') ?? [];
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

/**
 * Checks the method and the token before any route runs. Without a token the server listens on loopback only, and the
 * `Host` header must be local as well: a web page whose name resolves to 127.0.0.1 (DNS rebinding) sends its own name.
 */
export function addAuth(app: FastifyInstance, token: string | undefined): void {
  function errorOf({ method, routeOptions, headers }: FastifyRequest): HttpError | null {
    const path = routeOptions.url;
    const isAction = method === 'POST' && routeOptions.config.action === true;
    if (method !== 'GET' && method !== 'HEAD' && !isAction) {
      const hint = 'Use GET; to change the mirror, use the catchword command.';
      return { code: 'METHOD_NOT_ALLOWED', message: `${method} is not allowed`, hint, headers: { allow: 'GET, HEAD' } };
    }
    if (token === undefined) {
      if (isLoopback(hostOf(headers.host))) return null;
      const hint = 'Use 127.0.0.1 or localhost, or set CATCHWORD_HTTP_TOKEN.';
      return { code: 'HOST_REFUSED', message: 'without a token, only local host names are allowed', hint };
    }
    if (path === HEALTH_PATH || holdsToken(headers.authorization, token)) return null;
    return {
      code: 'UNAUTHORIZED',
      message: headers.authorization === undefined ? 'the request has no token' : 'the token is wrong',
      hint: 'Send Authorization: Bearer … with the value of CATCHWORD_HTTP_TOKEN.',
      headers: { 'www-authenticate': 'Bearer realm="catchword"' },
    };
  }

  app.addHook('onRequest', async (request, reply) => {
    setSafetyHeaders(reply);
    const error = errorOf(request);
    return error === null ? undefined : sendError(reply, error);
  });
}
