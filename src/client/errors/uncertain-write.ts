import type { CatchwordError, ErrorCode } from '../../errors.ts';
import type { Request } from '../http/exchange.ts';

/** There was no answer, or none that could be read. */
const NOT_UNDERSTOOD: readonly ErrorCode[] = ['SOURCE_UNAVAILABLE', 'SOURCE_TIMEOUT', 'SOURCE_BODY', 'XML_INVALID'];

const CHECK_CREATED = 'Look for it before you retry: it may have been created.';
const CHECK_DONE = 'Check whether it was done before you retry.';

/**
 * The error of an answer with a good status that does not show what was created or done, nor a code that says why.
 * @rule 7-4
 */
export function checkFirst(error: CatchwordError, { creates }: Pick<Request, 'creates'>): CatchwordError {
  if (error.serviceCode !== undefined) return error;
  return error.with({ hint: creates === undefined ? CHECK_DONE : CHECK_CREATED, retryable: false });
}

/** The error of an answer that also identifies what was created. Without the identifier, a retry would create it twice. */
export function alsoCreated(error: CatchwordError, name: string): CatchwordError {
  const hint = `Look for ${name} before you retry: it may have been created.`;
  return error.with({ message: `${error.message}; ${name} may exist now`, hint, retryable: false });
}

/** Marks the error of a write that was sent as final, if the outcome of the write is unknown. */
export function withOutcome(error: CatchwordError, { creates }: Request): CatchwordError {
  const { status = 0, code, retryable, message } = error;
  const isOther = code === 'SOURCE_NOT_SERVICE' && status >= 200 && status < 300;
  if (!isOther && !(NOT_UNDERSTOOD.includes(code) && (retryable || code !== 'SOURCE_UNAVAILABLE'))) return error;
  const check = creates === undefined ? CHECK_DONE : CHECK_CREATED;
  return error.with({
    // A wrong address exits 2, which would say that nothing was done.
    code: isOther ? 'SERVICE_ERROR' : code,
    message: `${message}; it may have been ${creates === undefined ? 'done' : 'created'}`,
    hint: code === 'SOURCE_TIMEOUT' ? `${check} Raise {setting}.` : check,
    retryable: false,
  });
}
