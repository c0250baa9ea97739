import type { Clock } from '../clock.ts';
import type { CatchwordError, ErrorCode } from '../errors.ts';
import { iso } from '../iso-time.ts';

/** How long no run is begun after one that failed. */
export interface Pause {
  /**
   * Begins a pause, a longer one after each failure in a row. The caller notes its end in the mirror.
   * @returns its length, milliseconds
   */
  begin(error: CatchwordError | undefined): number;
  /** A run succeeded. */
  end(): void;
  /** What is left of it, milliseconds; 0 where there is none. */
  leftMs(): number;
  /** For the log: when the next run may begin. */
  fields(): { readonly nextTryAt?: string | null };
}

const MIN_MS = 15_000;
const MAX_MS = 15 * 60_000;
/** For what does not pass by itself, such as a refused key; or what costs many requests each time. */
const MAX_LASTING_MS = 60 * 60_000;

const PASSING: readonly (ErrorCode | undefined)[] = [
  'LEASE_LOST',
  'QUEUE_UNAVAILABLE',
  'SOURCE_RATE_LIMITED',
  'SOURCE_TIMEOUT',
  'SOURCE_UNAVAILABLE',
];

/**
 * @param nextTryAt when the run that failed is tried again, as the mirror has it: another process may have made the run, or
 *   have moved the try (`sync --now`). Milliseconds since 1970; null where no run is owed
 */
export function createPause(clock: Clock, nextTryAt: () => number | null): Pause {
  let failures = 0;
  /** 0 where no run failed yet, or the last one succeeded. */
  let lengthMs = 0;

  function leftMs(): number {
    const left = lengthMs === 0 ? 0 : (nextTryAt() ?? 0) - clock.now();
    // More than its length: the clock was put back since.
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
