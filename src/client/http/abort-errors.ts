import { CatchwordError } from '../../errors.ts';

/**
 * The error of a call whose signal aborted.
 * @param mayBeDone whether the call was to do what must not be done twice
 */
export function givenUp(mayBeDone = false): CatchwordError {
  return new CatchwordError('INTERRUPTED', 'the request was given up', {
    hint: mayBeDone ? 'Ask again; what was to be written may have arrived, so look first.' : 'Ask again.',
  });
}

/** The error of a call that its own connection ended. */
export function wasClosed(origin: string): CatchwordError {
  return new CatchwordError('INTERRUPTED', `the connection to ${origin} is closed`, {
    hint: 'Connect again for further calls; what was to be written may have arrived, so look first.',
    retryable: false,
  });
}
