import type { InPart, ListEvidence, Proof, Run } from '../catalog/run-types.ts';
import { FROM_CACHE } from '../proof/watermark.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import { type Assessment, type ReadList, startsBy } from './evidence.ts';
import { isUnreadable, refusesDelta } from './failed-window.ts';
import type { RunSettings } from './run-settings.ts';
import { isWholeCatalog, whyUncontrolled, whyUntold } from './untold.ts';

export type ConcludeSettings = Pick<RunSettings, 'withdrawnAs' | 'deletedField' | 'untoldFields'>;

export interface Settling {
  /** Whether the run's last delta was read late enough to show every change. */
  readonly settled: boolean;
  /** Start of the settling delta that the run can still read; milliseconds since 1970, null if it reads none. */
  readonly nextFrom: number | null;
}

/** Whether the next settling delta tells what this delta told, so that this one need not be whole. */
export function isToldAgain(store: Reader, pass: Pass, { nextFrom }: Settling): boolean {
  if (nextFrom === null || pass.kind !== 'delta' || isWholeCatalog(store, pass)) return false;
  return startsBy({ from: nextFrom }, pass.from ?? 0);
}

/** The newest reading of the whole list, and each delta unless a later one tells of all its changes, and of later ones. */
export function proofLists(store: Reader, { lists, list }: Assessment, settling: Settling): ReadList[] {
  return lists.filter((read, at) => {
    if (read.pass.kind === 'list') return read === list;
    if (isToldAgain(store, read.pass, settling)) return false;
    return !lists.slice(at + 1).some(({ pass }) => startsBy(pass, read.pass.from ?? 0));
  });
}

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
function namesOf({ removals }: Reader, ids: readonly number[]): string[] {
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
function whyInPart({ items, leftOut }: InPart): string[] {
  if (items === 0) return [];
  const what = leftOut.length === 0 ? 'some of their members' : leftOut.join(', ');
  return [`deltas show products without ${what}: these stay as they were`];
}

/** Every reason why a run is open. @param needed as `proofLists` */
function reasonsOf(
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

/** Compares what was read with the source's total. @param products how many count as read @returns `text`: how they differ */
export function compareCount(
  products: number,
  list: ReadList,
  { withdrawnAs, deletedField }: Pick<ConcludeSettings, 'withdrawnAs' | 'deletedField'>,
) {
  // The mirror does not take up products that were withdrawn, or deleted, before it knew them.
  const unknown = withdrawnAs === 'removed' || deletedField !== undefined ? list.unknown() : 0;
  // A total that counts each product once is lower than the list is long.
  const wanted = list.repeated === 0 ? list.total : Math.max(list.total, list.end);
  const read = products + unknown + list.rejected + list.repeated;
  const has = wanted === list.total ? `source says that it has ${wanted} products` : `list has ${wanted} items`;
  return { agrees: read >= wanted, wanted, read, text: `the ${has}, and ${read} were read` };
}

/** What the deltas did not tell, if the run has read all that they should. */
function untoldIn(
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

function evidenceOf(list: ReadList): ListEvidence {
  const { pass, windows, seams } = list;
  const own = windows.filter((window) => window.pass === pass.pass).length;
  const states = seams?.states ?? [];
  return {
    pass: pass.pass,
    kind: pass.kind === 'list' ? 'list' : 'delta',
    windows: own,
    repairs: windows.length - own,
    overlap: states.length === 0 ? 0 : Math.round((seams?.sharedSum ?? 0) / states.length),
    overlapLeast: seams?.sharedLeast ?? 0,
    seams: states.length === 0 && !list.exact ? 'o'.repeat(own - 1) : states.join(''),
  };
}

/** The seams of each list that the run has read. A delta of one response has none. */
export function seamsOf({ lists }: Assessment): ListEvidence[] {
  return lists.filter((read) => read.pass.kind === 'list' || !read.exact).map(evidenceOf);
}

/** Whether what it read may have changed meanwhile, or is not proven to be whole. */
function isMoving({ exact, seams, complete }: ReadList): boolean {
  return !exact && !(seams?.stoodStill === true && complete);
}

/** Concludes what a run has proven; if it must settle, what it will have proven unless the settling delta shows more. */
export function conclude(
  store: Reader,
  run: Run,
  assessment: Assessment,
  settling: Settling,
  settings: ConcludeSettings,
) {
  const { lists, list, seen, listed } = assessment;
  const inPart = store.runs.inPart(run.id);
  const untold = untoldIn(store, run, assessment, settings);
  const needed = proofLists(store, assessment, settling);
  const putOff = lists.filter(({ pass }) => isToldAgain(store, pass, settling));
  const closed = assessment.closed || putOff.some(({ pass }) => pass.pass === assessment.last);
  const others = [...reasonsOf(store, assessment, needed, closed, settings), ...untold];
  const reasons = [...others, ...whyInPart(inPart)];
  const neededDeltas = needed.filter(({ pass }) => pass.kind !== 'list');
  const deltas = lists.filter(({ pass }) => pass.kind !== 'list');
  const isExactDelta = run.kind === 'delta' && lists.length === 1 && lists[0]?.exact === true;
  const isOpen = reasons.length > 0;
  const isSealed = !isOpen && !isExactDelta;
  const lookups = store.runs.passes(run.id).filter(({ kind }) => kind === 'lookup');
  const doubtful = deltas.some(({ windows }) => windows.some(({ doubt }) => doubt !== null));
  const allRead = neededDeltas.every(({ complete }) => complete);
  // A delta of which nothing could be used shows that changes have another form, not that there are none.
  const isUsable = deltas.every(({ windows }) =>
    windows.every(({ items, rejected }) => items === 0 || rejected < items),
  );
  const deltasRead = closed && allRead && isUsable && !doubtful && inPart.items === 0;
  // No later one would tell more: then only several runs in a row, or a lookup, show that a product is gone.
  const areRefused = deltas.length > 0 && deltas.every(({ windows }) => windows.every(refusesDelta));
  const listRead = run.kind === 'full' && others.length === 0;
  const restsOn = isSealed || listRead ? [...needed, ...putOff] : deltasRead ? [...neededDeltas, ...putOff] : [];
  // Not `seen`: deltas also hold products that are gone.
  const count = list && compareCount(listed.size, list, settings);
  const absent = run.kind === 'full' && store.removals.unseen(seen).length > 0;
  const counts = store.runs.counts(run.id);
  const { twice, likely, unproven } = list?.places ?? { twice: [], likely: [], unproven: [] };
  // What a late delta shows as withdrawn may have been restored since.
  const withdrew = run.kind === 'full' && counts.removed > 0;
  return {
    assessment,
    /** Null for a delta of one response, which needs none. Valid once the run has settled, if it must. */
    proof: (isOpen ? 'open' : isSealed ? 'sealed' : null) as Proof | null,
    reasons,
    evidence: {
      requests: counts.requests,
      deltas: deltas.length,
      lookups: lookups.reduce((sum, { pass }) => sum + store.runs.checkpoints(run.id, pass).length, 0),
      seen: seen.size,
      numItems: list?.total ?? 0,
      ...(inPart.items + inPart.shown.length > 0 && { inPart }),
      ...(twice.length + likely.length > 0 && {
        twice: { products: twice.length, vbids: namesOf(store, [...twice, ...likely]) },
      }),
      lists: seamsOf(assessment),
    },
    /** A change that deltas have not shown yet could make this conclusion wrong: the run has to settle first. */
    mustSettle:
      !settling.settled &&
      !areRefused &&
      (absent ||
        withdrew ||
        untold.length > 0 ||
        // A late delta may tell that these moved.
        unproven.length > 0 ||
        restsOn.some(isMoving)),
    /** A settling delta may tell what a delta did not, because it was left in part. */
    leavesInPart: putOff.some(isMoving),
    /** Every change since `deltaFrom` has been read. */
    deltasRead,
    /** Every change before the run has been read, with the list; what its deltas show in part may have changed since. */
    listRead,
    /** Start of the run's earliest delta; milliseconds since 1970. */
    deltaFrom: Math.min(...deltas.map(({ pass }) => pass.from ?? Number.POSITIVE_INFINITY)),
    /** Of the list alone. */
    count,
    /** The run read as many products as the source's total, so products that it did not see count as missing. */
    countAgrees:
      list !== undefined &&
      count?.agrees === true &&
      lists.every(({ rejected }) => rejected === 0) &&
      list.windows.every(({ doubt }) => doubt === null),
  };
}

export type Conclusion = ReturnType<typeof conclude>;
