import type { Run } from '../catalog/run.ts';
import { iso, runJson } from '../catalog/run-json.ts';
import type { Holder } from './lease.ts';
import type { Store } from './store.ts';

/** What is to come, milliseconds since 1970; null or absent where nothing is planned or it is not known. */
interface Plans {
  readonly nextFull?: number | null;
  readonly nextDelta?: number | null;
  /** When a run that could not reach the source is tried again. */
  readonly retry?: number | null;
}

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
export function statusOf(store: Store, nowMs: number, { nextFull, nextDelta, retry }: Plans = {}) {
  const [last] = store.runs.list(1);
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
    running: holderJson(store.lease.holder(nowMs)),
    daemon: holderJson(store.daemonLease.holder(nowMs)),
    relay: holderJson(store.relayLease.holder(nowMs)),
    held: store.runs.held().map(({ id }) => id),
    held_runs: store.runs.held().map((run) => ({
      run: run.id,
      removals: store.removals.heldCount(run.id),
      reason: heldReason(run),
    })),
    last_run: last === undefined ? null : runJson(last),
    next_full: iso(nextFull ?? null),
    next_delta: iso(nextDelta ?? null),
    next_try: iso(retry ?? null),
  };
}
