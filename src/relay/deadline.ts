import { SinkError } from './sink.ts';

/**
 * Does `work`, which is told by its signal when to give up, and waits for no longer than it was told.
 * @param timeoutMs milliseconds
 * @throws SinkError unavailable when the time is over; the reason of `signal` when that aborts; or what `work` throws
 */
export async function withDeadline<T>(
  signal: AbortSignal,
  timeoutMs: number,
  work: (deadline: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  // Not AbortSignal.any: what it makes stays linked to a signal that lives as long as the process.
  const deadline = new AbortController();
  const onAbort = (): void => deadline.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(
    () => deadline.abort(new SinkError('unavailable', `no answer within ${timeoutMs / 1000} s`)),
    timeoutMs,
  );
  const over = new Promise<never>((_, reject) => {
    deadline.signal.addEventListener('abort', () => reject(deadline.signal.reason), { once: true });
  });
  try {
    return await Promise.race([work(deadline.signal), over]);
  } catch (error) {
    // Not what a driver makes of being told to give up, but why it was told.
    throw deadline.signal.aborted ? deadline.signal.reason : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
