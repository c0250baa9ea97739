import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { hostOf, isLoopback } from '../loopback.ts';
import { protect, type Refusal, refuse } from './http-error.ts';

/** Open to all: says nothing but that the process lives. */
export const HEALTH_PATH = '/healthz';

const METHODS = ['GET', 'HEAD'];

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Compares digests, so that the time taken tells neither the token's length nor how much of it was right. */
function bearerCheck(token: string): (header: string | undefined) => boolean {
  const expected = digest(token);
  return (header) => {
    const [, given] = /^bearer +(\S+) *$/i.exec(header ?? '') ?? [];
    return given !== undefined && timingSafeEqual(digest(given), expected);
  };
}

/**
 * Before any route: reading methods only, then the token. Where there is none, the server is on loopback, and the `Host`
 * header must be as well: a web page whose name was pointed at 127.0.0.1 (DNS rebinding) sends its own.
 */
export function addGuard(app: FastifyInstance, token: string | undefined): void {
  const admits = token === undefined ? undefined : bearerCheck(token);

  function refusalOf(method: string, path: string | undefined, headers: NodeJS.Dict<string>): Refusal | null {
    if (!METHODS.includes(method)) {
      const hint = 'Read with GET; what changes the mirror is done with the command catchword.';
      return { code: 'METHOD_NOT_ALLOWED', message: `${method} is not allowed`, hint, headers: { allow: 'GET, HEAD' } };
    }
    if (admits === undefined) {
      if (isLoopback(hostOf(headers.host))) return null;
      const hint = 'Use 127.0.0.1 or localhost, or set CATCHWORD_HTTP_TOKEN.';
      return { code: 'HOST_REFUSED', message: 'without a token only local names are answered', hint };
    }
    if (path === HEALTH_PATH || admits(headers.authorization)) return null;
    return {
      code: 'UNAUTHORIZED',
      message: headers.authorization === undefined ? 'a token is needed' : 'the token is not right',
      hint: 'Send Authorization: Bearer … with the value of CATCHWORD_HTTP_TOKEN.',
      headers: { 'www-authenticate': 'Bearer realm="catchword"' },
    };
  }

  app.addHook('onRequest', async (request, reply) => {
    protect(reply);
    const { host, authorization } = request.headers;
    const refusal = refusalOf(request.method, request.routeOptions.url, { host, authorization });
    return refusal === null ? undefined : refuse(reply, refusal);
  });
}
