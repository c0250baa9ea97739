import { iso } from '../base/iso-time.ts';
import { covers, type Run, type RunKind } from '../catalog/run-types.ts';
import type { MissedTicks, Plans } from '../catalog/tick.ts';
import { type MirrorState, openRun } from '../state/mirror-state.ts';
import { nameOf, problemsOf } from '../state/problems.ts';
import type { Holder } from '../store/schema/lease.ts';
import type { Store } from '../store/store.ts';
import { runJson } from './run-report.ts';
import { localIso } from './text.ts';

/** Why a run held its removals back. */
export function heldReason({ reasons }: Pick<Run, 'reasons'>): string | null {
  const start = 'held: ';
  return reasons.find((reason) => reason.startsWith(start))?.slice(start.length) ?? null;
}

/**
 * Why scheduled runs that were missed have not been made up for, as far as the mirror knows it; null if it does not.
 * @param missed the kind of run
 */
export function whyNotMade(store: Store, missed: RunKind, nowMs: number): string | null {
  const running = store.keeperLease.holder(nowMs);
  const run = store.runs.unfinished();
  if (running !== null) {
    const what = run === undefined ? 'works on the mirror' : `makes ${run.kind} run ${run.id}`;
    return `process ${running.pid} on ${running.host} ${what}`;
  }
  if (store.daemonLease.holder(nowMs) === null) return 'no daemon is running';
  const retry = store.schedule.retry();
  if (retry !== null && covers(retry.kind, missed)) return `a ${retry.kind} run failed and is tried again`;
  return run === undefined ? null : `${run.kind} run ${run.id} is unfinished and is resumed first`;
}

function localOrNull(ms: number | null, { timezone }: Plans): string | null {
  return ms === null ? null : localIso(ms, timezone);
}

function missedJson(store: Store, kind: RunKind, missed: MissedTicks | null, nowMs: number) {
  if (missed === null) return null;
  const { ticks, from, upTo } = missed;
  return { ticks, from: iso(from), up_to: iso(upTo), reason: whyNotMade(store, kind, nowMs) };
}

const holderJson = (holder: Holder | null) => holder && { pid: holder.pid, host: holder.host };

/** The state of the mirror, as `catchword status --json` and `/api/status` show it. */
export function statusOf(store: Store, state: MirrorState, plans: Plans) {
  const { nowMs, ageMs, full, restless, pause } = state;
  const [last] = store.runs.list(1);
  const daemon = holderJson(store.daemonLease.holder(nowMs));
  const { retry } = state;
  const held = store.runs.held();
  const learned = store.source.learnedRate();
  const open = openRun(state);
  return {
    mirror: store.path,
    incarnation: store.incarnation,
    bytes: store.sizeBytes(),
    products: store.products.living(),
    last_seq: store.changes.lastSeq(),
    watermark: iso(store.watermark()),
    freshness: state.freshness,
    /** 0 if the clock was put back a little; null if the age is not known. */
    age_seconds: ageMs === null ? null : Math.round(ageMs / 1000),
    /** Problems, by the topics of notifications. */
    problems: problemsOf(state).flatMap((problem) => (problem.begins ? [nameOf(problem)] : [])),
    blocked_until: iso(pause?.until ?? null),
    /** Requests a minute, learned from refusals and used without a configured limit; null before the first refusal. */
    learned_limit: learned === null ? null : Math.floor(learned.perMinute),
    /** Products a page, used because the source does not answer pages of the configured size; null if it does. */
    learned_page_size: store.source.learnedPage(nowMs)?.perPage ?? null,
    /** The process that makes a run, the daemon (or keeper), and the process that feeds the sinks. */
    running: holderJson(store.keeperLease.holder(nowMs)),
    daemon,
    relay: holderJson(store.relayLease.holder(nowMs)),
    held: held.map(({ id }) => id),
    held_runs: held.map((run) => ({
      run: run.id,
      removals: store.removals.heldCount(run.id),
      reason: heldReason(run),
    })),
    last_run: last === undefined ? null : runJson(last),
    /** The newest full run, if it could not prove that it saw every product. */
    open_run: open && { run: open.id, reasons: open.reasons, rejected: open.rejected, missing: open.missing },
    /** The source's own total in the newest full run. */
    source_total: full?.evidence?.numItems ?? null,
    restless_run:
      restless === undefined ? null : { run: restless.id, updated: restless.updated, field: restless.field },
    /** Null if no daemon is alive to start a run. */
    next_full: daemon === null ? null : iso(plans.nextFull),
    next_delta: daemon === null ? null : iso(plans.nextDelta),
    /** The same by the clock of `timezone`. */
    next_full_local: daemon === null ? null : localOrNull(plans.nextFull, plans),
    next_delta_local: daemon === null ? null : localOrNull(plans.nextDelta, plans),
    timezone: plans.timezone,
    /** Scheduled times since the newest one that was served, and why no run made up for them; null if there are none. */
    missed_full: missedJson(store, 'full', plans.missedFull, nowMs),
    missed_delta: missedJson(store, 'delta', plans.missedDelta, nowMs),
    /** When a failed run is retried, and why it failed. A restart retries at once. */
    next_try: daemon === null ? null : iso(retry?.at ?? null),
    retry_reason: retry?.reason ?? null,
  };
}
