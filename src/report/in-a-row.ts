import type { Run } from '../catalog/run.ts';

type Ended = Pick<Run, 'kind' | 'state' | 'proof'>;

/** How many of the newest elements in a row pass the test. */
function inARow<T>(newestFirst: readonly T[], test: (one: T) => boolean): number {
  const end = newestFirst.findIndex((one) => !test(one));
  return end === -1 ? newestFirst.length : end;
}

/** Runs that ended by themselves: an operator's decision to cancel one says nothing about the source. */
export function endedRuns(runs: readonly Run[]): Run[] {
  return runs.filter(({ state }) => state !== 'planned' && state !== 'reading' && state !== 'cancelled');
}

/** @param ended runs that have ended, the newest first */
export function failedInARow(ended: readonly Ended[]): number {
  return inARow(ended, ({ state }) => state === 'failed');
}

/** How many of the newest full runs were not sealed. @param ended runs that have ended, the newest first */
export function openInARow(ended: readonly Ended[]): number {
  const full = ended.filter(({ kind }) => kind === 'full');
  return inARow(full, ({ proof }) => proof !== 'sealed');
}
