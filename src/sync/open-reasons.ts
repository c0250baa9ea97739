import { type Doubt, isUnreadable, type Reason } from '@catchword/catalog/reasons';
import type { Run } from '@catchword/catalog/run-types';
import type { Reader } from '../store/schema/reader.ts';
import type { Assessment, ReadList } from './evidence.ts';
import { compareCount } from './product-count.ts';
import type { RunSettings } from './run-settings.ts';
import { isWholeCatalog, whyUncontrolled, whyUntold } from './untold.ts';

/* Why a run is open: each clause is a condition of the proof that does not hold. */

export type ConcludeSettings = Pick<RunSettings, 'withdrawnAs' | 'deletedField' | 'untoldFields'>;

/** Why a list does not prove that nothing is missing from it; null if it does. */
function whyOpen({ pass, windows, exact, seams }: ReadList): Reason | null {
  // What cannot be read is a reason of its own, and opens the seams around it.
  if (exact || windows.some(({ doubt }) => isUnreadable(doubt))) return null;
  if (seams === null) return pass.sizeIgnored ? { code: 'page-size', perPage: pass.perPage } : { code: 'plain-pages' };
  const list = pass.kind === 'list' ? 'list' : 'delta';
  if (seams.disorder > 0) return { code: 'no-order', list };
  if (seams.sealed) return null;
  const code = seams.sharedSum === 0 && seams.unlike > 0 ? 'volatile' : 'seams';
  return { code, list, open: seams.gaps.length, seams: seams.states.length + 1 };
}

/** Products that a run names at most, of those that the list has twice. The next run looks for them: plan-page-write.ts. */
const NAMED = 100;

/** Keys of some of these products. */
export function namesOf({ removals }: Reader, ids: readonly number[]): string[] {
  return ids.slice(0, NAMED).flatMap((id) => removals.living(id)?.vbid ?? []);
}

/** Names one of these products; none if there are none. */
function productsAt(store: Reader, code: 'two-places' | 'two-contents', ids: readonly number[]): Reason[] {
  return ids.length === 0 ? [] : [{ code, vbid: namesOf(store, ids)[0] ?? null, more: ids.length - 1 }];
}

/** Every reason why a run is open. @param needed as `proofLists` */
export function reasonsOf(
  store: Reader,
  assessment: Assessment,
  needed: readonly ReadList[],
  closed: boolean,
  settings: ConcludeSettings,
): Reason[] {
  const { lists, list } = assessment;
  const doubts = lists.flatMap(({ windows }) => windows.flatMap(({ doubt }) => doubt ?? []));
  const unreadable = doubts.filter(isUnreadable);
  const firstDoubt = (code: Doubt['code']): Doubt[] => [doubts.find((doubt) => doubt.code === code) ?? []].flat();
  const open = needed.flatMap((read) => whyOpen(read) ?? []);
  const count = list && compareCount(assessment.counted(), list, settings);
  const isFewer = count?.agrees === false;
  const when = (isSo: boolean, code: 'plain-delta' | 'restless' | 'whole-delta' | 'rejected'): Reason[] =>
    isSo ? [{ code }] : [];
  const isPlainOpen = needed.some(
    ({ pass, exact, seams, complete }) => pass.kind !== 'list' && !exact && seams === null && !complete,
  );
  const reasons = [
    ...unreadable,
    ...open,
    ...when(isPlainOpen, 'plain-delta'),
    ...when(!closed && unreadable.length === 0, 'restless'),
    ...when(open.length > 0 && lists.some(({ pass }) => isWholeCatalog(store, pass)), 'whole-delta'),
    ...firstDoubt('cached'),
    ...firstDoubt('contradiction'),
    ...(isFewer ? [count.reason] : []),
    // Narrower windows overlap others that are not their neighbours.
    ...(isFewer && unreadable.length === 0 ? productsAt(store, 'two-places', list?.seams?.doubled ?? []) : []),
    ...productsAt(store, 'two-contents', list?.places.unproven ?? []),
    ...when(
      lists.some(({ rejected }) => rejected > 0),
      'rejected',
    ),
  ];
  return [...new Map(reasons.map((reason) => [JSON.stringify(reason), reason])).values()];
}

/** What the deltas did not tell, if the run has read all that they should. */
export function untoldIn(
  store: Reader,
  run: Run,
  { control }: Assessment,
  { untoldFields }: Pick<ConcludeSettings, 'untoldFields'>,
): Reason[] {
  if (control === undefined) return [whyUncontrolled(store, run) ?? []].flat();
  if (!control.complete || control.windows.some(({ doubt }) => doubt !== null)) return [];
  // Repairs of deltas included.
  const told = store.runs.passes(run.id).filter(({ from }) => from !== null);
  return [whyUntold(store, run, told, untoldFields) ?? []].flat();
}
