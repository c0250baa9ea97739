import { CatchwordError } from '@catchword/base/errors';
import { createIdSet } from '@catchword/catalog/id-set';
import { startOf } from '../proof/plan.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Applied } from './apply-page.ts';
import type { PassWindows } from './pass-windows.ts';

/** Windows without new products that a list may have beyond the number of those with new ones. A safety limit. */
const BARREN = 32;

function endless(reason: string): CatchwordError {
  const hint =
    'The source may use other names for the page parameters (CATCHWORD_PAGE_PARAM), or a cache before it ignores them.';
  return new CatchwordError('PAGE_INVALID', reason, { retryable: false, hint });
}

/** So many items must be rejected before a pass fails because of them: a few odd ones may be all that a delta holds. */
const REJECTED_LEAST = 10;
/** A list that is like this so far is not read further. */
const ALL_REJECTED = 100;

/** @throws CatchwordError PAGE_INVALID if most of these items were rejected: then the source has another form */
function requireUsable({ runs }: Reader, runId: number, items: number, rejected: number): void {
  if (rejected < REJECTED_LEAST || 2 * rejected <= items) return;
  const [example] = runs.rejected(1, { run: runId, after: 0 });
  const message = `${rejected} of ${items} items that were read were rejected, such as one for this reason: ${example?.reason}`;
  const hint = `The items may have another form now: npx catchword run ${runId} shows some.`;
  throw new CatchwordError('PAGE_INVALID', message, { retryable: false, hint });
}

/**
 * Checks the first pass of a run. Few products of a quiet catalog may be odd: a delta fails only if all of its items are.
 * @throws CatchwordError PAGE_INVALID if most of its items were rejected
 */
export function requireUsablePass(store: Reader, { runId, pass, kind }: Pass): void {
  if (pass > 0) return;
  const windows = store.runs.checkpoints(runId, pass);
  const sum = (key: 'items' | 'rejected'): number => windows.reduce((total, window) => total + window[key], 0);
  const [items, rejected] = [sum('items'), sum('rejected')];
  if (kind === 'list' || items === rejected) requireUsable(store, runId, items, rejected);
}

/**
 * Checks that a list keeps showing new products: a source that repeats its pages would be read endlessly. Pages may
 * repeat for a while when products are inserted before the current position.
 * @returns takes each window that was read; throws CatchwordError PAGE_INVALID
 */
export function watchProgress(store: Reader, { runId, pass, kind, seam }: Pass, windows: PassWindows) {
  const { runs } = store;
  const seen = createIdSet(0);
  let items = 0;
  let rejected = 0;
  let fruitful = 0;
  let barren = 0;

  function countNew(ids: readonly number[]): void {
    const before = seen.size;
    seen.addAll(ids);
    if (seen.size > before) fruitful++;
    else if (ids.length > 0) barren++;
    if (barren <= fruitful + BARREN) return;
    throw endless(`the list goes on without anything new: ${barren} of its pages held only known products`);
  }

  return (window: Applied): void => {
    if (kind === 'repair' || kind === 'lookup') return;
    const ids = runs.idsOf(runId, pass, window);
    countNew(ids);
    items += window.items;
    rejected += window.rejected;
    if (items === rejected && items >= ALL_REJECTED) requireUsable(store, runId, items, rejected);
    // A page that is not full ends the list, although the total was too low: a list that is repeated has full ones.
    if (window.items < window.perPage || startOf(window) < window.numItems || window.page === 1) return;
    const before = windows.readBefore(window);
    if (before === undefined) return;
    const known = new Set(runs.idsOf(runId, pass, before));
    if (ids.some((id) => !known.has(id))) return;
    // Some sources answer with their last page instead. Windows that overlap do not begin there. Others always answer
    // with the same page.
    if (seam === 0 && barren <= fruitful) windows.endAt(window);
    else throw endless(`page ${window.page} repeats the one before it, beyond the end of the list`);
  };
}
