import { createIdSet } from '../catalog/id-set.ts';
import { CatchwordError } from '../errors.ts';

/** Windows without anything new that a list may have, in addition to as many as those with something new. For safety. */
const BARREN = 32;

/**
 * Watches that a list brings products that it has not shown before. What a source says about the size of its list is only
 * a hint: one that repeats itself, whatever it is asked for, would be read without end. While many products are inserted
 * before the place that is read, what was read comes again; hence as many windows as there were with something new.
 * @returns takes the product ids of the next window that was read
 * @throws CatchwordError PAGE_INVALID
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
      `the list goes on without anything new: ${barren} of its pages held only what others had shown`,
      {
        retryable: false,
        hint: 'The source does not seem to know pages by the names it was asked with: see CATCHWORD_PAGE_PARAM.',
      },
    );
  };
}
