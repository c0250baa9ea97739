import type { Run } from '@catchword/catalog/run-types';
import { type Disk, diskOf } from '../store/file/open-mirror-file.ts';
import { holdsLog, type SinkRow } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Store } from '../store/store.ts';

/*
 * How the mirror is now. `catchword status`, `/api/status`, `/readyz`, the overview, metrics, notifications and `doctor`
 * show parts of this one answer; none of them decides anything of its own.
 */

export interface StateLimits {
  /** CATCHWORD_READY_MAX_AGE, milliseconds: an older mirror is stale. */
  readonly readyMaxAgeMs: number;
  /** CATCHWORD_MIN_FREE, bytes: runs read no page while the disk has less; null: no limit. */
  readonly minFreeBytes: number | null;
  /** CATCHWORD_BEHIND_LIMIT, milliseconds: a sink that is further behind is a problem. */
  readonly behindLimitMs: number;
  /** The disk of the mirror; default: as the system reports it. */
  readonly disk?: (() => Disk) | undefined;
}

/**
 * - `empty`: no full load has completed
 * - `fresh`: complete, and not older than allowed
 * - `stale`: older than allowed, or this machine's clock is ahead
 * - `clock`: complete at a time that this machine's clock has not reached by more than the allowed age, so that the age is
 *   unknown
 */
export type Freshness = 'empty' | 'fresh' | 'stale' | 'clock';
export const FRESHNESS: readonly Freshness[] = ['empty', 'fresh', 'stale', 'clock'];

export type SinkHealth = Readonly<ReturnType<typeof sinkHealth>>;
export type MirrorState = Readonly<ReturnType<typeof stateOf>>;

/** Newest runs that are looked at. For safety: a source may be down for months. */
const RUNS = 50;
/** A night and a little: the next one may end later. */
const RESTLESS_MS = 26 * 3_600_000;

/**
 * When the mirror was last complete, milliseconds since 1970; null if it was never filled. By this machine's clock,
 * because the source's may be wrong by any amount.
 */
export function completeAt(store: Pick<Reader, 'clockSeen'>): number | null {
  return store.clockSeen()?.local ?? null;
}

/** How many of the newest elements in a row pass the test. */
function inARow<T>(newestFirst: readonly T[], test: (one: T) => boolean): number {
  const end = newestFirst.findIndex((one) => !test(one));
  return end === -1 ? newestFirst.length : end;
}

function freshnessOf(asOf: number | null, nowMs: number, maxAgeMs: number): Freshness {
  if (asOf === null) return 'empty';
  if (asOf - nowMs > maxAgeMs) return 'clock';
  return nowMs - asOf > maxAgeMs ? 'stale' : 'fresh';
}

/**
 * The unusual run that is still a problem: no usual full run has completed since, or a sink waits for its approval.
 * @returns it, with the sinks that wait, and the number of a later full run that is complete and not unusual
 */
function unusualRun({ recentRuns, runs }: Store, sinks: readonly SinkRow[]) {
  // A delta reads what changed since: it says nothing about values that were emptied before.
  const newest = recentRuns.read('full', RUNS).find(({ state }) => state === 'complete');
  const fed = sinks.filter(holdsLog);
  const found = runs.unusual(Math.min((newest?.id ?? 0) - 1, ...fed.map(({ approvedRun }) => approvedRun)));
  if (found === undefined) return undefined;
  const isOver = newest !== undefined && newest.id > found.run && runs.get(newest.id)?.unusual === null;
  return {
    ...found,
    usualSince: isOver ? newest.id : undefined,
    waiting: fed.filter(({ approvedRun }) => approvedRun < found.run),
  };
}

/** The newest change before the unusual run that is still a problem; the newest of all if there is none. */
export function approvedTo(store: Store): number {
  const unusual = unusualRun(store, store.sinks.list());
  return Math.min(store.changes.lastSeq(), (unusual?.from ?? Number.MAX_SAFE_INTEGER) - 1);
}

/** How far a sink is behind. */
export function sinkHealth(store: Store, row: SinkRow, nowMs: number) {
  const lagRecords = store.changes.lastSeq() - row.cursor;
  const since = lagRecords > 0 ? store.changes.atFrom(row.cursor + 1) : nowMs;
  return {
    row,
    /** Whether the sink gets nothing until somebody decides about it. */
    isHalted: row.state === 'stopped' || row.state === 'disabled' || row.state === 'held',
    lagRecords,
    /** How long the oldest change that was not delivered has waited, seconds; null if that is not known. */
    lagSeconds: since === null ? null : Math.max(0, Math.round((nowMs - since) / 1000)),
  };
}

/** The state of the mirror: a few small reads, the same for a mirror of any size. */
export function stateOf(store: Store, nowMs: number, limits: StateLimits) {
  const { readyMaxAgeMs: maxAgeMs, minFreeBytes, behindLimitMs, disk } = limits;
  const { recentRuns, runs, schedule, sinks, source } = store;
  const asOf = completeAt(store);
  const freshness = freshnessOf(asOf, nowMs, maxAgeMs);
  const ended = recentRuns.ended(null, RUNS);
  const fulls = recentRuns.read('full', RUNS);
  const space = disk === undefined ? diskOf(store.path) : disk();
  const known = sinks.list();
  return {
    nowMs,
    maxAgeMs,
    behindLimitMs,
    freshness,
    /** When the mirror was last complete, by this machine's clock; null if it never was. */
    asOf,
    /** 0 if the clock was put back a little; null if it is unknown, or the mirror was never complete. */
    ageMs: asOf === null || freshness === 'clock' ? null : Math.max(0, nowMs - asOf),
    /** When the first run began; null before that, or if it is not kept. */
    firstAt: runs.get(1)?.startedAt ?? null,
    /** The newest run that has ended by itself. */
    last: ended[0],
    /** How many of the newest runs in a row have failed. */
    failed: inARow(ended, ({ state }) => state === 'failed'),
    /** The failed run that is to be retried. */
    retry: schedule.retry(),
    /** The newest full run that has read everything; undefined if there is none. */
    full: fulls[0] && runs.get(fulls[0].id),
    /** How many of the newest full runs in a row were not sealed. A run that failed has no proof, and is skipped. */
    open: inARow(fulls, ({ proof }) => proof !== 'sealed'),
    /** The newest run of about a day that updated nearly every product. */
    restless: recentRuns.restless(nowMs - RESTLESS_MS),
    unusual: unusualRun(store, known),
    /** Runs whose removals wait for a decision. */
    held: recentRuns.heldIds(),
    /** Configured sinks. */
    sinks: known.flatMap((row) => (row.configured ? [sinkHealth(store, row, nowMs)] : [])),
    /** The pause that the source asked for. */
    pause: source.pause(nowMs),
    disk: space,
    /** Whether runs read no page, because the disk has less free space than CATCHWORD_MIN_FREE. */
    isDiskLow: minFreeBytes !== null && space.free < minFreeBytes,
  };
}

/** The newest full run, if it could not prove that it saw every product. */
export function openRun({ full }: Pick<MirrorState, 'full'>): Run | null {
  return full?.proof === 'open' ? full : null;
}
