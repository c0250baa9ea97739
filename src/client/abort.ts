import { setMaxListeners } from 'node:events';
import { CatchwordError } from '../errors.ts';

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

/**
 * Does `work` with a signal that aborts with whichever of the two is first. By hand, because of `AbortSignal.any` a signal
 * that lives long remembers every one that was made of it (Node.js 20).
 */
export async function untilEither<Result>(
  one: AbortSignal,
  other: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const either = new AbortController();
  const abort = (): void => either.abort();
  if (one.aborted || other.aborted) abort();
  // One listener for each call under way is no leak, and Node.js would warn of the eleventh.
  setMaxListeners(0, one, other);
  one.addEventListener('abort', abort, { once: true });
  other.addEventListener('abort', abort, { once: true });
  try {
    return await work(either.signal);
  } finally {
    one.removeEventListener('abort', abort);
    other.removeEventListener('abort', abort);
  }
}
