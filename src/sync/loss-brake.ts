import { createEmptiedFields } from '@catchword/catalog/emptied-fields';
import { limitOf } from '@catchword/catalog/product-limit';
import type { Unusual } from '@catchword/catalog/run-types';
import type { KeeperWriter } from '../store/schema/writers.ts';
import type { Draft } from './plan-page-write.ts';
import type { RunSettings } from './run-settings.ts';

/*
 * Is this a bad night? A source or a setting that is wrong can empty a field of every product, and each update looks like any
 * other. So each run counts by field how many products its updates empty. When a count, with those of the runs of a day,
 * exceeds CATCHWORD_LOSS_LIMIT, the run is unusual from the first change of that transaction on: 24 deltas that each empty a
 * little are one bad night. The count starts again after an unusual run, because its sinks have waited for a decision. The
 * mirror stays a copy of the source: it takes all changes.
 */

const DAY_MS = 86_400_000;

/** Counts what the updates of one transaction empty. */
export function createLossCounter({ ignoreFields }: Pick<RunSettings, 'ignoreFields'>) {
  const emptiedBy = createEmptiedFields(ignoreFields);

  return (counts: Map<string, number>, { changed }: Pick<Draft, 'changed'>): void => {
    for (const { known, product, change } of changed.values()) {
      if (known.removed) continue;
      for (const field of emptiedBy(change, product.body)) counts.set(field, (counts.get(field) ?? 0) + 1);
    }
  };
}

/**
 * Adds the counts of a transaction to those of its run, in the transaction.
 * @param from the first change of the transaction @param nowMs the time, by the clock of `started_at`
 * @returns what is unusual if the run has become so; null if it has not, or was before
 */
export function noteLosses(
  { runs, products }: KeeperWriter,
  runId: number,
  from: number,
  counts: ReadonlyMap<string, number>,
  { lossLimit }: Pick<RunSettings, 'lossLimit'>,
  nowMs: number,
): Unusual | null {
  if (counts.size === 0) return null;
  const { emptied: before, unusual: noted = null } = runs.get(runId) ?? {};
  const emptied = { ...before };
  for (const [field, some] of counts) emptied[field] = (emptied[field] ?? 0) + some;
  const ofDay = new Map(noted === null ? runs.emptiedBefore(runId, nowMs - DAY_MS) : []);
  const inAll = (field: string): number => (emptied[field] ?? 0) + (noted?.earlier ?? ofDay.get(field) ?? 0);
  const [most = ''] = Object.keys(emptied).sort((a, b) => inAll(b) - inAll(a));
  const field = noted?.field ?? most;
  const living = noted?.living ?? products.living();
  const earlier = noted === null ? ofDay.get(field) : noted.earlier;
  const about = { from: noted?.from ?? from, field, products: inAll(field), living, ...(earlier && { earlier }) };
  const unusual = about.products > limitOf(lossLimit, living) || noted !== null ? about : null;
  runs.noteLosses(runId, emptied, unusual);
  return noted === null ? unusual : null;
}
