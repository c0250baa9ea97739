import type { Reason } from '@catchword/catalog/reasons';
import type { ListEvidence, Proof, Run } from '@catchword/catalog/run-types';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import { type Assessment, isClosed, isRetold, type ReadList } from './evidence.ts';
import { refusesDelta } from './failed-window.ts';
import { type ConcludeSettings, namesOf, reasonsOf, untoldIn } from './open-reasons.ts';
import { compareCount } from './product-count.ts';
import { isWholeCatalog } from './untold.ts';

export interface Settling {
  /** Whether the run's last delta was read late enough to show every change. */
  readonly settled: boolean;
  /** Start of the settling delta that the run can still read; milliseconds since 1970, null if it reads none. */
  readonly nextFrom: number | null;
}

/** Whether the next settling delta tells what this delta told, so that this one need not be whole. */
export function isToldAgain(store: Reader, pass: Pass, { nextFrom }: Settling): boolean {
  return pass.kind === 'delta' && !isWholeCatalog(store, pass) && isRetold(pass, [{ pass: { from: nextFrom } }]);
}

/** Whether a delta must follow this pass: what it read may have changed meanwhile, and no settling delta tells it again. */
export function needsDelta(store: Reader, pass: Pass, settling: Settling): boolean {
  return !isClosed(store, pass) && !isToldAgain(store, pass, settling);
}

/** The newest reading of the whole list, and each delta unless a later one tells of all its changes, and of later ones. */
export function proofLists(store: Reader, { newest, list }: Assessment, settling: Settling): ReadList[] {
  return newest.filter((read) =>
    read.pass.kind === 'list' ? read === list : !isToldAgain(store, read.pass, settling),
  );
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
  const { lists, list, seen, listed, last } = assessment;
  const inPart = store.runs.inPart(run.id);
  const untold = untoldIn(store, run, assessment, settings);
  const needed = proofLists(store, assessment, settling);
  const putOff = lists.filter(({ pass }) => isToldAgain(store, pass, settling));
  const closed = last !== undefined && !needsDelta(store, last, settling);
  const others = [...reasonsOf(store, assessment, needed, closed, settings), ...untold];
  const partial: Reason[] = inPart.items === 0 ? [] : [{ code: 'partial', leftOut: inPart.leftOut }];
  const reasons: readonly Reason[] = [...others, ...partial];
  const neededDeltas = needed.filter(({ pass }) => pass.kind !== 'list');
  const deltas = lists.filter(({ pass }) => pass.kind !== 'list');
  const isExactDelta = run.kind === 'delta' && lists.length === 1 && lists[0]?.exact === true;
  const proof: Proof | null = reasons.length > 0 ? 'open' : isExactDelta ? null : 'sealed';
  const lookups = store.runs.passes(run.id).filter(({ kind }) => kind === 'lookup');
  const answers = deltas.flatMap(({ windows }) => windows);
  // A delta of which nothing could be used shows that changes have another form, not that there are none.
  const areUsable = answers.every(({ doubt, items, rejected }) => doubt === null && (items === 0 || rejected < items));
  const deltasRead = closed && areUsable && inPart.items === 0 && neededDeltas.every(({ complete }) => complete);
  // No later one would tell more: then only several runs in a row, or a lookup, show that a product is gone.
  const areRefused = answers.length > 0 && answers.every(refusesDelta);
  const listRead = run.kind === 'full' && others.length === 0;
  const restsOn = listRead ? [...needed, ...putOff] : deltasRead ? [...neededDeltas, ...putOff] : [];
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
    proof,
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
