import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { hasCode } from '../base/errors.ts';
import { errorFields, type Logger } from '../base/log.ts';

/** HTTP status of each error code. Clients match on the code. */
export const STATUS = {
  USAGE: 400,
  UNKNOWN_PLACE: 400,
  UNAUTHORIZED: 401,
  HOST_REFUSED: 403,
  CROSS_SITE_REFUSED: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  OTHER_MIRROR: 409,
  OTHER_VIEW: 409,
  RESTORED: 409,
  TOO_MANY_WRONG_TOKENS: 429,
  INTERNAL: 500,
  TOO_MANY_STREAMS: 503,
  TOO_MANY_VIEWS: 503,
  MIRROR_BUSY: 503,
  MIRROR_UNUSABLE: 503,
  OVERLOADED: 503,
  SEARCH_TIMEOUT: 503,
  STALLED: 503,
  STOPPING: 503,
} as const;

/** Some messages quote the request. */
const MAX_MESSAGE = 500;

export interface HttpError {
  readonly code: keyof typeof STATUS;
  readonly message: string;
  readonly hint: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the one of the code. */
  readonly status?: number;
}

export const STOPPING: HttpError = {
  code: 'STOPPING',
  message: 'catchword is stopping',
  hint: 'Retry in a few seconds.',
  headers: { 'retry-after': '10', connection: 'close' },
};

declare module 'fastify' {
  interface FastifyInstance {
    /** Sends an error as a page; undefined in a server without pages. */
    sendErrorPage?: (reply: FastifyReply, error: HttpError) => FastifyReply;
  }
}

/** Paths that programs use: they get JSON, whatever they accept. */
const FOR_PROGRAMS = /^\/(?:api|live|assets|metrics|healthz|readyz|openapi\.json|schemas)(?:[/?]|$)/;

/** Whether a browser shows the response to a person. Some programs accept HTML too, but a browser sends no bearer token. */
export function isForPerson({ headers, url }: FastifyRequest): boolean {
  if (headers.accept?.includes('text/html') !== true || headers.authorization !== undefined) return false;
  return !FOR_PROGRAMS.test(url);
}

/** Disables caching, MIME sniffing, and use by pages of other sites. */
export function setSafetyHeaders(reply: FastifyReply): void {
  reply.headers({
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'cross-origin-resource-policy': 'same-origin',
  });
}

/** An error as programs get it. */
export function errorJson({ code, message, hint }: Omit<HttpError, 'headers'>): string {
  return JSON.stringify({ error: { code, message, hint } });
}

export function sendError(reply: FastifyReply, error: HttpError): FastifyReply {
  setSafetyHeaders(reply);
  reply.code(error.status ?? STATUS[error.code]).headers(error.headers ?? {});
  const { sendErrorPage } = reply.server;
  const message = error.message.length > MAX_MESSAGE ? `${error.message.slice(0, MAX_MESSAGE)}…` : error.message;
  if (sendErrorPage !== undefined && isForPerson(reply.request)) return sendErrorPage(reply, { ...error, message });
  return reply.type('application/json; charset=utf-8').send(errorJson({ ...error, message }));
}

/** Describes an error to the client only if the request caused it; the log has the others. */
function httpErrorOf(error: FastifyError | Error): HttpError {
  if (hasCode(error, 'USAGE', 'NOT_FOUND', 'MIRROR_BUSY', 'MIRROR_UNUSABLE', 'SEARCH_TIMEOUT')) {
    const code = error.code as keyof typeof STATUS;
    const headers = code === 'SEARCH_TIMEOUT' ? { 'retry-after': '10' } : {};
    return { code, message: error.message, hint: error.hint ?? 'See docs/errors.md.', headers };
  }
  if (hasCode(error, 'INTERRUPTED')) return STOPPING;
  const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500;
  if (status < 500) {
    const hint = status === 413 ? 'Send less.' : 'Send a well-formed request.';
    return { code: 'USAGE', message: error.message, hint, status };
  }
  return { code: 'INTERNAL', message: 'the request failed inside catchword', hint: "See catchword's log." };
}

/** Answers what a route threw. */
export function answerError(log: Logger, error: FastifyError | Error, reply: FastifyReply): FastifyReply {
  const httpError = httpErrorOf(error);
  if (httpError.code === 'INTERNAL') log.error(errorFields(error), 'a request failed');
  return sendError(reply, httpError);
}
