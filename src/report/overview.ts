import type { Run, RunKind } from '../catalog/run.ts';
import type { MissedTicks, Plans } from '../catalog/tick.ts';
import { diskOf } from '../store/disk.ts';
import type { EndedRun } from '../store/recent-runs.ts';
import type { Store } from '../store/store.ts';
import { failedInARow, openInARow } from './in-a-row.ts';
import { openRun } from './run-text.ts';
import { isHalted, sinkLag } from './sink.ts';
import { completeAt, heldReason, whyNotMade } from './status.ts';

/*
 * What the overview shows. It is read every second while a browser watches, so nothing here reads all products, changes,
 * held removals or parked events: lists are cut, and counts stop at a limit.
 */

/** Runs and sinks that are listed one by one; the rest is counted. */
const LISTED = 3;
const LISTED_SINKS = 10;
/** Removals and parked events are counted up to this; a larger number is `more than`. */
export const COUNTED = 1_000;
/** Runs that are looked at for failures in a row. */
const LOOKED_AT = 20;
const DAY_MS = 86_400_000;

type Freshness = 'fresh' | 'empty' | 'failing' | 'stale' | 'clock';

function freshnessOf(store: Store, nowMs: number, maxAgeMs: number, last: EndedRun | undefined): Freshness {
  const asOf = completeAt(store);
  if (asOf === null) return 'empty';
  if (asOf - nowMs > maxAgeMs) return 'clock';
  if (nowMs - asOf > maxAgeMs) return 'stale';
  return last?.state === 'failed' ? 'failing' : 'fresh';
}

function heldOf({ recentRuns, removals }: Store) {
  const listed = recentRuns.held(LISTED).map((run) => ({
    run: run.id,
    removals: removals.heldUpTo(run.id, COUNTED + 1),
    reason: heldReason(run),
  }));
  return { listed, more: listed.length < LISTED ? 0 : recentRuns.heldCount() - listed.length };
}

function sinksOf(store: Store, nowMs: number) {
  const rows = store.sinks
    .list()
    .filter(({ configured }) => configured)
    .map((row) => ({ row, parked: store.sinks.parkedUpTo(row.id, COUNTED + 1) }));
  const halted = rows.filter(({ row }) => isHalted(row));
  const parked = rows.filter(({ row, parked: events }) => !isHalted(row) && events > 0);
  const troubled = [...halted, ...parked];
  const others = rows.filter((sink) => !troubled.includes(sink));
  const ordered = [...troubled, ...others];
  return {
    count: rows.length,
    /** Those that need a decision. */
    troubled: troubled
      .slice(0, LISTED)
      .map(({ row: { name, state, error }, parked: events }) => ({ name, state, error, parked: events })),
    moreTroubled: Math.max(0, troubled.length - LISTED),
    /** Those that need a decision come first. */
    listed: ordered
      .slice(0, LISTED_SINKS)
      .map(({ row }) => ({ name: row.name, error: row.error, ...sinkLag(store, row, nowMs) })),
  };
}

/** How far a run has read; null until the source has said how much there is. */
function progressOf(store: Store, { id, items }: Run) {
  const [pass] = store.runs.passes(id);
  if (pass === undefined || pass.numItems === null) return null;
  // Neighbouring windows overlap, so a run reads some products twice: they count once.
  const once = Math.round(items * (1 - pass.seam / pass.perPage));
  return { items: Math.min(once, pass.numItems), total: pass.numItems };
}

function missedOf(store: Store, kind: RunKind, missed: MissedTicks, nowMs: number) {
  return { kind, missed, reason: whyNotMade(store, kind, nowMs) };
}

/** What the overview shows, of one state of the mirror. @param maxAgeMs a mirror that is older is stale */
export function overviewOf(store: Store, nowMs: number, plans: Plans, maxAgeMs: number) {
  const ended = store.recentRuns.ended(null, LOOKED_AT);
  const [last] = ended;
  const active = store.runs.unfinished() ?? null;
  const daemon = store.daemonLease.holder(nowMs) !== null;
  const recent = store.recentRuns.changesSince(nowMs - DAY_MS);
  return {
    freshness: freshnessOf(store, nowMs, maxAgeMs, last),
    asOf: completeAt(store),
    products: store.products.living(),
    active,
    progress: active && progressOf(store, active),
    /** Whether a process makes a run now. */
    working: store.keeperLease.holder(nowMs) !== null,
    /** The newest full run, if it is open. */
    openRun: openRun(store),
    last: last === undefined ? null : (store.runs.get(last.id) ?? null),
    failed: failedInARow(ended),
    open: openInARow(store.recentRuns.ended('full', LOOKED_AT)),
    retry: store.schedule.retry(),
    daemon,
    plans: daemon ? plans : { ...plans, nextFull: null, nextDelta: null },
    missed: [
      ...(plans.missedFull === null ? [] : [missedOf(store, 'full', plans.missedFull, nowMs)]),
      ...(plans.missedDelta === null ? [] : [missedOf(store, 'delta', plans.missedDelta, nowMs)]),
    ],
    pausedUntil: store.source.pause(nowMs)?.until ?? null,
    held: heldOf(store),
    sinks: sinksOf(store, nowMs),
    /** Changes of the last 24 hours, those of the run under way included. */
    changes: {
      created: recent.created + (active?.created ?? 0),
      updated: recent.updated + (active?.updated ?? 0),
      removed: recent.removed + (active?.removed ?? 0),
      restored: recent.restored + (active?.restored ?? 0),
    },
    mirrorBytes: store.sizeBytes(),
    freeBytes: diskOf(store.path).free,
  };
}

export type Overview = ReturnType<typeof overviewOf>;
