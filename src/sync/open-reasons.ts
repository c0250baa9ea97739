import type { InPart, Run } from '../catalog/run-types.ts';
import { FROM_CACHE } from '../proof/watermark.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Assessment, ReadList } from './evidence.ts';
import { isUnreadable } from './failed-window.ts';
import { compareCount } from './product-count.ts';
import type { RunSettings } from './run-settings.ts';
import { isWholeCatalog, whyUncontrolled, whyUntold } from './untold.ts';

/* Why a run is open: each clause is a condition of the proof that does not hold. */

export type ConcludeSettings = Pick<RunSettings, 'withdrawnAs' | 'deletedField' | 'untoldFields'>;

/** Why no two windows are joined if a member of each product changes with each answer. */
const OTHER_EACH_TIME = 'each product that two windows share has another content in the second one';

/** Why a list does not prove that nothing is missing from it; null if it does. */
function whyOpen({ pass, windows, exact, seams }: ReadList): string | null {
  const what = pass.kind === 'list' ? '' : ' of a delta';
  // What cannot be read is a reason of its own, and opens the seams around it.
  if (exact || windows.some(({ doubt }) => isUnreadable(doubt))) return null;
  if (seams === null) {
    return pass.sizeIgnored
      ? `the source answers ${pass.perPage} products a page whatever it is asked for, so pages cannot overlap (try CATCHWORD_PER_PAGE=${pass.perPage})`
      : 'CATCHWORD_SEAM is off: plain pages do not overlap, and a product may slip between them';
  }
  if (seams.disorder > 0) return `the source lists products in no stable order${what}`;
  if (seams.sealed) return null;
  const isVolatile = seams.sharedSum === 0 && seams.unlike > 0;
  const why = isVolatile ? OTHER_EACH_TIME : 'the windows there share no product that stayed as it was';
  return `${seams.gaps.length} of ${seams.states.length + 1} seams${what} did not close: ${why}`;
}

/** Why fewer products were read than the list has, if its windows show that. */
function whyFewer({ removals }: Reader, { seams }: ReadList): string | null {
  const [first, ...others] = seams?.doubled ?? [];
  if (first === undefined) return null;
  const more = others.length === 0 ? 'is' : `and ${others.length} more are`;
  return `${removals.living(first)?.vbid} ${more} at two distant places: the list has it twice, or has no stable order`;
}

/** Products that a run names at most, of those that the list has twice. The next run looks for them: plan-page-write.ts. */
const NAMED = 100;

/** Keys of some of these products. */
export function namesOf({ removals }: Reader, ids: readonly number[]): string[] {
  return ids.slice(0, NAMED).flatMap((id) => removals.living(id)?.vbid ?? []);
}

/** Names products with two contents, of which nothing has shown that the list has both. */
function whyTwoContents(store: Reader, { places: { unproven } }: ReadList): string | null {
  if (unproven.length === 0) return null;
  const [first = 'a removed product'] = namesOf(store, unproven);
  const more = unproven.length === 1 ? 'is' : `and ${unproven.length - 1} more are`;
  return `${first} ${more} at two places with two contents: the first one counts, and it is not proven that the list has both`;
}

/** What deltas have shown in part. */
export function whyInPart({ items, leftOut }: InPart): string[] {
  if (items === 0) return [];
  const what = leftOut.length === 0 ? 'some of their members' : leftOut.join(', ');
  return [`deltas show products without ${what}: these stay as they were`];
}

/** Every reason why a run is open. @param needed as `proofLists` */
export function reasonsOf(
  store: Reader,
  assessment: Assessment,
  needed: readonly ReadList[],
  closed: boolean,
  settings: ConcludeSettings,
): string[] {
  const { lists, list } = assessment;
  const doubts = lists.flatMap(({ windows }) => windows.flatMap(({ doubt }) => doubt ?? []));
  const contradiction = doubts.find((doubt) => !doubt.startsWith(FROM_CACHE) && !isUnreadable(doubt));
  const unreadable = doubts.filter(isUnreadable);
  const open = needed.flatMap((read) => whyOpen(read) ?? []);
  const count = list && compareCount(assessment.counted(), list, settings);
  const isFewer = count?.agrees === false;
  const reasons = [
    ...unreadable,
    ...open,
    needed.some(({ pass, exact, seams, complete }) => pass.kind !== 'list' && !exact && seams === null && !complete) &&
      'a delta of plain pages changed while it was read: the next one asks from the same time again',
    !closed && unreadable.length === 0 && 'the source changed faster than its deltas could be read',
    open.length > 0 &&
      lists.some(({ pass }) => isWholeCatalog(store, pass)) &&
      'a delta shows nearly every product: either a job changed them, or the source ignores the time from which deltas ask',
    doubts.find((doubt) => doubt.startsWith(FROM_CACHE)),
    contradiction !== undefined && `the source contradicts itself: ${contradiction}`,
    isFewer && count.text,
    // Narrower windows overlap others that are not their neighbours.
    isFewer && unreadable.length === 0 && list && whyFewer(store, list),
    list !== undefined && whyTwoContents(store, list),
    lists.some(({ rejected }) => rejected > 0) && 'items were rejected, and each may be a product that was not seen',
  ];
  return [...new Set(reasons.filter((reason) => typeof reason === 'string'))];
}

/** What the deltas did not tell, if the run has read all that they should. */
export function untoldIn(
  store: Reader,
  run: Run,
  { control }: Assessment,
  { untoldFields }: Pick<ConcludeSettings, 'untoldFields'>,
): string[] {
  if (control === undefined) return [whyUncontrolled(store, run) ?? []].flat();
  if (!control.complete || control.windows.some(({ doubt }) => doubt !== null)) return [];
  // Repairs of deltas included.
  const told = store.runs.passes(run.id).filter(({ from }) => from !== null);
  return [whyUntold(store, run, told, untoldFields) ?? []].flat();
}
