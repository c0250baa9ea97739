import type { FastifyError, FastifyReply } from 'fastify';
import { CatchwordError } from '../errors.ts';
import { errorFields, type Logger } from '../log.ts';

/** HTTP status of each error code. Clients match on the code. */
const STATUS = {
  USAGE: 400,
  UNAUTHORIZED: 401,
  HOST_REFUSED: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  INTERNAL: 500,
  TOO_MANY_STREAMS: 503,
  STOPPING: 503,
} as const;

/** Some messages quote the request. */
const MAX_MESSAGE = 500;

export interface HttpError {
  readonly code: keyof typeof STATUS;
  readonly message: string;
  readonly hint: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Disables caching and MIME sniffing. */
export function setSafetyHeaders(reply: FastifyReply): void {
  reply.headers({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
}

export function sendError(reply: FastifyReply, { code, message, hint, headers = {} }: HttpError): FastifyReply {
  setSafetyHeaders(reply);
  const shown = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message;
  return reply
    .code(STATUS[code])
    .headers(headers)
    .send({ error: { code, message: shown, hint } });
}

/** Describes an error to the client only if the request caused it; the log has the others. */
function httpErrorOf(error: FastifyError | Error): HttpError {
  if (error instanceof CatchwordError && (error.code === 'USAGE' || error.code === 'NOT_FOUND')) {
    return { code: error.code, message: error.message, hint: error.hint ?? 'See the README.' };
  }
  const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500;
  if (status < 500) return { code: 'USAGE', message: error.message, hint: 'Send a well-formed request.' };
  return { code: 'INTERNAL', message: 'the request failed inside catchword', hint: "See catchword's log." };
}

/** Answers what a route threw. */
export function answerError(log: Logger, error: FastifyError | Error, reply: FastifyReply): FastifyReply {
  const httpError = httpErrorOf(error);
  if (httpError.code === 'INTERNAL') log.error(errorFields(error), 'a request failed');
  return sendError(reply, httpError);
}
