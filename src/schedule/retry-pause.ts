import type { Clock } from '../clock.ts';
import type { CatchwordError, ErrorCode } from '../errors.ts';
import { iso } from '../iso-time.ts';

/** The pause after a failed run, during which no run is started. */
export interface RetryPause {
  /**
   * Begins a pause, longer after each failure in a row. The caller notes its end in the mirror.
   * @returns its length, milliseconds
   */
  begin(error: CatchwordError | undefined): number;
  /** Ends the pause after a run that succeeded. */
  end(): void;
  /** Remaining milliseconds; 0 without a pause. */
  leftMs(): number;
  /** Fields for the log: when the next run may start. */
  fields(): { readonly nextTryAt?: string | null };
}

const MIN_MS = 15_000;
const MAX_MS = 15 * 60_000;
/** For errors that do not pass by themselves, such as a rejected key, or that cost many requests each time. */
const MAX_LASTING_MS = 60 * 60_000;

const PASSING: readonly (ErrorCode | undefined)[] = [
  'LEASE_LOST',
  'QUEUE_UNAVAILABLE',
  'SOURCE_RATE_LIMITED',
  'SOURCE_TIMEOUT',
  'SOURCE_UNAVAILABLE',
];

/**
 * @param nextTryAt returns when the failed run is retried, as noted in the mirror, because another process may have
 *   made the run or moved the retry (`sync --now`). Milliseconds since 1970; null if there is nothing to retry
 */
export function createRetryPause(clock: Clock, nextTryAt: () => number | null): RetryPause {
  let failures = 0;
  /** 0 if the last run succeeded, or there was none. */
  let lengthMs = 0;

  function leftMs(): number {
    const left = lengthMs === 0 ? 0 : (nextTryAt() ?? 0) - clock.now();
    // If it is longer than it was, the clock was put back since.
    return left > lengthMs ? 0 : Math.max(0, left);
  }

  return {
    leftMs,
    begin: (error) => {
      failures++;
      const maxMs = PASSING.includes(error?.code) ? MAX_MS : MAX_LASTING_MS;
      const backoffMs = Math.min(maxMs, MIN_MS * 2 ** (failures - 1)) * (0.5 + clock.random() / 2);
      lengthMs = Math.round(Math.max(error?.retryAfterMs ?? 0, backoffMs));
      return lengthMs;
    },
    end: () => {
      failures = 0;
      lengthMs = 0;
    },
    fields: () => (leftMs() > 0 ? { nextTryAt: iso(nextTryAt()) } : {}),
  };
}
