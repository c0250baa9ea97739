import type { Clock } from '../clock.ts';

/** Tells everybody who waits at the end of the log that it has grown. */
export interface News {
  /**
   * True when there is a change after `seq`; false when `untilMs` came first, or the signal.
   * @throws what reading the mirror throws
   */
  wait(seq: number, untilMs: number, signal: AbortSignal): Promise<boolean>;
}

interface Waiter {
  readonly seq: number;
  readonly since: number;
  readonly untilMs: number;
  settle(outcome: { grown: boolean } | { error: unknown }): void;
}

export interface NewsOptions {
  readonly lastSeq: () => number;
  readonly clock: Clock;
  readonly pollMs: number;
}

/** One look at the mirror serves all who wait; while nobody does, there is none. */
export function createNews({ lastSeq, clock, pollMs }: NewsOptions): News {
  const waiters = new Set<Waiter>();
  let nobody = new AbortController();

  function look(): void {
    const last = lastSeq();
    const now = clock.now();
    for (const waiter of [...waiters]) {
      if (last > waiter.seq) waiter.settle({ grown: true });
      // A clock that was put back does not keep a reader waiting for longer.
      else if (now >= waiter.untilMs || now < waiter.since) waiter.settle({ grown: false });
    }
  }

  async function poll({ signal }: AbortController): Promise<void> {
    for (;;) {
      // Rejects when the last one has gone.
      await clock.sleep(pollMs, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        look();
      } catch (error) {
        for (const waiter of [...waiters]) waiter.settle({ error });
      }
      if (signal.aborted) return;
    }
  }

  return {
    wait: (seq, untilMs, signal) =>
      new Promise((resolve, reject) => {
        const give = () => waiter.settle({ grown: false });
        const waiter: Waiter = {
          seq,
          since: clock.now(),
          untilMs,
          settle: (outcome) => {
            signal.removeEventListener('abort', give);
            waiters.delete(waiter);
            if (waiters.size === 0) nobody.abort();
            if ('error' in outcome) reject(outcome.error);
            else resolve(outcome.grown);
          },
        };
        waiters.add(waiter);
        signal.addEventListener('abort', give, { once: true });
        if (signal.aborted) give();
        else if (waiters.size === 1) {
          nobody = new AbortController();
          void poll(nobody);
        }
      }),
  };
}
