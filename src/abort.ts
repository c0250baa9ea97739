import { setMaxListeners } from 'node:events';

/*
 * Signals that live as long as the process, and work that does not. `AbortSignal.any` keeps an entry in its long-lived
 * parent for every signal that was ever made of it, and `AbortSignal.timeout` keeps a timer until it fires. Here each
 * listener and each timer is removed when the work ends.
 */

/** How long work may take. */
export interface TimeLimit {
  readonly timeoutMs: number;
  /** What its signal aborts with then. */
  readonly reason: () => Error;
}

/**
 * Does `work` with a signal that aborts as soon as one of `signals` does, for the same reason, or when the time is over.
 * @throws what `work` throws; it is not cut short where it does not listen to its signal
 */
export async function withAbort<Result>(
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<Result>,
  limit?: TimeLimit,
): Promise<Result> {
  const any = new AbortController();
  // One listener for each call under way is not a leak, and Node.js would warn of the eleventh.
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
 * Waits for `result`, but no longer than until `signal` aborts. What is waited for goes on for others.
 * Made by hand: each further step between a result and who waits for it lets the next one in a queue go first.
 * @throws the signal's reason
 */
export function unlessAborted<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    // What a caller aborts with is its own: an Error, unless it chose otherwise.
    const onAbort = (): void => reject(signal.reason as Error);
    const settled =
      <Value>(settle: (value: Value) => void) =>
      (value: Value): void => {
        signal.removeEventListener('abort', onAbort);
        settle(value);
      };
    result.then(settled(resolve), settled(reject));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Runs `work` with a signal that aborts when `signal` does or when the time is over, and stops waiting then, even if
 * `work` ignores its signal.
 * @throws the reason of the abort, or what `work` throws
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
