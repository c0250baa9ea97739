import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How often the event loop is looked at, milliseconds. Node counts it as part of the delay. */
const RESOLUTION_MS = 10;

const PERCENTILES = [50, 99, 100] as const;

/** Figures that only the thread itself can read. */
export interface ThreadFigures {
  /** Null if the thread did not answer in time. */
  readonly heapBytes: number | null;
  /** How late timers fired since the figures were taken before, by percentile; of a thread that did not answer, at least. */
  readonly late: readonly { readonly percentile: (typeof PERCENTILES)[number]; readonly seconds: number }[];
}

/** Starts to measure this thread. */
export function measureThread() {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  return {
    take: (): ThreadFigures => {
      const late = PERCENTILES.map((percentile) => {
        const late = delay.count === 0 ? 0 : delay.percentile(percentile) / 1e9 - RESOLUTION_MS / 1000;
        return { percentile, seconds: Math.max(0, late) };
      });
      delay.reset();
      return { heapBytes: process.memoryUsage().heapUsed, late };
    },
    stop: (): void => {
      delay.disable();
    },
  };
}
