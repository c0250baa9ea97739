import { createIdSet } from '../catalog/seams.ts';
import { CatchwordError } from '../errors.ts';

/** Windows without new products that a list may have beyond the number of those with new ones. A safety limit. */
const BARREN = 32;

/**
 * Checks that a list keeps showing new products. The source's total is only a hint, so a source that repeats its pages
 * would be read endlessly. Pages may repeat for a while when products are inserted before the current position:
 * therefore as many windows without new products are allowed as there were windows with new ones.
 * @returns takes the product ids of each window that was read; throws CatchwordError PAGE_INVALID
 */
export function watchProgress(): (ids: readonly number[]) => void {
  const seen = createIdSet(0);
  let fruitful = 0;
  let barren = 0;
  return (ids) => {
    const before = seen.size;
    for (const id of ids) if (id !== 0) seen.add(id);
    if (seen.size > before) fruitful++;
    else if (ids.length > 0) barren++;
    if (barren <= fruitful + BARREN) return;
    throw new CatchwordError(
      'PAGE_INVALID',
      `the list goes on without anything new: ${barren} of its pages held only known products`,
      {
        retryable: false,
        hint: 'The source may use other names for the page parameters: check CATCHWORD_PAGE_PARAM.',
      },
    );
  };
}
