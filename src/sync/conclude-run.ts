import type { IdSet } from '../catalog/id-set.ts';
import type { Evidence, ListEvidence, Run } from '../catalog/run.ts';
import { FROM_CACHE } from '../catalog/watermark.ts';
import type { Reader } from '../store/reader.ts';
import { type Assessment, newestList, newestTotal, type ReadList, stoodStill } from './assess-run.ts';

export interface Conclusion {
  /** Null for a delta of one response, which needs none. Valid once the run has settled, if it must. */
  readonly proof: 'sealed' | 'open' | null;
  /** Why it is open. */
  readonly reasons: readonly string[];
  readonly evidence: Evidence;
  /** Every change since `deltaFrom` has been read. */
  readonly deltasRead: boolean;
  /** Start of the run's earliest delta; milliseconds since 1970. */
  readonly deltaFrom: number;
  /** The run read as many products as the source's total, so products that it did not see count as missing. */
  readonly countAgrees: boolean;
  /** A change that deltas have not shown yet could make this conclusion wrong: the run has to settle first. */
  readonly mustSettle: boolean;
}

function plainReason({ pass }: ReadList): string {
  if (!pass.sizeIgnored)
    return 'CATCHWORD_SEAM is off: plain pages do not overlap, and a product may slip between them';
  return `the source answers ${pass.perPage} products a page whatever it is asked for, so pages cannot overlap (try CATCHWORD_PER_PAGE=${pass.perPage})`;
}

/**
 * The lists that the proof is based on: the newest reading of the whole list, and the deltas. Once the run has settled,
 * earlier deltas do not count, because the settling deltas show the same changes again.
 */
export function proofLists(assessment: Assessment, settled: boolean): ReadList[] {
  const list = newestList(assessment);
  return assessment.lists.filter((read) => {
    if (read.pass.kind === 'list') return read === list;
    return !settled || read.pass.kind !== 'delta' || read.pass.pass === 0;
  });
}

function reasonsOf(run: Run, assessment: Assessment, settled: boolean): string[] {
  const { lists, closed } = assessment;
  const reasons = new Set<string>();
  const list = newestList(assessment);
  for (const read of proofLists(assessment, settled)) {
    if (read.exact) continue;
    const what = read.pass.kind === 'list' ? '' : ' of a delta';
    if (read.seams === null) reasons.add(plainReason(read));
    else if (read.seams.disorder > 0) reasons.add(`the source lists products in no stable order${what}`);
    else if (!read.seams.sealed) {
      const open = read.seams.gaps.length;
      reasons.add(
        `${open} of ${read.seams.states.length + 1} seams${what} did not close: the list moved faster than it was read`,
      );
    }
  }
  if (!closed) reasons.add('the source changed faster than its deltas could be read');
  const doubts = lists.flatMap(({ windows }) => windows).flatMap(({ doubt }) => doubt ?? []);
  const fromCache = doubts.find((doubt) => doubt.startsWith(FROM_CACHE));
  const contradiction = doubts.find((doubt) => !doubt.startsWith(FROM_CACHE));
  if (fromCache !== undefined) reasons.add(fromCache);
  if (contradiction !== undefined) reasons.add(`the source contradicts itself: ${contradiction}`);
  if (run.kind === 'full' && list !== undefined) {
    const total = newestTotal(list.windows);
    if (!countAgrees(assessment.seen, list)) {
      reasons.add(`the source says that it has ${total} products, and ${assessment.seen.size} were read`);
    }
    if (rejectedOf(list) > 0) reasons.add('items were rejected, and each may be a product that was not seen');
  }
  return [...reasons];
}

function rejectedOf({ windows }: ReadList): number {
  return windows.reduce((sum, window) => sum + window.rejected, 0);
}

/** Whether as many products were read as the source's total. @param seen the products that count as read */
export function countAgrees(seen: IdSet, list: ReadList): boolean {
  return seen.size + rejectedOf(list) + (list.seams?.repeated ?? 0) >= newestTotal(list.windows);
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

/** Whether a joint of these lists could be a modified product, if a delta shows the change late. */
function restsOnJoints(store: Reader, lists: readonly ReadList[]): boolean {
  return lists.some((read) => !read.exact && !stoodStill(store, read.pass));
}

/**
 * Concludes what a run has proven, from everything that it has read.
 * @param settled whether its last delta was read late enough to show every change
 */
export function conclude(store: Reader, run: Run, assessment: Assessment, settled: boolean): Conclusion {
  const { lists, closed } = assessment;
  const reasons = reasonsOf(run, assessment, settled);
  const list = newestList(assessment);
  const deltas = lists.filter(({ pass }) => pass.kind !== 'list');
  const exactDelta = run.kind === 'delta' && lists.length === 1 && lists[0]?.exact === true;
  const proof = exactDelta && reasons.length === 0 ? null : reasons.length === 0 ? 'sealed' : 'open';
  const lookups = store.runs.passes(run.id).filter(({ kind }) => kind === 'lookup');
  const evidence: Evidence = {
    requests: store.runs.counts(run.id).requests,
    deltas: deltas.length,
    lookups: lookups.reduce((sum, { pass }) => sum + store.runs.checkpoints(run.id, pass).length, 0),
    seen: assessment.seen.size,
    numItems: list === undefined ? 0 : newestTotal(list.windows),
    lists: lists.filter((read) => read.pass.kind === 'list' || !read.exact).map(evidenceOf),
  };
  const doubtful = deltas.some(({ windows }) => windows.some(({ doubt }) => doubt !== null));
  const allRead = deltas.every(({ complete }) => complete);
  const deltasRead = closed && allRead && !doubtful;
  const restsOn = proof === 'sealed' ? proofLists(assessment, settled) : deltasRead ? deltas : [];
  const absent = run.kind === 'full' && store.removals.unseen(assessment.seen).length > 0;
  return {
    proof,
    reasons,
    evidence,
    mustSettle: !settled && (absent || restsOnJoints(store, restsOn)),
    deltasRead,
    deltaFrom: deltas.reduce((least, { pass }) => Math.min(least, pass.from ?? least), Number.POSITIVE_INFINITY),
    countAgrees:
      list !== undefined &&
      // Not `seen`: deltas also hold products that are gone.
      countAgrees(assessment.listed, list) &&
      rejectedOf(list) === 0 &&
      list.windows.every(({ doubt }) => doubt === null),
  };
}
