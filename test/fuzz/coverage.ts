import { type Profiler, Session } from 'node:inspector';

type Range = readonly [start: number, end: number];

/** The parts of `ranges` that are also in `others`. */
function common(ranges: readonly Range[], others: readonly Range[]): Range[] {
  return ranges.flatMap(([start, end]) =>
    others.flatMap(([from, to]): Range[] => {
      const both: Range = [Math.max(start, from), Math.min(end, to)];
      return both[0] < both[1] ? [both] : [];
    }),
  );
}

function lengthOf(ranges: readonly Range[]): number {
  return ranges.reduce((sum, [start, end]) => sum + end - start, 0);
}

/** The outermost ranges that did not run. */
function unrun({ ranges }: Profiler.FunctionCoverage): Range[] {
  const idle = ranges
    .filter(({ count }) => count === 0)
    .map(({ startOffset, endOffset }): Range => [startOffset, endOffset]);
  return idle.filter(
    ([start, end]) => !idle.some(([from, to]) => from <= start && end <= to && to - from > end - start),
  );
}

/**
 * Watches which code of src runs in this thread.
 * @returns tells whether code ran since the last call that never ran before
 */
export function startCoverage(): () => boolean {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: false, detailed: true });
  const never = new Map<string, Range[]>();
  return () => {
    let isNew = false;
    session.post('Profiler.takePreciseCoverage', (_error, { result }) => {
      for (const { url, functions } of result) {
        if (!url.includes('/src/')) continue;
        for (const one of functions) {
          const [whole] = one.ranges;
          if (whole === undefined || whole.count === 0) continue;
          const key = `${url} ${whole.startOffset} ${whole.endOffset}`;
          const before = never.get(key);
          const now = before === undefined ? unrun(one) : common(before, unrun(one));
          if (before === undefined || lengthOf(now) < lengthOf(before)) isNew = true;
          never.set(key, now);
        }
      }
    });
    return isNew;
  };
}
