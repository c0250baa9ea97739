import type { Run } from '../catalog/run.ts';
import type { Plans } from '../catalog/tick.ts';
import { iso } from '../iso-time.ts';
import type { Holder } from '../store/lease.ts';
import type { Store } from '../store/store.ts';
import { runJson } from './run.ts';

const HELD = 'held: ';

/** Why the removals of a held run were not made. */
function heldReason(run: Run): string | null {
  return run.reasons.find((reason) => reason.startsWith(HELD))?.slice(HELD.length) ?? null;
}

/**
 * When the mirror was last complete by this machine's clock, milliseconds since 1970; null where it was never filled.
 * The source's own clock may be wrong by any amount.
 */
export function completeAt(store: Store): number | null {
  const watermark = store.watermark();
  return watermark === null ? null : (store.clockSeen()?.local ?? watermark);
}

function holderJson(holder: Holder | null) {
  return holder === null ? null : { pid: holder.pid, host: holder.host };
}

/** Where the mirror stands, as `catchword status --json` prints it and `/api/status` answers it. */
export function statusOf(store: Store, nowMs: number, plans: Plans) {
  const [last] = store.runs.list(1);
  const daemon = holderJson(store.daemonLease.holder(nowMs));
  const retry = store.schedule.retry();
  const completedAt = completeAt(store);
  return {
    mirror: store.path,
    incarnation: store.incarnation,
    bytes: store.sizeBytes(),
    products: store.products.living(),
    last_seq: store.changes.lastSeq(),
    watermark: iso(store.watermark()),
    /** 0 where the clock was put back since. */
    age_seconds: completedAt === null ? null : Math.max(0, Math.round((nowMs - completedAt) / 1000)),
    blocked_until: iso(store.source.pause(nowMs)?.until ?? null),
    /** The process that is running a run, the daemon (or keeper), and the process that feeds the sinks. */
    running: holderJson(store.keeperLease.holder(nowMs)),
    daemon,
    relay: holderJson(store.relayLease.holder(nowMs)),
    held: store.runs.held().map(({ id }) => id),
    held_runs: store.runs.held().map((run) => ({
      run: run.id,
      removals: store.removals.heldCount(run.id),
      reason: heldReason(run),
    })),
    last_run: last === undefined ? null : runJson(last),
    /** Null where no daemon lives that would start a run. */
    next_full: daemon === null ? null : iso(plans.nextFull),
    next_delta: daemon === null ? null : iso(plans.nextDelta),
    /** When a run that failed is tried again, and why it failed. A restart tries at once. */
    next_try: daemon === null ? null : iso(retry?.at ?? null),
    retry_reason: retry?.reason ?? null,
  };
}
