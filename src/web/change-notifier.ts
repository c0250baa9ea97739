import type { Clock } from '../clock.ts';

/** Wakes everyone who waits at the end of the log when it grows. */
export interface ChangeNotifier {
  /**
   * Waits for a change after `seq`.
   * @returns true when there is one; false at `untilMs` or when the signal aborts
   * @throws what reading the mirror throws
   */
  wait(seq: number, untilMs: number, signal: AbortSignal): Promise<boolean>;
}

interface Waiter {
  readonly seq: number;
  readonly since: number;
  readonly untilMs: number;
  settle(outcome: { hasGrown: boolean } | { error: unknown }): void;
}

export interface ChangeNotifierOptions {
  readonly lastSeq: () => number;
  readonly clock: Clock;
  readonly pollMs: number;
}

/** Polls the mirror once for all waiters, and not at all without waiters. */
export function createChangeNotifier({ lastSeq, clock, pollMs }: ChangeNotifierOptions): ChangeNotifier {
  const waiters = new Set<Waiter>();
  let polling = new AbortController();

  function wakeWaiters(): void {
    const last = lastSeq();
    const now = clock.now();
    for (const waiter of waiters) {
      if (last > waiter.seq) waiter.settle({ hasGrown: true });
      // If the clock was set back, the wait ends early rather than late.
      else if (now >= waiter.untilMs || now < waiter.since) waiter.settle({ hasGrown: false });
    }
  }

  async function poll({ signal }: AbortController): Promise<void> {
    for (;;) {
      await clock.sleep(pollMs, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        wakeWaiters();
      } catch (error) {
        for (const waiter of waiters) waiter.settle({ error });
      }
      if (signal.aborted) return;
    }
  }

  return {
    wait: (seq, untilMs, signal) =>
      new Promise((resolve, reject) => {
        const giveUp = () => waiter.settle({ hasGrown: false });
        const waiter: Waiter = {
          seq,
          since: clock.now(),
          untilMs,
          settle: (outcome) => {
            signal.removeEventListener('abort', giveUp);
            waiters.delete(waiter);
            if (waiters.size === 0) polling.abort();
            if ('error' in outcome) reject(outcome.error);
            else resolve(outcome.hasGrown);
          },
        };
        waiters.add(waiter);
        signal.addEventListener('abort', giveUp, { once: true });
        if (signal.aborted) giveUp();
        else if (waiters.size === 1) {
          polling = new AbortController();
          void poll(polling);
        }
      }),
  };
}
