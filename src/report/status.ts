import type { Run } from '../catalog/run.ts';
import type { Plans } from '../catalog/tick.ts';
import { iso } from '../iso-time.ts';
import type { Holder } from '../store/lease.ts';
import type { Store } from '../store/store.ts';
import { runJson } from './run.ts';

/** Why a run held its removals back. */
export function heldReason({ reasons }: Pick<Run, 'reasons'>): string | null {
  const start = 'held: ';
  return reasons.find((reason) => reason.startsWith(start))?.slice(start.length) ?? null;
}

/**
 * When the mirror was last complete, milliseconds since 1970; null if it was never filled. By this machine's clock,
 * because the source's may be wrong by any amount.
 */
export function completeAt(store: Store): number | null {
  const watermark = store.watermark();
  return watermark === null ? null : (store.clockSeen()?.local ?? watermark);
}

const holderJson = (holder: Holder | null) => holder && { pid: holder.pid, host: holder.host };

/** The state of the mirror, as `catchword status --json` and `/api/status` show it. */
export function statusOf(store: Store, nowMs: number, plans: Plans) {
  const [last] = store.runs.list(1);
  const daemon = holderJson(store.daemonLease.holder(nowMs));
  const retry = store.schedule.retry();
  const completedAt = completeAt(store);
  const held = store.runs.held();
  return {
    mirror: store.path,
    incarnation: store.incarnation,
    bytes: store.sizeBytes(),
    products: store.products.living(),
    last_seq: store.changes.lastSeq(),
    watermark: iso(store.watermark()),
    /** 0 if the clock was set back since. */
    age_seconds: completedAt === null ? null : Math.max(0, Math.round((nowMs - completedAt) / 1000)),
    blocked_until: iso(store.source.pause(nowMs)?.until ?? null),
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
    /** Null if no daemon is alive to start a run. */
    next_full: daemon === null ? null : iso(plans.nextFull),
    next_delta: daemon === null ? null : iso(plans.nextDelta),
    /** When a failed run is retried, and why it failed. A restart retries at once. */
    next_try: daemon === null ? null : iso(retry?.at ?? null),
    retry_reason: retry?.reason ?? null,
  };
}
