import { CatchwordError, messageOf } from '../errors.ts';

/** What a `ReadWindow` threw. Anything but a CatchwordError is a fault of this program, and trying again does not help. */
export function readError(thrown: unknown): CatchwordError {
  if (thrown instanceof CatchwordError) return thrown;
  return new CatchwordError('PAGE_INVALID', `the page could not be taken in: ${messageOf(thrown)}`, {
    retryable: false,
    cause: thrown,
  });
}
