import { CatchwordError, toErrorRecord } from '../errors.ts';

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
