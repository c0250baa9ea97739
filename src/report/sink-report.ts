import { createHash } from 'node:crypto';
import type { StoredSize } from '@catchword/sink-kit/sink';
import { withTimeout } from '@catchword/sink-kit/with-timeout';
import { checkText } from '../relay/check-text.ts';
import { unusualReason } from '../relay/settle-view.ts';
import { type SinkConfig, wrongText } from '../relay/sink-config.ts';
import { type MirrorState, type SinkHealth, sinkHealth } from '../state/mirror-state.ts';
import { legOf } from '../store/rows/sink-legs.ts';
import { remaining, type SinkRow } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { ViewForecast } from '../store/schema/sink-tables.ts';
import type { Store } from '../store/store.ts';
import { count, plural } from './text.ts';

/** Of a sink that was not fed yet. */
const NO_LAG = { lagRecords: null, lagSeconds: null };
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

/** The states of sinks, as people and programs see them. */
export type SinkWord =
  | Exclude<SinkRow['state'], 'running'>
  | ('new' | 'not configured' | 'retrying' | 'live' | 'backfill' | 'reconciling');

function stateOf(row: SinkRow): SinkWord {
  const { configured, state, retryAt, cursor } = row;
  if (!configured) return 'not configured';
  if (state !== 'running') return state;
  if (retryAt !== null) return 'retrying';
  const { what, to } = legOf(row);
  if (cursor >= to) return 'live';
  return what === 'difference' ? 'reconciling' : 'backfill';
}

export function sinkLag({ row, lagRecords, lagSeconds }: SinkHealth) {
  return { state: stateOf(row), lag_records: lagRecords, lag_seconds: lagSeconds };
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

/** A sink as it is shown. */
export interface SinkSeen extends Pick<SinkConfig, 'name' | 'kind' | 'address' | 'identity'> {
  readonly store: Store;
  readonly nowMs: number;
  /** Undefined: it was not fed yet. */
  readonly row: SinkRow | undefined;
  readonly state: SinkWord;
  readonly lagRecords: number | null;
  readonly lagSeconds: number | null;
  readonly held: ReturnType<typeof heldSinkText>;
  /** What the store gets of each product; null: all of every product. */
  readonly view: { readonly where: string | null; readonly fields: string | null };
  /** The last error of its store or of its settings. */
  readonly error: string | null;
  /** Of a store of events; null: not known. */
  readonly size: StoredSize | null;
}

/**
 * Looks at a sink.
 * @param row undefined: it was not fed yet
 * @param configs the sinks of the settings, where they are known: a wrong setting is an error of its sink
 */
export function seenSink(
  store: Store,
  row: SinkRow | undefined,
  nowMs: number,
  { name, kind, address, identity }: Pick<SinkConfig, 'name' | 'kind' | 'address' | 'identity'>,
  configs: readonly SinkConfig[] = [],
  size: StoredSize | null = null,
): SinkSeen {
  const { lagRecords, lagSeconds } = row === undefined ? NO_LAG : sinkHealth(store, row, nowMs);
  const { where = null, fields = null } = (row && legOf(row)) ?? {};
  return {
    store,
    nowMs,
    row,
    name,
    kind,
    address,
    identity,
    lagRecords,
    lagSeconds,
    size,
    state: row === undefined ? ('new' as const) : stateOf(row),
    view: { where, fields },
    held: row === undefined ? null : heldSinkText(store, row),
    error: row?.error ?? wrongText(configs, name),
  };
}

/** The sinks that the mirror knows, and configured ones that have not been fed yet. @param sizes of their stores, by name */
export function seenSinks(
  store: Store,
  nowMs: number,
  configs: readonly SinkConfig[] = [],
  sizes: ReadonlyMap<string, StoredSize | null> = new Map(),
): SinkSeen[] {
  const known = store.sinks.list();
  const fresh = configs.filter(({ name }) => !known.some((row) => row.name === name));
  return [
    ...known.map((row) => seenSink(store, row, nowMs, row, configs, sizes.get(row.name))),
    ...fresh.map((config) => seenSink(store, undefined, nowMs, config, configs)),
  ];
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
    return [[config.name, await withTimeout(SIZE_TIMEOUT_MS, size).catch(() => null)] as const];
  });
  return new Map((await Promise.all(asked)).flat());
}
