import { isUnreadable } from '@catchword/catalog/reasons';
import type { ListEvidence, Run } from '@catchword/catalog/run-types';
import { clockPutBack, clockPutForward, deltaFrom } from '../proof/watermark.ts';
import type { Pass, PassKind } from '../store/rows/runs.ts';
import { onFirstUse } from '../store/schema/queries.ts';
import type { Reader } from '../store/schema/reader.ts';
import { type Assessment, assessRun, clockOf, isClosed, isDelta, passClocks, repairsOf, steadyAt } from './evidence.ts';
import type { ConcludeSettings } from './open-reasons.ts';
import { compareCount } from './product-count.ts';
import type { RunSettings } from './run-settings.ts';
import { hasControl, isWholeCatalog } from './untold.ts';
import { type Conclusion, conclude, needsDelta, proofLists, type Settling, seamsOf } from './verdict.ts';

/* Settling: see docs/page-drift.md. Timers count the wait (execute-run.ts); here the source's clock shows whether it is over. */

/** Maximum waits of one run. After them it is open and concludes nothing. */
const MAX_SETTLES = 4;

/** Tolerance: `Date` counts whole seconds, and the duration of the response is subtracted from it. */
const CLOCK_STEP_MS = 2_000;
const CLOCK_SHARE = 0.1;

/** Whether the pass is a settling delta, and the source's clock advanced by the overlap since the pass before it ended. */
function hasWaited(store: Reader, passes: readonly Pass[], at: number, overlapMs: number): boolean {
  const [before, pass] = [passes[at - 1], passes[at]];
  if (before?.sourceTime == null || pass?.kind !== 'settle' || pass.sourceTime === null) return false;
  const start = store.runs.passStart(before.runId, before.pass);
  const end = store.runs.passEnd(before.runId, before.pass);
  if (start === null || end === null) return false;
  // Includes any jump of this machine's clock. Most jumps make the result too late, and then the run just waits again.
  const asked = before.sourceTime + (end - start);
  const toleranceMs = CLOCK_STEP_MS + CLOCK_SHARE * overlapMs;
  return pass.sourceTime - asked >= overlapMs - toleranceMs;
}

/**
 * Up to when everything was told, by the source's clock as it was before it was put forward: the start of the run, or of the
 * newest settling delta that was late enough. Neither counts if the clock was put back since: it was ahead. Null: none does.
 */
function toldUpTo(store: Reader, passes: readonly Pass[], overlapMs: number): number | null {
  const [first] = passes.flatMap((pass) => clockOf(store, pass));
  const told = passes.flatMap((pass, at) => {
    if (at > 0 && !hasWaited(store, passes, at, overlapMs)) return [];
    const [clocks] = clockOf(store, pass);
    const later = passes.slice(at + 1).flatMap((one) => clockOf(store, one));
    if (clocks === undefined || clockPutBack(clocks, later, overlapMs) !== null) return [];
    // The first settling delta tells what changed before the run. If later ones told it again, its windows would not join.
    const steady =
      at === 0 ? steadyAt(store, pass.runId, clocks, overlapMs) : clockPutForward([first ?? clocks], clocks, overlapMs);
    return steady ?? clocks.source;
  });
  return told.at(-1) ?? null;
}

/**
 * The time from which the next settling delta reads; milliseconds since 1970: the run's source time, less the overlap,
 * or that of the previous settling delta. Changes that the previous one could not show yet have a later time.
 */
function settlesFrom(store: Reader, run: Run, passes: readonly Pass[], overlapMs: number): number {
  const told = toldUpTo(store, passes, overlapMs) ?? passes[0]?.sourceTime ?? run.startedAt;
  const [first, ...later] = passClocks(store, run.id);
  const putBack = clockPutBack(first, later, overlapMs);
  return Math.min(deltaFrom(told, overlapMs), putBack ?? Number.POSITIVE_INFINITY);
}

interface Reading {
  readonly pass: Pass;
  /** The seams of all lists read so far; null if this step was decided without judging them, which reads every window. */
  readonly seams: readonly ListEvidence[] | null;
}

type Step =
  | (Reading & { readonly kind: 'read' })
  /** Wait for the overlap, then read. `missing`: number of products that the run has not seen so far. */
  | (Reading & { readonly kind: 'settle'; readonly missing: number })
  | { readonly kind: 'finish'; readonly conclusion: Conclusion };

export type StepSettings = ConcludeSettings & Pick<RunSettings, 'overlapMs' | 'maxPasses' | 'lookups'>;

/** `Date` counts whole seconds, and so do the change times of some services. */
export const DATE_STEP_MS = 1_000;

/** What the rules decide from. What takes long, because it reads every window, is lazy. */
function situationOf(store: Reader, run: Run, settings: StepSettings) {
  const passes = store.runs.passes(run.id);
  const last = passes.at(-1);
  if (last === undefined) throw new Error(`run ${run.id} has no pass`);
  const settled = hasWaited(store, passes, passes.length - 1, settings.overlapMs) && isClosed(store, last);
  const sinceSettle = passes.slice(passes.findLastIndex(({ kind }) => kind === 'settle') + 1);
  const settles = passes.filter(({ kind }) => kind === 'settle').length;
  // Further deltas would hold the same product.
  const isStuck = passes
    .filter(isDelta)
    .some(({ runId, pass }) => store.runs.checkpoints(runId, pass).some(({ doubt }) => isUnreadable(doubt)));
  const settlePass: NextPass = { kind: 'settle', from: settlesFrom(store, run, passes, settings.overlapMs) };
  const nextFrom = settled || isStuck || settles >= MAX_SETTLES ? null : ownFrom(settlePass, run.id, last.pass + 1);
  const settling: Settling = { settled, nextFrom };
  let assessed: Assessment | null = null;
  function assessment(): Assessment {
    assessed ??= assessRun(store, run.id);
    return assessed;
  }
  return {
    ...settings,
    store,
    run,
    passes,
    last,
    /** Whether the last delta was read late enough to show every change. */
    settled,
    settles,
    /** The settling delta that it may read next. */
    settlePass,
    settling,
    /** Whether a delta could not be read whole. */
    isStuck,
    /** Lists that were repaired since the run settled. */
    repaired: new Set(sinceSettle.flatMap(({ kind, root }) => (kind === 'repair' ? [root] : []))),
    assessment,
    /** Null if no rule has asked for the assessment. */
    seams: () => (assessed === null ? null : seamsOf(assessed)),
    conclusion: onFirstUse(() => conclude(store, run, assessment(), settling, settings)),
    /** Number of living products that a full run has not seen. */
    unseen: onFirstUse(() => (run.kind === 'full' ? store.removals.unseen(assessment().seen).length : 0)),
  };
}

type Situation = ReturnType<typeof situationOf>;
type NextPass = Partial<Pass> & Pick<Pass, 'kind' | 'from'>;
/** Runs and passes of a run whose deltas have different addresses. */
const RUNS = 100;
const PASSES = 64;

/**
 * Start of a delta, some milliseconds earlier in each pass of each run: so two of them seldom have the same address, by
 * which a cache could answer one with the other. Otherwise a run whose list comes from a cache may get the deltas of the
 * run that filled the cache, and take an old state for the present one.
 */
export function ownFrom({ kind, from }: NextPass, runId: number, pass: number): number | null {
  // The windows of a repair belong to a list that was read before.
  if (from === null || kind === 'repair') return from;
  return Math.max(0, from - (runId % RUNS) * PASSES - (pass % PASSES));
}

/** @returns the pass to read next, `finish`, or null to leave the decision to the next rule */
type Rule = (situation: Situation) => NextPass | 'finish' | null;

/** A delta that cannot be read whole proves nothing, and further ones hold the same product. Lookups may, without deltas. */
function stopAtUnreadable(situation: Situation): NextPass | 'finish' | null {
  if (!situation.isStuck) return null;
  return situation.conclusion().mustSettle ? 'finish' : (lookUpUnseen(situation) ?? 'finish');
}

/** A settling delta that was read too early, or that moved while it was read, is read again. */
function settleAgain(situation: Situation): NextPass | 'finish' | null {
  if (situation.last.kind !== 'settle' || situation.settled) return null;
  return situation.settles < MAX_SETTLES ? situation.settlePass : 'finish';
}

/** A delta follows each pass during which products may have been modified, and a delta that no settling delta tells again. */
function readDelta(situation: Situation): NextPass | 'finish' | null {
  const { store, run, passes, last, overlapMs, settling } = situation;
  if (!needsDelta(store, last, settling)) return null;
  const before = passes.slice(0, -1);
  // The source changes faster than its deltas can be read, or each of them is the whole list.
  if (last.kind === 'delta' && before.at(-1)?.kind === 'delta') return settle(situation) ?? 'finish';
  // The first of the deltas that followed the previous list, repair or lookup: changes that became visible after it was
  // read may not be in any of them. A settling delta has told what became visible before it.
  const firstDelta = before[before.findLastIndex((pass) => !isDelta(pass)) + 1] ?? passes[0];
  const settled = toldUpTo(store, passes, overlapMs) ?? Number.NEGATIVE_INFINITY;
  // Less the overlap, because a change may become visible late.
  const from = deltaFrom(Math.max(firstDelta?.sourceTime ?? run.startedAt, settled), overlapMs);
  const readUpTo = store.readUpTo();
  const isPlain = run.kind === 'full' && last.seam === 0 && !passes.some(isDelta);
  if (!isPlain || readUpTo === null) return { kind: 'delta', from };
  // A full run of plain pages proves nothing. It reads what a delta run would, so that it can still move the watermark.
  return { kind: 'delta', from: Math.min(from, deltaFrom(readUpTo, overlapMs)) };
}

/** Earlier deltas in one run. A clock that goes back with each answer would let it go on for ever. */
const MAX_EARLIER = 3;

/**
 * A delta from an earlier time, if the source's clock was put back: while the run read, or between the watermark and a
 * delta run. Changes since then may have an earlier time than the deltas asked for.
 */
function readEarlierDelta({ store, run, passes, overlapMs }: Situation): NextPass | null {
  const [first, ...later] = passClocks(store, run.id);
  const asked = (from: number, ...kinds: PassKind[]): boolean =>
    passes.some((pass) => kinds.includes(pass.kind) && pass.from !== null && pass.from <= from + DATE_STEP_MS);
  const meanwhile = clockPutBack(first, later, overlapMs);
  const froms = passes.flatMap(({ kind, from }) => (kind === 'delta' && from !== null ? [from] : []));
  const earlier = froms.filter((from, at) => at > 0 && from < Math.min(...froms.slice(0, at))).length;
  if (meanwhile !== null && earlier < MAX_EARLIER && !asked(meanwhile, 'delta', 'settle')) {
    return { kind: 'delta', from: meanwhile };
  }
  const before =
    run.kind === 'full' || first === undefined ? null : clockPutBack(store.clockSeen(), [first], overlapMs);
  return before === null || asked(before, 'delta', 'catchup') ? null : { kind: 'catchup', from: before };
}

/** A full run reads what its deltas should have told since the watermark, once. */
function readControl({ store, run, passes, overlapMs }: Situation): NextPass | null {
  const readUpTo = store.readUpTo();
  if (readUpTo === null || !hasControl(store, run) || passes.some(({ kind }) => kind === 'catchup')) return null;
  const putBack = clockPutBack(store.clockSeen(), passClocks(store, run.id), overlapMs);
  return { kind: 'catchup', from: Math.min(deltaFrom(readUpTo, overlapMs), putBack ?? Number.POSITIVE_INFINITY) };
}

/** Repairs of one list. A list that they do not join is read again, or its missing products are looked up. */
const MAX_REPAIRS = 2;

/**
 * Repairs each list once before the run settles, and once after it: only the settling delta tells what was modified
 * meanwhile, and so what joins windows.
 */
function repairGap(situation: Situation): NextPass | 'finish' | null {
  const { store, passes, assessment, settled, settling, settles, settlePass, repaired } = situation;
  // A repair would need another settling delta.
  if (settled && settles >= MAX_SETTLES) return 'finish';
  // Where every product counts as modified, nothing joins windows.
  if (passes.some((pass) => isDelta(pass) && isWholeCatalog(store, pass))) return null;
  const open = proofLists(store, assessment(), settling).filter(
    (read) => read.repairs < MAX_REPAIRS && repairsOf(read).length > 0,
  );
  const gap = open.find(({ pass }) => !repaired.has(pass.root));
  if (gap !== undefined) return { kind: 'repair', root: gap.pass.root, from: gap.pass.from };
  return open.length > 0 && settles < MAX_SETTLES ? settlePass : null;
}

/** An open full run that has not seen everything reads the list again, every second time from its end. */
function readListAgain(situation: Situation): NextPass | null {
  const { passes, maxPasses, assessment, conclusion, unseen } = situation;
  const { list, counted } = assessment();
  const readings = passes.filter(({ kind }) => kind === 'list').length;
  if (list === undefined || conclusion().proof !== 'open' || readings >= maxPasses) return null;
  if (unseen() === 0 && compareCount(counted(), list, situation).agrees) return null;
  // What cannot be read now cannot be read a moment later either, and a list whose pages come short stays so.
  if (list.windows.some(({ doubt }) => isUnreadable(doubt))) return null;
  const short = list.windows.filter(({ doubt }) => doubt?.code === 'contradiction');
  if (list.windows.length > 1 && 2 * short.length > list.windows.length) return null;
  return { kind: 'list', from: null, numItems: list.total, reversed: readings % 2 === 1 };
}

/** An open full run looks up products that it has not seen, once. */
function lookUpUnseen({ passes, lookups, conclusion, unseen }: Situation): NextPass | null {
  if (!lookups || conclusion().proof !== 'open' || unseen() === 0) return null;
  return passes.some(({ kind }) => kind === 'lookup') ? null : { kind: 'lookup', from: null };
}

function settle(situation: Situation): NextPass | null {
  const { mustSettle } = situation.conclusion();
  return mustSettle && situation.settles < MAX_SETTLES ? situation.settlePass : null;
}

/** Tried in this order. If no rule applies, the run finishes. */
const RULES: readonly Rule[] = [
  stopAtUnreadable,
  settleAgain,
  readEarlierDelta,
  readDelta,
  readControl,
  repairGap,
  // Late deltas may tell of what seems to be missing, so the run settles once before it reads the list again.
  (situation) => (situation.settles === 0 ? settle(situation) : null),
  readListAgain,
  lookUpUnseen,
  settle,
];

/**
 * Decides what a run does next, only from its state in SQLite, so that a resumed run decides the same:
 *
 * ```
 * list ─► delta ─► its delta … unless settling tells the same ─► all lists joined? ─ yes ─► settle ─► finish
 *          ▲                                                          │ no                    │
 *          ├──── windows over the gaps ◄──────────────────────────────┤ a few times   ◄───────┤ if it shows gaps
 *          ├──── the list again, from its end to its start ◄──────────┤ a few times           │
 *          └──── point lookups of unseen products ◄───────────────────┘ once                  │
 *                                                                                 settle ◄────┘ if it moved
 * ```
 * Each pass that is not a delta is followed by one, because a product that joins windows must not have been modified in
 * between.
 */
export function nextStep(store: Reader, run: Run, settings: StepSettings): Step {
  const situation = situationOf(store, run, settings);
  const { passes, last, conclusion, unseen } = situation;
  for (const rule of RULES) {
    const next = rule(situation);
    if (next === 'finish') break;
    if (next === null) continue;
    const number = last.pass + 1;
    const unread = { root: number, sourceTime: null, numItems: null, reversed: false };
    let from = ownFrom(next, run.id, number);
    while (next.kind !== 'repair' && from !== null && from > 0 && passes.some((one) => one.from === from)) from--;
    const pass = { ...last, ...unread, ...next, from, pass: number };
    if (pass.kind !== 'settle') return { kind: 'read', pass, seams: situation.seams() };
    return { kind: 'settle', pass, missing: unseen(), seams: situation.seams() };
  }
  return { kind: 'finish', conclusion: conclusion() };
}
