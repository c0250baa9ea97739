import type { Clock } from '@catchword/base/clock';
import type { Logger } from '@catchword/base/log';
import { hostOf, isLoopback } from '@catchword/base/loopback';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type HttpError, isForPerson, sendError, setSafetyHeaders } from './http-error.ts';
import { addLogin, LOGIN_PATH, LOGOUT_PATH, loginPath } from './pages/login.tsx';
import { createSessions, type Sessions } from './pages/session.ts';
import { isForeignPost, isForeignRead, isInvited } from './same-site.ts';
import { bearerOf, createTokenCheck, type TokenCheck, unauthorized } from './token-check.ts';

/** Needs no token: it says only that the process is alive. */
export const HEALTH_PATH = '/healthz';

/** Paths that need no token, besides the assets: they contain nothing of the mirror. */
const OPEN_PATHS: readonly (string | undefined)[] = [HEALTH_PATH, LOGIN_PATH, LOGOUT_PATH];

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route changes something: only such routes accept POST. */
    action?: boolean;
  }
}

function foreignError({ method, headers, routeOptions }: FastifyRequest): HttpError | null {
  const isAction = method === 'POST' && routeOptions.config.action === true;
  if (method !== 'GET' && method !== 'HEAD' && !isAction) {
    const hint = 'Use GET; to change the mirror, use the page or the catchword command.';
    return { code: 'METHOD_NOT_ALLOWED', message: `${method} is not allowed`, hint, headers: { allow: 'GET, HEAD' } };
  }
  const isBearer = bearerOf(headers.authorization) !== undefined;
  if (isAction ? !isForeignPost(headers, isBearer) : !isForeignRead(headers)) return null;
  return {
    code: 'CROSS_SITE_REFUSED',
    message: isAction
      ? 'the request does not come from a page of catchword'
      : 'a page of another site sent the request',
    hint: 'Open the page of catchword itself; behind a proxy, pass the Host header on.',
  };
}

/**
 * Without a token the server listens on loopback only, and the `Host` header must be local as well: a web page whose name
 * resolves to 127.0.0.1 (DNS rebinding) sends its own name.
 */
function hostError({ headers }: FastifyRequest): HttpError | null {
  if (isLoopback(hostOf(headers.host))) return null;
  const hint = 'Use 127.0.0.1 or localhost, or set CATCHWORD_HTTP_TOKEN.';
  return { code: 'HOST_REFUSED', message: 'without a token, only local host names are allowed', hint };
}

/** Notes the session of a browser in the request, too. */
function tokenError(request: FastifyRequest, check: TokenCheck, sessions: Sessions | null): HttpError | null {
  const { headers, ip, routeOptions } = request;
  request.session = sessions?.of(request) ?? null;
  const { url } = routeOptions;
  if (request.session !== null || OPEN_PATHS.includes(url) || url?.startsWith('/assets/') === true) return null;
  const bearer = bearerOf(headers.authorization);
  if (bearer !== undefined) return check(bearer, ip);
  return unauthorized(headers.authorization === undefined ? 'the request has no token' : 'the token is wrong');
}

interface AuthOptions {
  readonly token: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether browsers may trade the token for a session. */
  readonly login: boolean;
  /** Origins whose pages may read the stream of changes. */
  readonly origins?: readonly string[] | undefined;
}

/** Checks each request before any route runs, and ends responses to a browser whose session is over. */
export function addAuth(app: FastifyInstance, { token, clock, log, login, origins = [] }: AuthOptions): void {
  const check = token === undefined ? null : createTokenCheck(token, clock, log);
  const sessions = token === undefined || !login ? null : createSessions(token, clock);
  app.decorateRequest('session', null);

  /** The open responses to browsers, with the ids of their sessions. */
  const open = new Map<FastifyReply['raw'], string>();

  /** A stream that outlives its session is cut: the browser connects again, and learns that it is signed out. */
  function endWithSession({ session }: FastifyRequest, { raw }: FastifyReply): void {
    if (session === null || sessions === null) return;
    const timer = setTimeout(() => raw.destroy(), sessions.leftMs(session)).unref();
    open.set(raw, session.id);
    raw.once('close', () => {
      clearTimeout(timer);
      open.delete(raw);
    });
  }

  /** Ends the session of a request, with its other responses: other windows of the browser show no more. */
  function signOut(request: FastifyRequest, reply: FastifyReply): void {
    sessions?.end(request, reply);
    for (const [raw, id] of open) if (id === request.session?.id && raw !== reply.raw) raw.destroy();
  }

  app.addHook('onRequest', async (request, reply) => {
    setSafetyHeaders(reply);
    const invited = isInvited(request, origins);
    if (invited) {
      const headers = { 'access-control-allow-origin': request.headers.origin };
      reply.headers({ ...headers, 'access-control-allow-headers': 'authorization, last-event-id' });
      if (request.method === 'OPTIONS') return reply.code(204).send();
    }
    const accessError = () => (check === null ? hostError(request) : tokenError(request, check, sessions));
    const error = (invited ? null : foreignError(request)) ?? accessError();
    if (error === null) return endWithSession(request, reply);
    const mayLogIn = sessions !== null && error.code === 'UNAUTHORIZED' && request.method !== 'POST';
    if (mayLogIn && isForPerson(request)) return reply.redirect(loginPath(request), 303);
    return sendError(reply, error);
  });

  if (check !== null && sessions !== null) addLogin(app, check, sessions, signOut);
}
