import { setMaxListeners } from 'node:events';
import { CatchwordError } from './errors.ts';

/*
 * `AbortSignal.any` keeps an entry in its long-lived parent for every signal that was ever made of it, and
 * `AbortSignal.timeout` keeps a timer until it fires. Here each listener and each timer is removed when the work ends.
 */

export interface TimeLimit {
  readonly timeoutMs: number;
  /** Makes the reason that the signal aborts with when the time is over. */
  readonly reason: () => Error;
}

/**
 * Runs `work` with a signal that aborts when one of `signals` does, for the same reason, or when the time is over.
 * @throws what `work` throws; work that does not listen to its signal is not cut short
 */
export async function withAbort<Result>(
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<Result>,
  limit?: TimeLimit,
): Promise<Result> {
  const any = new AbortController();
  // Each call in flight adds one listener; Node.js would warn about the eleventh.
  setMaxListeners(0, any.signal, ...signals);
  const removals = signals.map((signal) => {
    const onAbort = (): void => any.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    return () => signal.removeEventListener('abort', onAbort);
  });
  const timer = limit && setTimeout(() => any.abort(limit.reason()), limit.timeoutMs);
  try {
    return await work(any.signal);
  } finally {
    clearTimeout(timer);
    for (const remove of removals) remove();
  }
}

/**
 * Waits for `result` until `signal` aborts, and then throws its reason. The work behind `result` continues for others.
 * Built without async functions: each extra step between a result and its waiter lets the next one in a queue go first.
 */
export function unlessAborted<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    const stopListening = (): void => signal.removeEventListener('abort', onAbort);
    result.then(resolve, reject);
    result.then(stopListening, stopListening);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Runs `work` with a signal that aborts when `signal` does or when the time is over, and then throws the reason of the
 * abort, even if `work` ignores its signal.
 */
export async function withDeadline<Result>(
  signal: AbortSignal,
  limit: TimeLimit,
  work: (deadline: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  return await withAbort(
    [signal],
    async (deadline) => {
      try {
        return await unlessAborted(work(deadline), deadline);
      } catch (error) {
        // A driver may throw an error of its own when it is aborted.
        throw deadline.aborted ? deadline.reason : error;
      }
    },
    limit,
  );
}

export function interrupted(): CatchwordError {
  return new CatchwordError('INTERRUPTED', 'the request was aborted', { hint: 'Retry the call.' });
}
