import type { Clock } from '../../src/clock.ts';

/** Time that passes only while everything waits for it: it jumps to the moment the next sleeper wants to be woken at. */
export function createVirtualClock(): Clock {
  let now = 1_000_000;
  const sleepers = new Set<{ readonly at: number; wake(): void }>();

  function advance(): void {
    const [next] = [...sleepers].sort((a, b) => a.at - b.at);
    if (next === undefined) return;
    sleepers.delete(next);
    now = Math.max(now, next.at);
    next.wake();
    setImmediate(advance);
  }

  return {
    now: () => now,
    random: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const onAbort = (): void => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        const wake = (): void => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        };
        const sleeper = { at: now + ms, wake };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', onAbort);
        if (sleepers.size === 1) setImmediate(advance);
      }),
  };
}
