import { changedFields, type Pointer, revert } from '@catchword/catalog/content';
import type { Evidence } from '@catchword/catalog/run-types';
import type { Reader } from '../store/schema/reader.ts';

/** The share of the living products that counts as nearly all, and the fewest: a small catalog may well change at once. */
const NEARLY_ALL = 0.9;
const LEAST = 100;
/** Changes that are looked at. A field that changes in every product is in nearly all of them. */
export const SAMPLE = 200;

/** Whether so many products are nearly all of the mirror's. */
export function isNearlyAll({ products }: Reader, count: number): boolean {
  return count >= LEAST && count >= NEARLY_ALL * products.living();
}

/** The fields of some changes, those that changed most often first. */
export function byFrequency(changes: readonly Iterable<string>[]): string[] {
  const counts = new Map<string, number>();
  for (const fields of changes) for (const field of fields) counts.set(field, (counts.get(field) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).map(([field]) => field);
}

/**
 * If a run updated nearly every product: the field that changed most often, of its newest changes. Call it before anything
 * follows them in the log. @param ignored fields whose changes are ignored already
 */
export function commonChange(
  store: Reader,
  runId: number,
  updated: number,
  ignored: readonly Pointer[],
): Pick<Evidence, 'commonChange'> {
  if (!isNearlyAll(store, updated)) return {};
  const newest = store.changes.after(store.changes.lastSeq() - SAMPLE, SAMPLE);
  // Of the newest change of a product only: the mirror has the body that it led to.
  const updates = newest.filter((one) => one.runId === runId && one.op === 'updated' && one.headSeq === one.seq);
  const fields = updates.map(({ headBody, before, added }) =>
    changedFields(revert(headBody, { before: before ?? '{}', added }), headBody, ignored),
  );
  return { commonChange: byFrequency(fields)[0] ?? null };
}
