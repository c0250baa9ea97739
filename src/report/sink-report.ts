import { createHash } from 'node:crypto';
import { iso } from '../base/iso-time.ts';
import { printable } from '../base/printable.ts';
import { checkText, INCOMPARABLE } from '../relay/check-text.ts';
import { unusualReason } from '../relay/settle-view.ts';
import type { StoredSize } from '../relay/sink.ts';
import { type SinkConfig, wrongText } from '../relay/sink-config.ts';
import { transitionAt, viewAt } from '../relay/store-contents.ts';
import { answerWithin } from '../relay/with-timeout.ts';
import { type MirrorState, type SinkState, sinkState } from '../state/mirror-state.ts';
import { remaining, type SinkRow } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { ViewForecast } from '../store/schema/sink-tables.ts';
import type { Store } from '../store/store.ts';
import { type Colours, count, duration, plural, table, time } from './text.ts';

/** A rate that was measured longer ago counts as 0. */
const RATE_MAX_AGE_MS = 30_000;
/** How long a store may take to report its size; milliseconds. */
const SIZE_TIMEOUT_MS = 2_000;

/** A number for what holds a sink, and what an approval lets go on: another one if delivery began again meanwhile. */
export function holdNumber({ generation, held }: Pick<SinkRow, 'generation' | 'held'>): number {
  const text = JSON.stringify([generation, held], ['why', 'run', 'removed', 'where', 'fields']);
  return createHash('sha256').update(text).digest().readUInt32BE();
}

type HeldRow = Pick<SinkRow, 'name' | 'state' | 'held' | 'generation'>;

/** The command that lets a held sink go on. It names what it approves, so that it never approves what comes next. */
export function approveCommand(sink: Omit<HeldRow, 'state'>): string {
  return `npx catchword sink approve ${sink.name} ${holdNumber(sink)}`;
}

/** How a sink that waits for a decision about a run goes on: two ways, of which the operator chooses. */
export function approvalText(sink: HeldRow): string {
  // The relay holds it in its next turn, or a view holds it: what is to be approved is not known yet.
  if (sink.state !== 'held' || sink.held?.why !== 'run') return 'How to let it go on: npx catchword sink list';
  const command = approveCommand(sink);
  return `To send its changes: ${command}. Once the source is right again, send only what still differs: ${command} --newest`;
}

export function forecastText({ has, matching, created, updated, removed, failed, absent = [] }: ViewForecast): string {
  const change = `create ${plural(created, 'product')}, update ${count(updated)} and remove ${count(removed)} of the ${count(has)} that the store has`;
  const failing = failed === 0 ? '' : `; an expression fails on ${count(failed)}`;
  return [`it would ${change}; ${count(matching)} match${failing}`, ...absent].join('; ');
}

/** Why a sink is held, for programs and for people, and what to do; null if it is not. */
export function heldSinkText({ runs }: Reader, sink: HeldRow) {
  const { name, state, held } = sink;
  if (state !== 'held' || held === null) return null;
  const number = holdNumber(sink);
  const approve = approveCommand(sink);
  if (held.why === 'run') {
    // It may have emptied more since the sink was held, if it is held for that and not for what the run takes away.
    const unusual = held.removed === undefined ? runs.get(held.run)?.unusual : null;
    const reason = unusual ? unusualReason({ run: held.run, ...unusual }) : held.reason;
    return { ...held, number, reason, advice: approvalText(sink) };
  }
  if (held.why === 'fill') {
    const { isApproved: _isNot, ...fill } = held;
    const compare = 'Look at the store: it has products that the mirror, or its view, does not have';
    return { ...fill, number, advice: `${compare}. To remove them: ${approve}` };
  }
  const variable = `CATCHWORD_SINK_${name.toUpperCase()}`;
  const advice = `Look: npx catchword sink preview ${name}. To send it: ${approve}; or put ${variable}_WHERE and _FIELDS back, and restart`;
  const { isApproved: _isNot, ...view } = held;
  return {
    ...view,
    number,
    reason: `its view ${held.forecast.has === 0 ? 'is new' : 'was changed'}: ${forecastText(held.forecast)}`,
    advice,
  };
}

function stateOf({ sinks }: Store, row: SinkRow): string {
  const { id, configured, state, retryAt, cursor, backfillTo } = row;
  if (!configured) return 'not configured';
  if (state !== 'running') return state;
  if (retryAt !== null) return 'retrying';
  if (cursor >= backfillTo) return 'live';
  return transitionAt(sinks.views(id), row) === undefined ? 'backfill' : 'reconciling';
}

export function sinkLag(store: Store, { row, lagRecords, lagSeconds }: SinkState) {
  return { state: stateOf(store, row), lag_records: lagRecords, lag_seconds: lagSeconds };
}

/** The last comparison of a store with its source, for programs and for people; null before the first. */
export function checkJson(sink: Pick<SinkRow, 'name' | 'kind' | 'checked'>) {
  const { checked: check } = sink;
  if (check === null) return null;
  const { id: _request, repair: _repairs, removesAll: _all, notJudged, at, ...rest } = check;
  return {
    at: new Date(at).toISOString(),
    ...rest,
    not_judged: notJudged,
    remaining: remaining(check),
    ...checkText(sink, check),
  };
}

/** @param configs the sinks of the settings, where they are known: a wrong setting is an error of its sink */
export function sinkSummary(store: Store, sink: SinkRow, nowMs: number, configs: readonly SinkConfig[] = []) {
  const { id, name, kind, address, identity, cursor, delivered, backfillTo } = sink;
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
    held: heldSinkText(store, sink),
    verified: checkJson(sink),
    /** Why its store can never be compared; null if it can be. */
    incomparable: INCOMPARABLE[kind] ?? null,
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
    error: sink.error ?? wrongText(configs, name),
    error_at: iso(sink.errorAt),
    retry_at: iso(sink.retryAt),
    gaps: store.sinks.gaps(id).map(({ after, upTo, at }) => ({ after, up_to: upTo, at: iso(at) })),
  };
}

export type SinkSummary = ReturnType<typeof sinkSummary>;

/** The last error of a sink, and when it happened. */
export function errorText({ error, error_at: at }: Pick<SinkSummary, 'error' | 'error_at'>): string {
  return `${printable(error ?? '')}${at === null ? '' : ` (${time(at)})`}`;
}

/** What a person should know of a sink, the most urgent first. */
function notesOf(sink: SinkSummary): string[] {
  const { name, state, held, verified, cursor, load_to: to, view_failures: failed, view_failure: last } = sink;
  const notes = held === null ? [] : [`${name} is held: ${held.reason}`, `  ${held.advice}`];
  if (state === 'reconciling') {
    notes.push(`${name} gets only what differs from what its store has: up to ${cursor} of ${to}`);
  }
  if (verified !== null && verified.advice !== '') {
    notes.push(`${name}: ${verified.found} (${verified.at})`, `  ${verified.advice}`);
  }
  if (failed > 0) notes.push(`${name}: an expression of its view failed ${failed} times, last on ${last}`);
  if (sink.error !== null) notes.push(`${name}: ${errorText(sink)}`);
  const gaps = sink.gaps.map(({ after, up_to: upTo }) => {
    return `${name}: superseded changes after ${after} up to ${upTo} were not delivered`;
  });
  return [...notes, ...gaps];
}

/** Sinks as `sink list` prints them for a person. */
export function sinkListLines(
  c: Colours,
  sinks: readonly SinkSummary[],
  fresh: readonly SinkConfig[],
  sizes: ReadonlyMap<string, StoredSize | null>,
): string[] {
  if (sinks.length + fresh.length === 0) {
    return ['no sinks: set CATCHWORD_SINK_<NAME>, such as CATCHWORD_SINK_FILE=jsonl:data/changes.jsonl'];
  }
  const head = ['name', 'kind', 'where', 'cursor', 'behind', 'for', 'state', 'rate', 'parked'];
  const rows = sinks.map((sink) => {
    const behindFor = sink.lag_seconds === null ? '–' : duration(sink.lag_seconds * 1000);
    const { name, kind, address, cursor, lag_records, state, parked } = sink;
    return [name, kind, address, cursor, lag_records, behindFor, state, `${count(Math.round(sink.rate))}/s`, parked];
  });
  const wrong = fresh.flatMap(({ name }) => wrongText(fresh, name) ?? []).map(printable);
  const freshRows = fresh.map(({ name, kind, address }) => [name, kind, address, 0, '–', '–', 'new', '–', 0]);
  const growing = [...sizes].flatMap(([name, size]) => {
    if (size === null || size.limit !== null) return [];
    return [`${name}: keeps every event (${size.text} now); to limit it, add ${size.option}`];
  });
  return [table(head, [...rows, ...freshRows]), ...[...sinks.flatMap(notesOf), ...wrong, ...growing].map(c.yellow)];
}

/** The sinks that the mirror knows, and configured ones that have not been fed yet, as `status --json` prints them. */
export function sinkStatuses(store: Store, configured: readonly SinkConfig[], nowMs: number) {
  const known = store.sinks.list().map((row) => {
    const sink = sinkSummary(store, row, nowMs, configured);
    const { name, state, held, lag_records, lag_seconds, parked, error, error_at, retry_at } = sink;
    return { name, state, held, lag_records, lag_seconds, parked, error, error_at, retry_at };
  });
  const fresh = configured.filter(({ name }) => !known.some((sink) => sink.name === name));
  const none = { lag_records: null, lag_seconds: null, parked: 0, error_at: null, retry_at: null };
  const freshOf = (name: string) => ({ name, state: 'new', held: null, error: wrongText(configured, name), ...none });
  return [...known, ...fresh.map(({ name }) => freshOf(name))];
}

/** Names sinks that get no changes; null if all do. A paused sink is paused on purpose, and a failing one is retried. */
export function haltedSinks({ sinks }: Pick<MirrorState, 'sinks'>): string | null {
  const halted = sinks.filter(({ isHalted }) => isHalted);
  return halted.map(({ row: { name, state } }) => `sink ${name} is ${state}`).join(', ') || null;
}

/** Asks stores of events how much they keep, by the names of their sinks; null for a store that does not answer. */
export async function storedSizes(configs: readonly SinkConfig[]): Promise<ReadonlyMap<string, StoredSize | null>> {
  const asked = configs.map(async (config) => {
    // Invalid settings are reported by the relay and by doctor.
    const sink = await config.make().catch(() => null);
    const size = sink?.size?.bind(sink);
    if (size === undefined) return [];
    return [[config.name, await answerWithin(SIZE_TIMEOUT_MS, size).catch(() => null)] as const];
  });
  return new Map((await Promise.all(asked)).flat());
}
