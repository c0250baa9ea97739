import { changedFields, type Pointer, revert } from '@catchword/catalog/content';
import { createIdSet } from '@catchword/catalog/id-set';
import { isUntold, type Reason } from '@catchword/catalog/reasons';
import type { Run } from '@catchword/catalog/run-types';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import { byFrequency, isNearlyAll, SAMPLE } from './common-change.ts';

/*
 * The control of the deltas: a full run also reads the delta since the watermark. What its list shows as changed since then
 * and no delta tells is untold: then the silence of a delta proves nothing.
 */

/** Changes of one product in one run. For safety. */
const CHANGES = 100;

/**
 * Whether a full run can control its deltas: the full run before it left the mirror as the source was, and the same
 * products are selected. If that one found untold changes, it did so nevertheless.
 */
export function hasControl({ recentRuns, runs, source }: Reader, { kind }: Run): boolean {
  const [before] = recentRuns.read('full', 1);
  if (kind !== 'full' || before === undefined || source.noted()?.unfinished === true) return false;
  const reasons = runs.get(before.id)?.reasons ?? [];
  return before.proof === 'sealed' || (before.proof === 'open' && reasons.every(isUntold));
}

/** Why a full run that cannot control its deltas does not rely on them: the full run before found untold changes. */
export function whyUncontrolled(store: Reader, run: Run): Reason | null {
  const [before] = store.recentRuns.read('full', 1);
  if (run.kind !== 'full' || before === undefined || hasControl(store, run)) return null;
  const isKnown = (store.runs.get(before.id)?.reasons ?? []).some(isUntold);
  return isKnown ? { code: 'uncontrolled', run: before.id } : null;
}

/** Whether a delta shows nearly every product. */
export function isWholeCatalog(store: Reader, { from, numItems }: Pick<Pass, 'from' | 'numItems'>): boolean {
  return from !== null && numItems !== null && isNearlyAll(store, numItems);
}

/** The fields in which this run has changed a product; null if it created, restored or removed it. */
function changedIn({ changes, removals }: Reader, id: number, since: number, ignored: readonly Pointer[]) {
  const newer = removals.living(id)?.body;
  const found = changes.ofProduct(id, Number.MAX_SAFE_INTEGER, CHANGES, since);
  if (newer === undefined || found.some(({ op }) => op !== 'updated')) return null;
  const older = found.reduce((body, { before, added }) => revert(body, { before: before ?? '{}', added }), newer);
  return changedFields(older, newer, ignored);
}

/**
 * Why the deltas of a run cannot be relied on; null if they told every change that its list shows.
 * @param told passes whose products count as told
 * @param fields of which the source tells no changes, as the settings say
 */
export function whyUntold(store: Reader, run: Run, told: readonly Pass[], fields: readonly Pointer[]): Reason | null {
  const since = store.changes.beforeRun(run.id);
  const known = createIdSet(store.products.lastId());
  for (const { runId, pass } of told) {
    for (const window of store.runs.checkpoints(runId, pass)) known.addAll(store.runs.idsOf(runId, pass, window));
  }
  const changed = [...new Set(store.changes.productsAfter(since))];
  const unknown = changed.filter((id) => !known.has(id));
  const isOther = (id: number): boolean => changedIn(store, id, since, fields)?.size !== 0;
  const untold = fields.length === 0 ? unknown : unknown.filter(isOther);
  if (untold.length === 0) return null;
  const wholly = (id: number): string =>
    store.removals.living(id) === undefined ? 'removed products' : 'new products';
  const found = untold.slice(0, SAMPLE).map((id) => changedIn(store, id, since, fields) ?? [wholly(id)]);
  return { code: 'untold', untold: untold.length, changed: changed.length, fields: byFrequency(found).slice(0, 3) };
}
