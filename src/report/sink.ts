import { iso } from '../iso-time.ts';
import type { SinkRow } from '../store/sinks.ts';
import type { Store } from '../store/store.ts';

/** A rate that was measured longer ago says nothing of now. */
const RATE_IS_OLD_MS = 30_000;

function stateOf({ configured, state, retryAt, cursor, backfillTo }: SinkRow): string {
  if (!configured) return 'not configured';
  if (state !== 'running') return state;
  if (retryAt !== null) return 'retrying';
  return cursor < backfillTo ? 'backfill' : 'live';
}

/** How a sink stands, for people and programs. */
export function sinkSummary(store: Store, sink: SinkRow, nowMs: number) {
  const { id, name, kind, address, identity, cursor, delivered, error } = sink;
  const lag = store.changes.lastSeq() - cursor;
  const [oldest] = lag > 0 ? store.changes.after(cursor, 1) : [];
  return {
    name,
    kind,
    address,
    /** What tells one store from another: a sink with another one is filled from the beginning. */
    identity,
    state: stateOf(sink),
    cursor,
    lag_records: lag,
    /** How long the oldest change that it was not told of has been waiting. */
    lag_seconds: oldest === undefined ? (lag > 0 ? null : 0) : Math.max(0, Math.round((nowMs - oldest.at) / 1000)),
    delivered,
    rate: sink.ackedAt !== null && nowMs - sink.ackedAt < RATE_IS_OLD_MS ? sink.rate : 0,
    parked: store.sinks.parkedCount(id),
    acked_at: iso(sink.ackedAt),
    error,
    error_at: iso(sink.errorAt),
    retry_at: iso(sink.retryAt),
    gaps: store.sinks.gaps(id).map(({ after, upTo, at }) => ({ after, up_to: upTo, at: iso(at) })),
  };
}

/** Why a sink is not fed; null where all are. One that is paused is so by intention, one that fails is tried again. */
export function haltedSinks(store: Store): string | null {
  const halted = store.sinks
    .list()
    .filter(({ configured, state }) => configured && (state === 'stopped' || state === 'disabled'));
  return halted.length === 0 ? null : halted.map(({ name, state }) => `sink ${name} is ${state}`).join(', ');
}
