import type { Reason } from '@catchword/catalog/reasons';
import type { Harness, Version } from '../../src/contract/harness.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { NO_COUNTS } from '../operate/scene.ts';

/** Creates a run. @returns its number */
export function newRun(
  { store }: Pick<Harness, 'store'>,
  reasons: readonly Reason[] = [],
  kind: 'full' | 'delta' = 'delta',
): number {
  return writeUnder(store.keeperLease, Date.now(), ({ runs }) => {
    const id = runs.create({ kind, from: null, startedAt: 0, tick: null, selection: '{}' });
    if (reasons.length > 0) runs.amend(id, { reasons: [...reasons] });
    return id;
  });
}

/** Records changes as an unusual run does. @returns its number */
export function unusualRun({ store, change }: Pick<Harness, 'store' | 'change'>, versions: readonly Version[]): number {
  const from = store.changes.lastSeq() + 1;
  const run = newRun({ store });
  writeUnder(store.keeperLease, Date.now(), ({ runs }) => {
    const about = { from, field: 'price', products: versions.length, living: 300 };
    runs.noteLosses(run, { price: versions.length }, about);
  });
  change(versions);
  return run;
}

function endedRun({ store }: Pick<Harness, 'store'>, state: 'complete' | 'failed'): void {
  const id = newRun({ store }, [], 'full');
  writeUnder(store.keeperLease, Date.now(), ({ runs }) => {
    runs.end(id, { state, finishedAt: 1, proof: null, reasons: [], error: null, counts: NO_COUNTS });
  });
}

/** A usual run that has read everything: unusual ones before it are over, unless a sink waits. */
export function usualRun(mirror: Pick<Harness, 'store'>): void {
  endedRun(mirror, 'complete');
}

/** A run that the source has refused. */
export function failedRun(mirror: Pick<Harness, 'store'>): void {
  endedRun(mirror, 'failed');
}
