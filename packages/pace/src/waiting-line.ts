import { unlessAborted } from '@catchword/base/abort';
import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';

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
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

export interface Caller {
  /** The longest block to wait for, milliseconds; default: any. */
  readonly patienceMs?: number;
  /** Checked while the caller waits at the head of the line; default: always true. */
  readonly isWanted?: () => boolean;
  /** Goes before callers who are not urgent; default: no. */
  readonly isUrgent?: boolean;
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
  /** The same for urgent callers, before whom no other one takes a turn. */
  let lastUrgent: Promise<unknown> = Promise.resolve();
  let urgent = 0;
  let announced = { until: 0, hasPaceWaited: false };

  function announce(wait: Wait): void {
    if (wait.ms <= LONG_WAIT_MS || Math.abs(wait.until - announced.until) < LONG_WAIT_MS) return;
    const { hasPaceWaited } = announced;
    if (wait.reason === 'pace' && hasPaceWaited) return;
    announced = { until: wait.until, hasPaceWaited: hasPaceWaited || wait.reason === 'pace' };
    onWait?.(wait);
  }

  async function waitUntilFree(signal: AbortSignal, { patienceMs, isWanted, isUrgent }: Caller): Promise<boolean> {
    for (;;) {
      while (isUrgent !== true && urgent > 0) await lastUrgent;
      signal.throwIfAborted();
      if (isWanted?.() === false) return false;
      const now = clock.now();
      const { ms, reason } = await take(now);
      if (ms === 0) return true;
      if (reason === 'asked' && ms > (patienceMs ?? ms)) throw blocked(ms);
      announce({ reason, ms, until: now + ms });
      await clock.sleep(Math.min(ms, STEP_MS), signal);
    }
  }

  /**
   * Resolves when the caller may send one request. Rejects when `signal` aborts, and leaves the line.
   * @returns true if the request may be sent; false if it was no longer wanted, and the next caller gets the turn
   * @throws CatchwordError SOURCE_RATE_LIMITED with `retryAfterMs` if the block lasts longer than `patienceMs`
   */
  return (signal: AbortSignal, caller: Caller = {}): Promise<boolean> => {
    const turn = (caller.isUrgent === true ? lastUrgent : last).then(() => waitUntilFree(signal, caller));
    // A caller that aborts while queued is rejected at once; its place in the line is skipped when its turn comes.
    const granted = unlessAborted(turn, signal);
    const ended = turn.catch(() => {});
    if (caller.isUrgent === true) {
      urgent++;
      lastUrgent = ended.then(() => urgent--);
    } else last = ended;
    return granted;
  };
}
