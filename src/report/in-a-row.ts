import type { EndedRun } from '../store/recent-runs.ts';

/** How many of the newest elements in a row pass the test. */
function inARow<T>(newestFirst: readonly T[], test: (one: T) => boolean): number {
  const end = newestFirst.findIndex((one) => !test(one));
  return end === -1 ? newestFirst.length : end;
}

/** How many of the newest runs have failed. */
export function failedInARow(newestFirst: readonly EndedRun[]): number {
  return inARow(newestFirst, ({ state }) => state === 'failed');
}

/** How many of the newest full runs were not sealed. */
export function openInARow(newestFirst: readonly EndedRun[]): number {
  return inARow(newestFirst, ({ proof }) => proof !== 'sealed');
}
