import { CHANGE_OPS, type ChangeOp, type Run } from '@catchword/catalog/run-types';
import type { Plans } from '@catchword/catalog/tick';
import { type MirrorState, openRun } from '../state/mirror-state.ts';
import { problemsOf, type Topic } from '../state/problems.ts';
import type { Store } from '../store/store.ts';
import { problemText } from './problem-text.ts';
import { heldRuns } from './run-report.ts';
import { seenSink } from './sink-report.ts';
import { missedRuns, otherSettingsTexts, serversOf } from './status-report.ts';

/*
 * The figures of the overview. They are read every second while a browser watches, so nothing here reads all products,
 * changes, held removals or parked events: lists are cut, and counts stop at a limit.
 */

/** Runs and sinks that are listed one by one; the rest is counted. */
const LISTED = 3;
const LISTED_SINKS = 10;
/** Removals and parked events are counted up to this; a larger number is `more than`. */
export const COUNTED = 1_000;
const DAY_MS = 86_400_000;

function heldOf(store: Store, { held }: MirrorState) {
  const listed = heldRuns(store, store.runs.held().slice(0, LISTED), COUNTED + 1);
  return { listed, more: held.length - listed.length };
}

function sinksOf(store: Store, { sinks, nowMs }: MirrorState) {
  const rows = sinks.map(({ row, isHalted }) => ({
    ...seenSink(store, row, nowMs, row),
    isHalted,
    parked: store.sinks.parkedCount(row.id, COUNTED + 1),
  }));
  const halted = rows.filter(({ isHalted }) => isHalted);
  const troubled = [...halted, ...rows.filter(({ isHalted, parked }) => !isHalted && parked > 0)];
  const others = rows.filter((sink) => !troubled.includes(sink));
  return {
    count: rows.length,
    /** Sinks that need a decision. */
    troubled: troubled.slice(0, LISTED),
    moreTroubled: Math.max(0, troubled.length - LISTED),
    listed: [...troubled, ...others].slice(0, LISTED_SINKS),
  };
}

/** The progress of a run; null until the source has said how much there is. */
function progressOf(store: Store, { id, items }: Run) {
  const [pass] = store.runs.passes(id);
  if (pass === undefined || pass.numItems === null) return null;
  // Neighbouring windows overlap, so a run reads some products twice: they count once.
  const once = Math.round(items * (1 - pass.seam / pass.perPage));
  return { items: Math.min(once, pass.numItems), total: pass.numItems };
}

/** Topics that the overview shows with a decision or a figure of its own. */
const SHOWN: ReadonlySet<Topic> = new Set(['runs', 'open', 'held', 'sink', 'pause']);

/** Collects what the overview shows. */
export function overviewOf(store: Store, state: MirrorState, plans: Plans) {
  const { nowMs, last } = state;
  const active = store.runs.unfinished() ?? null;
  const daemon = store.daemonLease.holder(nowMs) !== null;
  const others = problemsOf(state).filter(({ topic, begins }) => begins && !SHOWN.has(topic));
  const textsOf = (isOfSinks: boolean) =>
    others
      .filter(({ sink }) => (sink !== undefined) === isOfSinks)
      .map((one) => ({ topic: one.topic, ...problemText(one, state, store) }));
  const recent = store.recentRuns.days(nowMs - DAY_MS);
  const sumOf = (op: ChangeOp) => recent.reduce((sum, day) => sum + day[op], active?.[op] ?? 0);
  return {
    ...state,
    freshness: state.freshness === 'fresh' && state.failed > 0 ? ('failing' as const) : state.freshness,
    products: store.products.living(),
    active,
    progress: active && progressOf(store, active),
    /** Whether a process makes a run now. */
    working: store.keeperLease.holder(nowMs) !== null,
    openRun: openRun(state),
    last: last === undefined ? null : (store.runs.get(last.id) ?? null),
    /** Sinks that get nothing now, are behind or differ, and other problems. */
    undelivered: textsOf(true),
    others: textsOf(false),
    daemon,
    hasRelay: store.relayLease.holder(nowMs) !== null,
    settings: otherSettingsTexts(serversOf(store, nowMs)),
    plans: daemon ? plans : { ...plans, nextFull: null, nextDelta: null },
    missed: missedRuns(store, plans, nowMs),
    held: heldOf(store, state),
    sinks: sinksOf(store, state),
    /** Changes of the last 24 hours, with the changes of the run under way. */
    changes: Object.fromEntries(CHANGE_OPS.map((op) => [op, sumOf(op)])) as Record<ChangeOp, number>,
    mirrorBytes: store.sizeBytes(),
  };
}

export type Overview = ReturnType<typeof overviewOf>;
