import type { CatchwordError, ErrorCode } from '@catchword/base/errors';
import type { Request } from '../http/exchange.ts';

/** There was no answer, or none that could be read. */
const NOT_UNDERSTOOD: readonly ErrorCode[] = ['SOURCE_UNAVAILABLE', 'SOURCE_TIMEOUT', 'SOURCE_BODY', 'XML_INVALID'];

function checkHint({ creates }: Pick<Request, 'creates'>, what = 'it'): string {
  if (creates === undefined) return 'Check whether it was done before you retry.';
  return `Look for ${what} before you retry: it may have been created.`;
}

/**
 * The error of an answer with a good status that does not show what was created or done, nor a code that says why.
 * @param created name and value of the identifier, if the answer has one: a retry would create it twice
 * @rule 7-4
 */
export function checkFirst(error: CatchwordError, request: Pick<Request, 'creates'>, created?: string): CatchwordError {
  if (created === undefined && error.serviceCode !== undefined) return error;
  const message = created === undefined ? error.message : `${error.message}; ${created} may exist now`;
  return error.with({ message, hint: checkHint(request, created), retryable: false });
}

/** Marks the error of a write that was sent as final, if the outcome of the write is unknown. */
export function withOutcome(error: CatchwordError, request: Request): CatchwordError {
  const { status = 0, code, retryable, message } = error;
  const isOther = code === 'SOURCE_NOT_SERVICE' && status >= 200 && status < 300;
  if (!isOther && !(NOT_UNDERSTOOD.includes(code) && (retryable || code !== 'SOURCE_UNAVAILABLE'))) return error;
  return error.with({
    // A wrong address exits 2, which would say that nothing was done.
    code: isOther ? 'SERVICE_ERROR' : code,
    message: `${message}; it may have been ${request.creates === undefined ? 'done' : 'created'}`,
    hint: `${checkHint(request)}${code === 'SOURCE_TIMEOUT' ? ' Raise {setting}.' : ''}`,
    retryable: false,
  });
}
