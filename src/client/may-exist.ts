import { CatchwordError, type ErrorCode, toErrorRecord } from '../errors.ts';

/**
 * The error of a request to create something, whose answer holds an identifier as well: whoever does not know of it
 * creates the same twice.
 * @param name of what was made, such as `vbid 9781402894626`, without secrets
 */
export function mayExist(error: CatchwordError, name: string): CatchwordError {
  return new CatchwordError(error.code, `${error.message}, together with ${name}, which may exist now`, {
    ...toErrorRecord(error),
    hint: `Look for ${name} before trying again: it may have been created all the same. ${error.hint ?? ''}`.trim(),
    retryable: false,
  });
}

/** Nothing was answered, or nothing that could be understood. */
const NOT_UNDERSTOOD: readonly ErrorCode[] = ['SOURCE_TIMEOUT', 'SOURCE_BODY', 'XML_INVALID'];

function isUnsure({ code, status = 0, retryable }: CatchwordError): boolean {
  // One that is final names what was made.
  if (code === 'SOURCE_UNAVAILABLE') return retryable;
  return NOT_UNDERSTOOD.includes(code) || (code === 'SOURCE_NOT_SERVICE' && status >= 200 && status < 300);
}

/**
 * What goes wrong with a request that was sent and must not be made twice: where nobody knows whether it was done, the error
 * is final and says to look first.
 * @param creates whether it was to create something
 */
export function maybeDone(error: unknown, creates: boolean): unknown {
  if (!(error instanceof CatchwordError) || !isUnsure(error)) return error;
  const what = creates ? 'what was to be created may exist now' : 'it may have been done all the same';
  const first = creates ? 'Look for it before trying again: it may have been created.' : 'Look before trying again.';
  return new CatchwordError(error.code, `${error.message}; ${what}`, {
    ...toErrorRecord(error),
    hint: first,
    retryable: false,
  });
}
