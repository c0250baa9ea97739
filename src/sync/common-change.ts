import { changedFields, type Pointer, revert } from '../catalog/content.ts';
import type { Evidence } from '../catalog/run-types.ts';
import type { Reader } from '../store/schema/reader.ts';

/** The share of the living products that counts as nearly all, and the fewest: a small catalog may well change at once. */
const NEARLY_ALL = 0.9;
const LEAST = 100;
/** Changes that are looked at. A field that changes in every product is in nearly all of them. */
const SAMPLE = 200;

/**
 * If a run updated nearly every product: the field that changed most often, of its newest changes. Call it before anything
 * follows them in the log.
 * @param ignored fields whose changes are ignored already
 */
export function commonChange(
  { products, changes }: Reader,
  runId: number,
  updated: number,
  ignored: readonly Pointer[],
): Pick<Evidence, 'commonChange'> {
  if (updated < LEAST || updated < NEARLY_ALL * products.living()) return {};
  const counts = new Map<string, number>();
  for (const { headBody, ...change } of changes.after(changes.lastSeq() - SAMPLE, SAMPLE)) {
    // Of the newest change of a product only: the mirror has the body that it led to.
    if (change.runId !== runId || change.op !== 'updated' || change.headSeq !== change.seq) continue;
    const older = revert(headBody, { before: change.before ?? '{}', added: change.added });
    for (const field of changedFields(older, headBody, ignored)) counts.set(field, (counts.get(field) ?? 0) + 1);
  }
  const [most] = [...counts].sort(([, a], [, b]) => b - a);
  return { commonChange: most?.[0] ?? null };
}
