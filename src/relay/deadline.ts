import { unlessAborted, withAbort } from '../abort.ts';
import { SinkError } from './sink.ts';

/**
 * Does `work` with a signal that says when to give up, and waits no longer than that, even for work that does not listen.
 * @param timeoutMs milliseconds
 * @throws SinkError unavailable when the time is over; the reason of `signal` when that aborts; or what `work` throws
 */
export async function withDeadline<T>(
  signal: AbortSignal,
  timeoutMs: number,
  work: (deadline: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const reason = (): SinkError => new SinkError('unavailable', `no answer within ${timeoutMs / 1000} s`);
  return await withAbort(
    [signal],
    async (deadline) => {
      try {
        return await unlessAborted(work(deadline), deadline);
      } catch (error) {
        // Not what a driver makes of an abort, but why it was aborted.
        throw deadline.aborted ? deadline.reason : error;
      }
    },
    { timeoutMs, reason },
  );
}
