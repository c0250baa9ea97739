import { createIdSet } from '../catalog/id-set.ts';
import { startOf } from '../catalog/plan.ts';
import { CatchwordError } from '../errors.ts';
import type { Reader } from '../store/reader.ts';
import type { Pass } from '../store/runs.ts';
import type { Applied } from './apply-page.ts';
import type { PassWindows } from './pass-windows.ts';

/** Windows without new products that a list may have beyond the number of those with new ones. A safety limit. */
const BARREN = 32;

function endless(reason: string): CatchwordError {
  const hint = 'The source may use other names for the page parameters: check CATCHWORD_PAGE_PARAM.';
  return new CatchwordError('PAGE_INVALID', reason, { retryable: false, hint });
}

/**
 * Checks that a list keeps showing new products: a source that repeats its pages would be read endlessly. Pages may
 * repeat for a while when products are inserted before the current position.
 * @returns takes each window that was read; throws CatchwordError PAGE_INVALID
 */
export function watchProgress({ runs }: Reader, { runId, pass, kind, seam }: Pass, windows: PassWindows) {
  const seen = createIdSet(0);
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
    // A page that is not full ends the list, although the total was too low: a list that is repeated has full ones.
    if (window.items < window.perPage || startOf(window) < window.numItems || window.page === 1) return;
    const before = windows.readBefore(window);
    if (before === undefined) return;
    const known = new Set(runs.idsOf(runId, pass, before));
    if (ids.some((id) => !known.has(id))) return;
    // Some sources answer with their last page instead. Windows that overlap do not begin there.
    if (seam === 0) windows.endAt(window);
    else throw endless(`page ${window.page} repeats the one before it, beyond the end of the list`);
  };
}
