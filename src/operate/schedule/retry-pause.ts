import type { Clock } from '@catchword/base/clock';
import { CatchwordError, type ErrorCode, messageOf } from '@catchword/base/errors';
import { iso } from '@catchword/base/iso-time';
import type { RunKind } from '@catchword/catalog/run-types';
import type { Store } from '../../store/store.ts';

const MIN_MS = 15_000;
const MAX_MS = 15 * 60_000;
/** For errors that do not pass by themselves, such as a rejected key, or that cost many requests each time. */
const MAX_LASTING_MS = 60 * 60_000;

const PASSING: readonly (ErrorCode | undefined)[] = [
  'QUEUE_UNAVAILABLE',
  'SOURCE_RATE_LIMITED',
  'SOURCE_TIMEOUT',
  'SOURCE_UNAVAILABLE',
];

export type RetryPause = ReturnType<typeof createRetryPause>;

/** The pause after a failed run. The mirror notes when the run is retried, because another process may retry it. */
export function createRetryPause(schedule: Store['schedule'], clock: Clock) {
  let failures = 0;
  /** The end of the pause that this process knows. A new process does not wait: the cause may have been fixed. */
  let knownEnd = schedule.retry()?.at;
  /** How long that pause was when this process learned of it; 0 if it does not wait. */
  let lengthMs = 0;

  /** Remaining milliseconds; 0 without a pause. */
  function leftMs(): number {
    const end = schedule.retry()?.at;
    const left = end === undefined ? 0 : Math.max(0, end - clock.now());
    if (end !== knownEnd) {
      // Another process has failed since.
      lengthMs = left;
      knownEnd = end;
    }
    // If it is longer than it was, the clock was put back since.
    return left > lengthMs ? 0 : left;
  }

  return {
    leftMs,
    /** Begins a pause, longer after each failure in a row. @returns fields for the log */
    begin: (kind: RunKind, error: unknown) => {
      const { code, hint, retryAfterMs = 0 }: Partial<CatchwordError> = error instanceof CatchwordError ? error : {};
      failures++;
      const maxMs = PASSING.includes(code) ? MAX_MS : MAX_LASTING_MS;
      const backoffMs = Math.min(maxMs, MIN_MS * 2 ** (failures - 1)) * (0.5 + clock.random() / 2);
      lengthMs = Math.round(Math.max(retryAfterMs, backoffMs));
      const at = clock.now() + lengthMs;
      knownEnd = at;
      const reason = messageOf(error);
      schedule.setRetry({ kind, at, reason });
      return { code, reason, hint, pauseMs: lengthMs, nextTryAt: iso(at) };
    },
    /**
     * Ends the pause that another process, or an earlier one, noted: if this one dies while it retries, a process that
     * stands by must not wait for the rest of it.
     */
    endNoted: (): void => {
      const retry = schedule.retry();
      if (retry !== null && retry.at > clock.now()) schedule.setRetry({ ...retry, at: clock.now() });
    },
    /** Ends the pause after a run that succeeded. */
    end: (): void => {
      failures = 0;
      knownEnd = schedule.retry()?.at;
      lengthMs = 0;
    },
    /** Fields for the log: when the next run may start. */
    fields: () => (leftMs() > 0 ? { nextTryAt: iso(schedule.retry()?.at ?? null) } : {}),
  };
}
