import type { FastifyError, FastifyReply } from 'fastify';
import { CatchwordError } from '../errors.ts';
import { errorFields, type Logger } from '../log.ts';

/** Why a request is not answered. Readers match on the code. */
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

export interface Refusal {
  readonly code: keyof typeof STATUS;
  readonly message: string;
  /** What the reader should do. One sentence. */
  readonly hint: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Nothing here is for caches, and nothing is what it does not say that it is. */
export function protect(reply: FastifyReply): void {
  reply.headers({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
}

export function refuse(reply: FastifyReply, { code, message, hint, headers = {} }: Refusal): FastifyReply {
  protect(reply);
  return reply.code(STATUS[code]).headers(headers).send({ error: { code, message, hint } });
}

const INTERNAL: Refusal = {
  code: 'INTERNAL',
  message: 'the answer could not be made',
  hint: 'The log of catchword says why.',
};

/** An error as an answer. Only what the request itself did wrong is told; anything else goes to the log. */
export function refusalOf(error: FastifyError | CatchwordError | Error): Refusal {
  if (error instanceof CatchwordError && (error.code === 'USAGE' || error.code === 'NOT_FOUND')) {
    return { code: error.code, message: error.message, hint: error.hint ?? 'See the README.' };
  }
  const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500;
  if (status >= 500) return INTERNAL;
  return { code: 'USAGE', message: error.message, hint: 'Send a well-formed request.' };
}

/** Answers what a route threw. */
export function createErrorHandler(log: Logger) {
  return (error: FastifyError | Error, reply: FastifyReply): FastifyReply => {
    const refusal = refusalOf(error);
    if (refusal.code === 'INTERNAL') log.error(errorFields(error), 'a request failed');
    return refuse(reply, refusal);
  };
}
