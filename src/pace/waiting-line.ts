import { unlessAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { CatchwordError } from '../base/errors.ts';

export interface Wait {
  /** `asked`: the source asked for a pause. `pace`: the rate limit allows no earlier request. */
  readonly reason: 'asked' | 'pace';
  readonly ms: number;
  /** Milliseconds since 1970. */
  readonly until: number;
}

interface WaitingLineOptions {
  readonly clock: Clock;
  /** Takes a turn. @returns how long to wait before it can be taken; with 0 it is taken. May be asked again earlier. */
  readonly take: (nowMs: number) => Omit<Wait, 'until'> | Promise<Omit<Wait, 'until'>>;
  /** As in `PacerOptions`. */
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

function blocked(retryAfterMs: number): CatchwordError {
  const message = `the service accepts no request for another ${Math.ceil(retryAfterMs / 1_000)} s`;
  const hint = 'Retry after that time; the request was not sent.';
  return new CatchwordError('SOURCE_RATE_LIMITED', message, { hint, retryAfterMs });
}

/** Shorter waits are not reported. */
const LONG_WAIT_MS = 5_000;
/** Waits are split into steps, so that a new block or a corrected clock is noticed. */
const STEP_MS = 1_000;
/** Lets the callers of a process take turns for one request each; first come, first served. */
export function createWaitingLine({ clock, take, onWait }: WaitingLineOptions) {
  let last: Promise<unknown> = Promise.resolve();
  let announcedUntil = 0;
  let hasPaceWaited = false;

  function announce(wait: Wait): void {
    if (wait.ms <= LONG_WAIT_MS || Math.abs(wait.until - announcedUntil) < LONG_WAIT_MS) return;
    if (wait.reason === 'pace' && hasPaceWaited) return;
    hasPaceWaited ||= wait.reason === 'pace';
    announcedUntil = wait.until;
    onWait?.(wait);
  }

  async function waitUntilFree(signal: AbortSignal, patienceMs: number, isWanted: () => boolean): Promise<boolean> {
    for (;;) {
      signal.throwIfAborted();
      if (!isWanted()) return false;
      const now = clock.now();
      const { ms, reason } = await take(now);
      if (ms === 0) return true;
      if (reason === 'asked' && ms > patienceMs) throw blocked(ms);
      announce({ reason, ms, until: now + ms });
      await clock.sleep(Math.min(ms, STEP_MS), signal);
    }
  }

  /**
   * Resolves when the caller may send one request. Rejects when `signal` aborts, and leaves the line.
   * @param patienceMs the longest block to wait for, in milliseconds; default: any
   * @param isWanted checked while the caller waits at the head of the line; default: always true
   * @returns true if the request may be sent; false if it was no longer wanted, and the next caller gets the turn
   * @throws CatchwordError SOURCE_RATE_LIMITED with `retryAfterMs` if the block lasts longer than `patienceMs`
   */
  return (signal: AbortSignal, patienceMs = Number.POSITIVE_INFINITY, isWanted = () => true): Promise<boolean> => {
    const turn = last.then(() => waitUntilFree(signal, patienceMs, isWanted));
    // A caller that aborts while queued is rejected at once; its place in the line is skipped when its turn comes.
    const granted = unlessAborted(turn, signal);
    last = turn.catch(() => {});
    return granted;
  };
}
