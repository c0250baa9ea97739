import { withDeadline } from '@catchword/base/abort';
import { SinkError } from './sink.ts';

/**
 * Runs a call of a store until `signal` aborts.
 * @throws SinkError unavailable after `timeoutMs`; otherwise as `withDeadline`
 */
export function withTimeout<Result>(
  timeoutMs: number,
  work: (deadline: AbortSignal) => Promise<Result>,
  signal: AbortSignal = new AbortController().signal,
): Promise<Result> {
  const reason = (): SinkError =>
    new SinkError('unavailable', `no answer within ${timeoutMs / 1000} s`, { timedOut: true });
  return withDeadline(signal, { timeoutMs, reason }, work);
}
