import { iso } from '../iso-time.ts';
import type { StoredSize } from '../relay/sink.ts';
import type { SinkConfig } from '../relay/sink-config.ts';
import type { ParkedEvent, SinkRow } from '../store/sinks.ts';
import type { Store } from '../store/store.ts';

/** A rate that was measured longer ago counts as 0. */
const RATE_MAX_AGE_MS = 30_000;

function stateOf({ configured, state, retryAt, cursor, backfillTo }: SinkRow): string {
  if (!configured) return 'not configured';
  if (state !== 'running') return state;
  if (retryAt !== null) return 'retrying';
  return cursor < backfillTo ? 'backfill' : 'live';
}

/** Whether a sink gets nothing until somebody decides about it. */
export function isHalted({ state }: SinkRow): boolean {
  return state === 'stopped' || state === 'disabled';
}

/** The state of a sink, and how far it is behind. */
export function sinkLag(store: Store, sink: SinkRow, nowMs: number) {
  const lag = store.changes.lastSeq() - sink.cursor;
  const waitsSince = lag > 0 ? (store.changes.timeAfter(sink.cursor) ?? null) : nowMs;
  return {
    state: stateOf(sink),
    lag_records: lag,
    /** How long the oldest change that was not delivered has been waiting. */
    lag_seconds: waitsSince === null ? null : Math.max(0, Math.round((nowMs - waitsSince) / 1000)),
  };
}

/** The position and state of a sink. */
export function sinkSummary(store: Store, sink: SinkRow, nowMs: number) {
  const { id, name, kind, address, identity, cursor, delivered, error } = sink;
  const { state, lag_records, lag_seconds } = sinkLag(store, sink, nowMs);
  return {
    name,
    kind,
    address,
    /** Identifies the store: a sink with another identity is filled from the beginning. */
    identity,
    state,
    cursor,
    lag_records,
    lag_seconds,
    delivered,
    rate: sink.ackedAt !== null && nowMs - sink.ackedAt < RATE_MAX_AGE_MS ? sink.rate : 0,
    parked: store.sinks.parkedCount(id),
    acked_at: iso(sink.ackedAt),
    error,
    error_at: iso(sink.errorAt),
    retry_at: iso(sink.retryAt),
    gaps: store.sinks.gaps(id).map(({ after, upTo, at }) => ({ after, up_to: upTo, at: iso(at) })),
  };
}

/** Sinks as `sink list --json` prints them. @param fresh configured ones that have not been fed yet */
export function sinkListJson(
  known: readonly ReturnType<typeof sinkSummary>[],
  fresh: readonly SinkConfig[],
  sizes: ReadonlyMap<string, StoredSize | null>,
): Record<string, unknown>[] {
  const knownJson = known.map((sink) => {
    const { text = null, limit = null } = sizes.get(sink.name) ?? {};
    return { ...sink, size: text, limit };
  });
  const freshJson = fresh.map(({ name, kind, address, identity }) => ({ name, kind, address, identity, state: 'new' }));
  return [...knownJson, ...freshJson];
}

/** The sinks that the mirror knows, and configured ones that have not been fed yet, as `status --json` prints them. */
export function sinkStatuses(store: Store, configured: readonly { name: string }[], nowMs: number) {
  const known = store.sinks.list().map((row) => {
    const { name, state, lag_records, lag_seconds, parked, error, error_at, retry_at } = sinkSummary(store, row, nowMs);
    return { name, state, lag_records, lag_seconds, parked, error, error_at, retry_at };
  });
  const fresh = configured.filter(({ name }) => !known.some((sink) => sink.name === name));
  const none = { lag_records: null, lag_seconds: null, parked: 0, error: null, error_at: null, retry_at: null };
  return [...known, ...fresh.map(({ name }) => ({ name, state: 'new', ...none }))];
}

/** A parked event as `sink parked --json` prints it. */
export function parkedJson({ change, at, ...event }: ParkedEvent): Record<string, unknown> {
  return { ...event, op: change.op, at: iso(at) };
}

/** Why sinks get no changes; null if all do. A paused sink is paused on purpose, and a failing one is retried. */
export function haltedSinks(store: Store): string | null {
  const halted = store.sinks.list().filter((sink) => sink.configured && isHalted(sink));
  return halted.map(({ name, state }) => `sink ${name} is ${state}`).join(', ') || null;
}
