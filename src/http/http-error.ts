import { ERROR_CODES, hasCode, remedyOf, SEE_HINT } from '@catchword/base/errors';
import { errorFields, type Logger } from '@catchword/base/log';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';

const BEGIN = 'Discard what you have and begin with `after=0`: see docs/stream.md.';

/** The error codes of answers: HTTP status, meaning, and what to do. Clients match on the code. */
// biome-ignore format: a code is a line.
export const HTTP_ERRORS = {
  USAGE: [400, 'The request is wrong.', 'The hint shows what is allowed; `/openapi.json` describes every request.'],
  UNKNOWN_PLACE: [400, '`after` is not from such a log.', BEGIN],
  UNAUTHORIZED: [401, 'The token is missing or wrong.', 'Send `Authorization: Bearer` with the token.'],
  HOST_REFUSED: [403, 'Without a token, only local host names are served.', 'Set `CATCHWORD_HTTP_TOKEN`.'],
  CROSS_SITE_REFUSED: [403, 'A page of another site made the request.', 'Ask from your own server.'],
  NOT_FOUND: [404, 'The path, the product or the run does not exist.', SEE_HINT],
  METHOD_NOT_ALLOWED: [405, 'Only `GET` and `HEAD` are answered.', 'Decide by a command: see docs/decisions.md.'],
  OTHER_MIRROR: [409, '`after` is from another mirror.', BEGIN],
  OTHER_VIEW: [409, '`after` was read with other `where` and `fields`.', 'Send the same ones, or begin with `after=0`.'],
  RESTORED: [409, '`after` is from before the mirror was restored.', BEGIN],
  TOO_MANY_WRONG_TOKENS: [429, 'This address sent too many wrong tokens.', 'Wait as long as `Retry-After` says.'],
  INTERNAL: [500, 'The request failed inside catchword: a defect.', 'Report what the log says.'],
  TOO_MANY_STREAMS: [503, 'As many streams are open as are allowed.', 'Wait as long as `Retry-After` says.'],
  TOO_MANY_VIEWS: [503, 'Open streams have as many different views (`where` and `fields`) as are allowed.', 'Use the view of another stream, or wait as long as `Retry-After` says.'],
  MIRROR_BUSY: [503, 'Another program locks the mirror.', 'Ask again.'],
  MIRROR_UNUSABLE: [503, 'The mirror cannot be read.', `${SEE_HINT} ${ERROR_CODES.MIRROR_UNUSABLE.remedy}`],
  OVERLOADED: [503, 'Too much data waits for slow readers.', 'Wait as long as `Retry-After` says.'],
  SEARCH_TIMEOUT: [503, 'The search, `where` or `fields`, or what others asked for, took too long.', ERROR_CODES.SEARCH_TIMEOUT.remedy],
  STALLED: [503, 'The process that should answer hangs.', 'Nothing: a process manager that asks `/healthz` restarts it.'],
  STOPPING: [503, 'catchword stops.', 'Ask again after the restart.'],
} as const satisfies Readonly<Record<string, readonly [status: number, meaning: string, remedy: string]>>;

/** Some messages quote the request. */
const MAX_MESSAGE = 500;

export interface HttpError {
  readonly code: keyof typeof HTTP_ERRORS;
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
  reply.code(error.status ?? HTTP_ERRORS[error.code][0]).headers(error.headers ?? {});
  const { sendErrorPage } = reply.server;
  const message = error.message.length > MAX_MESSAGE ? `${error.message.slice(0, MAX_MESSAGE)}…` : error.message;
  if (sendErrorPage !== undefined && isForPerson(reply.request)) return sendErrorPage(reply, { ...error, message });
  return reply.type('application/json; charset=utf-8').send(errorJson({ ...error, message }));
}

/** Describes an error to the client only if the request caused it; the log has the others. */
function httpErrorOf(error: FastifyError | Error): HttpError {
  if (hasCode(error, 'USAGE', 'NOT_FOUND', 'MIRROR_BUSY', 'MIRROR_UNUSABLE', 'SEARCH_TIMEOUT')) {
    const code = error.code as keyof typeof HTTP_ERRORS;
    const headers = code === 'SEARCH_TIMEOUT' ? { 'retry-after': '10' } : {};
    return { code, message: error.message, hint: error.hint ?? remedyOf(error.code) ?? 'See docs/errors.md.', headers };
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
