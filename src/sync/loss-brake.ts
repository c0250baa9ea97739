import { createEmptiedFields } from '../catalog/emptied-fields.ts';
import { limitOf } from '../catalog/product-limit.ts';
import type { Unusual } from '../catalog/run-types.ts';
import type { KeeperWriter } from '../store/schema/writers.ts';
import type { Draft } from './plan-page-write.ts';
import type { RunSettings } from './run-settings.ts';

/*
 * Is this a bad night? A source or a setting that is wrong can empty a field of every product, and each update looks like any
 * other. So each run counts by field how many products its updates empty. When a count exceeds CATCHWORD_LOSS_LIMIT, the
 * run is unusual from the first change of that transaction on. The mirror stays a copy of the source: it takes all changes.
 */

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
 * @param from the first change of the transaction
 * @returns what is unusual if the run has become so; null if it has not, or was before
 */
export function noteLosses(
  { runs, products }: KeeperWriter,
  runId: number,
  from: number,
  counts: ReadonlyMap<string, number>,
  { lossLimit }: Pick<RunSettings, 'lossLimit'>,
): Unusual | null {
  if (counts.size === 0) return null;
  const { emptied: earlier, unusual: noted = null } = runs.get(runId) ?? {};
  const emptied = { ...earlier };
  for (const [field, some] of counts) emptied[field] = (emptied[field] ?? 0) + some;
  const [most = ['', 0]] = Object.entries(emptied).sort(([, a], [, b]) => b - a);
  const field = noted?.field ?? most[0];
  const living = noted?.living ?? products.living();
  const about = { from: noted?.from ?? from, field, products: emptied[field] ?? 0, living };
  const unusual = about.products > limitOf(lossLimit, living) || noted !== null ? about : null;
  runs.noteLosses(runId, emptied, unusual);
  return noted === null ? unusual : null;
}
