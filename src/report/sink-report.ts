import { iso } from '../base/iso-time.ts';
import type { StoredSize } from '../relay/sink.ts';
import type { SinkConfig } from '../relay/sink-config.ts';
import { transitionAt, viewAt } from '../relay/store-contents.ts';
import { type MirrorState, type SinkState, sinkState } from '../state/mirror-state.ts';
import type { ParkedEvent, SinkRow } from '../store/rows/sink-rows.ts';
import type { Store } from '../store/store.ts';
import { heldSinkText } from './held-sink.ts';

/** A rate that was measured longer ago counts as 0. */
const RATE_MAX_AGE_MS = 30_000;

function stateOf({ sinks }: Store, row: SinkRow): string {
  const { id, configured, state, retryAt, cursor, backfillTo } = row;
  if (!configured) return 'not configured';
  if (state !== 'running') return state;
  if (retryAt !== null) return 'retrying';
  if (cursor >= backfillTo) return 'live';
  return transitionAt(sinks.views(id), row, cursor) === undefined ? 'backfill' : 'reconciling';
}

/** The state of a sink in a word, and how far it is behind. */
export function sinkLag(store: Store, { row, lagRecords, lagSeconds }: SinkState) {
  return { state: stateOf(store, row), lag_records: lagRecords, lag_seconds: lagSeconds };
}

/** The position and state of a sink. */
export function sinkSummary(store: Store, sink: SinkRow, nowMs: number) {
  const { id, name, kind, address, identity, cursor, delivered, error, backfillTo } = sink;
  const { state, lag_records, lag_seconds } = sinkLag(store, sinkState(store, sink, nowMs));
  const { where = null, fields = null } = viewAt(store.sinks.views(id), sink.generation) ?? {};
  return {
    name,
    kind,
    address,
    /** Identifies the store: a sink with another identity is filled from the beginning. */
    identity,
    state,
    /** What the store gets of each product; null: all of every product. */
    where,
    fields,
    held: heldSinkText(sink),
    view_failures: sink.viewFailures,
    view_failure: sink.viewFailure,
    cursor,
    /** The last change of an initial load, or of a reconciliation; null if neither is under way. */
    load_to: cursor < backfillTo ? backfillTo : null,
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
    const sink = sinkSummary(store, row, nowMs);
    const { name, state, held, lag_records, lag_seconds, parked, error, error_at, retry_at } = sink;
    return { name, state, held, lag_records, lag_seconds, parked, error, error_at, retry_at };
  });
  const fresh = configured.filter(({ name }) => !known.some((sink) => sink.name === name));
  const none = { lag_records: null, lag_seconds: null, parked: 0, error: null, error_at: null, retry_at: null };
  return [...known, ...fresh.map(({ name }) => ({ name, state: 'new', held: null, ...none }))];
}

/** A parked event as `sink parked --json` prints it. */
export function parkedJson({ change, at, ...event }: ParkedEvent): Record<string, unknown> {
  return { ...event, op: change.op, at: iso(at) };
}

/** Names sinks that get no changes; null if all do. A paused sink is paused on purpose, and a failing one is retried. */
export function haltedSinks({ sinks }: Pick<MirrorState, 'sinks'>): string | null {
  const halted = sinks.filter(({ isHalted }) => isHalted);
  return halted.map(({ row: { name, state } }) => `sink ${name} is ${state}`).join(', ') || null;
}
