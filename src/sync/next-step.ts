import type { Run } from '../catalog/run.ts';
import { clockPutBack, deltaFrom } from '../catalog/watermark.ts';
import type { Reader } from '../store/reader.ts';
import type { Pass, PassKind } from '../store/runs.ts';
import {
  type Assessment,
  assessRun,
  isClosed,
  isDelta,
  newestList,
  newestTotal,
  passClocks,
  type ReadList,
  repairsOf,
} from './assess-run.ts';
import { conclude, countAgrees, proofLists } from './conclude-run.ts';
import { isSettled, MAX_SETTLES, settlesFrom } from './settle.ts';

/**
 * Decides what a run does next, only from its state in SQLite, so that a resumed run decides the same:
 *
 * ```
 * list ─► delta ─► delta of the delta … until one stood still ─► all lists joined? ─ yes ─► settle ─► finish
 *          ▲                                                          │ no                    │
 *          ├──── windows over the gaps ◄──────────────────────────────┤ a few times   ◄───────┤ if it shows gaps
 *          ├──── the list again, from its end to its start ◄──────────┤ a few times           │
 *          └──── point lookups of unseen products ◄───────────────────┘ once                  │
 *                                                                                 settle ◄────┘ if it moved
 * ```
 * Every other pass is followed by a delta since the last one, because a joint must not have been modified in between.
 * Deltas may be late: before a run concludes anything from them, it waits and reads one more; see settle.ts.
 */
export type Step =
  | { readonly kind: 'read'; readonly pass: Pass }
  /** Wait for the overlap, then read. `missing`: number of products that the run has not seen so far. */
  | { readonly kind: 'settle'; readonly pass: Pass; readonly missing: number }
  | { readonly kind: 'finish'; readonly assessment: Assessment };

export interface StepSettings {
  readonly overlapMs: number;
  /** Maximum readings of the whole list. */
  readonly maxPasses: number;
  /** Whether the source has a point lookup. */
  readonly lookups: boolean;
}

/** Maximum deltas before a run settles, and again after it. A source that changes faster than that is reported. */
const MAX_DELTAS = 12;
/** Maximum repairs of one list. */
const MAX_REPAIRS = 5;
/** `Date` counts whole seconds, and so do the change times of some services. */
const DATE_STEP_MS = 1_000;

function newPass(run: Run, after: Pass, pass: Partial<Pass> & Pick<Pass, 'kind' | 'from'>): Pass {
  const number = after.pass + 1;
  return {
    runId: run.id,
    pass: number,
    root: number,
    sourceTime: null,
    numItems: null,
    perPage: after.perPage,
    seam: after.seam,
    sizeIgnored: after.sizeIgnored,
    reversed: false,
    ...pass,
  };
}

/** The time from which the delta after `after` reads. */
function sinceOf(store: Reader, run: Run, passes: readonly Pass[], after: Pass, overlapMs: number): number {
  const lastDelta = passes.findLast(isDelta);
  // The first of the deltas that followed the previous list, repair or lookup: changes that became visible after it was
  // read may not be in any of them.
  const before = passes.slice(0, -1);
  const firstDelta = before[before.findLastIndex((pass) => !isDelta(pass)) + 1];
  const told = ((after.kind === 'delta' ? lastDelta : firstDelta) ?? passes[0])?.sourceTime ?? run.startedAt;
  // Less the overlap, because a change may become visible late. A delta of a delta only needs what changed while that
  // one was read.
  const since = after.kind === 'delta' ? told - DATE_STEP_MS : deltaFrom(told, overlapMs);
  const readUpTo = store.readUpTo();
  const plainList = run.kind === 'full' && after.seam === 0 && lastDelta === undefined && readUpTo !== null;
  // A full run of plain pages proves nothing. It reads what a delta run would, so that it can still move the watermark.
  return Math.max(0, plainList ? Math.min(since, deltaFrom(readUpTo, overlapMs)) : since);
}

/**
 * A delta from an earlier time, if the source's clock was put back: while the run read, or between the watermark and a
 * delta run. Changes since then may have an earlier time than the deltas asked for.
 */
function lateDelta(
  store: Reader,
  run: Run,
  passes: readonly Pass[],
  overlapMs: number,
): Pick<Pass, 'kind' | 'from'> | null {
  const clocks = passClocks(store, run.id);
  const [first] = clocks;
  if (first === undefined) return null;
  const asked = (kinds: readonly PassKind[], from: number): boolean =>
    passes.some((pass) => kinds.includes(pass.kind) && pass.from !== null && pass.from <= from + DATE_STEP_MS);
  const meanwhile = clockPutBack(first, clocks, overlapMs);
  if (meanwhile !== null && !asked(['delta', 'settle'], meanwhile)) return { kind: 'delta', from: meanwhile };
  const seen = store.clockSeen();
  const before = run.kind === 'full' || seen === null ? null : clockPutBack(seen, [first], overlapMs);
  if (before !== null && !asked(['delta', 'catchup'], before)) return { kind: 'catchup', from: before };
  return null;
}

function repairable(assessment: Assessment, settled: boolean): ReadList | undefined {
  return proofLists(assessment, settled).find((read) => read.repairs < MAX_REPAIRS && repairsOf(read).length > 0);
}

/** Living products that a full run has not seen. */
function unseenBy(store: Reader, run: Run, { seen }: Assessment): number {
  return run.kind === 'full' ? store.removals.unseen(seen).length : 0;
}

export function nextStep(store: Reader, run: Run, settings: StepSettings): Step {
  const passes = store.runs.passes(run.id);
  const after = passes.at(-1);
  if (after === undefined) throw new Error(`run ${run.id} has no pass`);
  const sinceSettled = passes.slice(passes.findLastIndex(({ kind }) => kind === 'settle') + 1);
  const deltas = sinceSettled.filter(({ kind }) => kind === 'delta');
  const settles = passes.filter(({ kind }) => kind === 'settle').length;
  const settled = isSettled(store, passes, settings.overlapMs);
  function settle(missing: number): Step {
    const from = settlesFrom(store, run, passes, settings.overlapMs);
    return { kind: 'settle', pass: newPass(run, after as Pass, { kind: 'settle', from }), missing };
  }
  if (after.kind === 'settle' && !settled) {
    const assessment = assessRun(store, run.id);
    return settles < MAX_SETTLES ? settle(unseenBy(store, run, assessment)) : { kind: 'finish', assessment };
  }
  if (!isClosed(store, after) && deltas.length < MAX_DELTAS) {
    const from = sinceOf(store, run, passes, after, settings.overlapMs);
    return { kind: 'read', pass: newPass(run, after, { kind: 'delta', from }) };
  }
  const late = deltas.length < MAX_DELTAS ? lateDelta(store, run, passes, settings.overlapMs) : null;
  if (late !== null) return { kind: 'read', pass: newPass(run, after, late) };

  const assessment = assessRun(store, run.id);
  if (settled && settles >= MAX_SETTLES) return { kind: 'finish', assessment };
  const outrun = deltas.length >= MAX_DELTAS;
  const gap = outrun ? undefined : repairable(assessment, settled);
  if (gap !== undefined) {
    const { root, from } = gap.pass;
    return { kind: 'read', pass: newPass(run, after, { kind: 'repair', root, from }) };
  }
  const list = newestList(assessment);
  const unseen = unseenBy(store, run, assessment);
  const { proof, mustSettle } = conclude(store, run, assessment, settled);
  if (!outrun && run.kind === 'full' && list !== undefined && proof === 'open') {
    const readings = passes.filter(({ kind }) => kind === 'list').length;
    if (readings < settings.maxPasses && (unseen > 0 || !countAgrees(assessment.seen, list))) {
      const numItems = newestTotal(list.windows);
      const reversed = readings % 2 === 1;
      return { kind: 'read', pass: newPass(run, after, { kind: 'list', from: null, numItems, reversed }) };
    }
    const looked = passes.some(({ kind }) => kind === 'lookup');
    if (settings.lookups && !looked && unseen > 0) {
      return { kind: 'read', pass: newPass(run, after, { kind: 'lookup', from: null }) };
    }
  }
  return mustSettle && settles < MAX_SETTLES ? settle(unseen) : { kind: 'finish', assessment };
}
