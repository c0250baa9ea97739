import { unlessAborted } from '../abort.ts';
import type { Clock } from '../clock.ts';

export type ChangeNotifier = ReturnType<typeof createChangeNotifier>;

/** Wakes everyone who waits at the end of the log when it grows. Polls once for all of them, and not at all without. */
export function createChangeNotifier(clock: Clock, pollMs: number, lastSeq: () => number) {
  let waiting = 0;
  /** Aborted when the last of them leaves. */
  let polling = new AbortController();
  let next: Promise<number> | undefined;

  /** Returns the newest change at the next poll, which all who wait share. */
  function polled(): Promise<number> {
    next ??= clock.sleep(pollMs, polling.signal).then(() => {
      next = undefined;
      return lastSeq();
    });
    return next;
  }

  return {
    /**
     * Waits for a change after `seq`.
     * @returns true when there is one; false at `untilMs` or when the signal aborts
     * @throws what reading the mirror throws
     */
    async wait(seq: number, untilMs: number, signal: AbortSignal): Promise<boolean> {
      const since = clock.now();
      waiting++;
      try {
        while (!signal.aborted) {
          if ((await unlessAborted(polled(), signal)) > seq) return true;
          const now = clock.now();
          // If the clock was set back, the wait ends early rather than late.
          if (now >= untilMs || now < since) return false;
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        waiting--;
        if (waiting === 0) {
          polling.abort();
          polling = new AbortController();
          next = undefined;
        }
      }
      return false;
    },
  };
}
