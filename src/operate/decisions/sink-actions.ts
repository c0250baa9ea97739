import { randomUUID } from 'node:crypto';
import { CatchwordError, usageError } from '@catchword/base/errors';
import type { SinkSetting } from '@catchword/settings/config';
import { KINDS } from '../../relay/kinds/kinds.ts';
import { sinkConfig } from '../../relay/sink-config.ts';
import { approveCommand, heldSinkText, holdNumber } from '../../report/sink-report.ts';
import { count, plural } from '../../report/text.ts';
import { createHistory } from '../../store/history/history.ts';
import { isFed, type SinkRow } from '../../store/rows/sink-rows.ts';
import { needsFullRun } from '../../store/rows/source-state.ts';
import type { Reader } from '../../store/schema/reader.ts';
import type { CheckRequest } from '../../store/schema/sink-tables.ts';
import type { RequestWriter } from '../../store/schema/writers.ts';
import type { SinkAction } from './decision-types.ts';

/*
 * What an operator changes about a sink. Each function runs in a write transaction of its caller, and throws
 * CatchwordError USAGE if the change is not possible.
 */

/** @throws CatchwordError NOT_FOUND */
export function requireSink({ sinks }: Reader, name: string): SinkRow {
  const sink = sinks.get(name);
  if (sink !== undefined) return sink;
  const names = sinks.list().map((one) => one.name);
  const known = names.length > 0 ? `Choose one of: ${names.join(', ')}. ` : '';
  const hint = `${known}To add one, set CATCHWORD_SINK_<NAME> and restart the daemon (or relay).`;
  throw new CatchwordError('NOT_FOUND', `the mirror has no sink ${name}`, { hint });
}

/**
 * Lets a held sink go on.
 * @param newest after an unusual run: sends what differs now, each product once
 * @param by what held it when the person decided, as `holdNumber` says; null: not known, which is enough for the first
 *   approval. A later one may be the same command, entered twice.
 */
function release(store: RequestWriter, sink: SinkRow, newest: boolean, by: number | null): string {
  const { sinks } = store;
  const { id, name, state, held, approvedRemovals } = sink;
  const shown = heldSinkText(store, sink);
  if (held === null || shown === null) throw new CatchwordError('USAGE', `${name} is not held: it is ${state}`);
  if (by !== null && by !== holdNumber(sink)) {
    throw usageError(`${name} is held for another reason by now: ${shown.reason}`, shown.advice);
  }
  if (by === null && approvedRemovals.length > 0) {
    const hint = `Name what you approve. ${shown.advice}`;
    throw usageError(`${name} was approved before, and is held again: ${shown.reason}`, hint);
  }
  if (held.why !== 'run') {
    const hint = `To let it go on: ${approveCommand(sink)}.`;
    if (newest)
      throw usageError(`--newest is for a sink that a run holds, and ${name} is held for another reason`, hint);
    sinks.approveHeld(id);
    return held.why === 'view'
      ? `${name} gets what its changed view changes`
      : `${plural(held.removed, 'product')} that the fill of ${name} did not deliver may be removed`;
  }
  if (newest) sinks.sendNewest(sink);
  if (held.removed === undefined || newest) sinks.approveRuns(id);
  else sinks.approveRemovals(sink, { run: held.run, removed: held.removed });
  const what = newest ? 'each product that differs now, once' : `the changes of run ${held.run}, and what follows`;
  return `${name} gets ${what}`;
}

/** Redelivers from a change on, or every product as it is now (0), and then what follows. */
function replay({ sinks, changes }: RequestWriter, sink: SinkRow, from: number): string {
  const { name, state, cursor, legs } = sink;
  if (from > cursor + 1) {
    const hint = 'Replay from a change that was delivered already; later ones follow anyway.';
    throw usageError(`--from: ${name} has not had ${from} yet: it is at ${cursor}`, hint);
  }
  const later = `Use a later one, or: npx catchword sink replay ${name} --from beginning.`;
  const pruned = changes.prunedTo();
  if (from > 0 && from <= pruned) {
    throw usageError(`--from: up to ${pruned}, the log no longer has every change`, later);
  }
  const hasView = legs.some(({ tag, what }) => tag !== null || what === 'difference');
  const filledTo = Math.max(0, ...legs.map(({ to }) => to));
  // Other events brought the store to its view: a later replay would not send these again.
  if (from > 0 && hasView && from <= filledTo) {
    throw usageError(`--from: ${name} got its view at ${filledTo}`, later);
  }
  sinks.replay(sink, from === 0 ? null : from - 1);
  const all = `every product as of change ${count(changes.lastSeq())}, and then what follows`;
  const waits = state === 'running' ? '' : `; this waits until it is resumed, because it is ${state}`;
  return `${name} gets ${from === 0 ? all : `every change from ${count(from)} on`}${waits}`;
}

/** Skips an event that the sink refused: one that is parked, or the one that stopped it. */
function skipEvent(store: RequestWriter, { id, name, stoppedAt }: SinkRow, seq: number, at: number): void {
  const { sinks } = store;
  if (sinks.stateOf(id, seq) === 'refused') {
    sinks.skip(id, seq, at);
    return;
  }
  const [change] = createHistory(store).after(seq - 1, 1);
  if (stoppedAt !== seq || change?.seq !== seq) {
    const hint = `See: npx catchword sink parked ${name}, and npx catchword sink list.`;
    throw usageError(`${name} has not refused event ${seq}`, hint);
  }
  sinks.skipUnparked(id, { seq, at, change });
  sinks.setState(id, 'running');
}

/** @param seq the event; null: every one that the sink refused */
function skip(store: RequestWriter, sink: SinkRow, seq: number | null, nowMs: number): string {
  const { id, name, stoppedAt } = sink;
  // All at once: one after the other, ten thousand would take half a minute.
  const parked = seq === null ? store.sinks.skipAll(id, nowMs) : 0;
  const single = seq ?? stoppedAt;
  if (single !== null) skipEvent(store, sink, single, nowMs);
  const skipped = parked + (single === null ? 0 : 1);
  if (skipped === 0) return `${name} has not refused any event`;
  const { state } = requireSink(store, name);
  const delivered = state === 'running' ? 'are delivered now' : `wait, because ${name} is ${state}`;
  return `${plural(skipped, 'event')} skipped; later ones of the same products ${delivered}`;
}

/** Whether a request, or its result, does all that another one asks for. */
export function covers(one: CheckRequest, { deep, repair, removesAll }: Omit<CheckRequest, 'id'>): boolean {
  return one.deep >= deep && one.repair >= repair && one.removesAll >= removesAll;
}

/** Asks the relay to compare the store with its source; a relay does so between two deliveries. */
function askCheck(
  store: RequestWriter,
  { id, name, kind, state, checkAsked: asked }: SinkRow,
  action: Extract<SinkAction, `verify${string}` | `repair${string}`>,
): string {
  const impossible = (why: string, hint: string) => usageError(`${name} cannot be compared: ${why}`, hint);
  const incomparable = KINDS[kind]?.incomparable;
  if (incomparable !== undefined) throw impossible(incomparable, 'See docs/verify.md.');
  if (state !== 'running') throw impossible(`it is ${state}`, 'Let it go on first, see: npx catchword sink list.');
  if (needsFullRun(store)) throw impossible('the mirror is not complete', 'Complete it first: npx catchword sync.');
  const removesAll = action === 'repair-all';
  const repair = action.startsWith('repair');
  const deep = removesAll || action.endsWith('-deep');
  // What somebody else has asked for, which may be under way, is done as well: neither loses its result, or its repair.
  const isAsked = asked !== null && covers(asked, { deep, repair, removesAll });
  const all = {
    deep: deep || asked?.deep === true,
    repair: repair || asked?.repair === true,
    removesAll: removesAll || asked?.removesAll === true,
  };
  if (!isAsked) store.sinks.askCheck(id, { id: randomUUID(), ...all });
  return `the relay compares ${name} with its source${repair ? ', and repairs it' : ''}`;
}

/**
 * Carries out a decision about a sink.
 * @param argument of `replay`: the change to start from, 0 for all current products; of `skip`: the event; of `release`: as
 *   `holdNumber`, or null; else null
 * @returns what was done, one sentence
 * @throws CatchwordError NOT_FOUND, USAGE
 */
export function changeSink(
  store: RequestWriter,
  action: SinkAction,
  name: string,
  argument: number | null,
  nowMs: number,
): string {
  const { sinks } = store;
  const sink = requireSink(store, name);
  const { id, state, cursor } = sink;
  if (state === 'held' && ['resume', 'retry', 'skip', 'skip-all'].includes(action)) {
    const hint = `See why: npx catchword sink list. To let it go on: ${approveCommand(sink)}.`;
    throw usageError(`${name} is held`, hint);
  }
  switch (action) {
    case 'pause':
      if (state !== 'running') throw new CatchwordError('USAGE', `${name} is not running: it is ${state}`);
      sinks.setState(id, 'paused');
      return `${name} is paused`;
    case 'resume':
      sinks.setState(id, 'running');
      return `${name} resumes after change ${count(cursor)}`;
    case 'retry': {
      const freed = sinks.retry(id);
      sinks.setState(id, 'running');
      return freed === 0 ? `${name} is resumed; nothing is parked` : `${name} gets ${plural(freed, 'event')} again`;
    }
    case 'replay':
      return replay(store, sink, argument ?? 0);
    case 'skip':
      return skip(store, sink, argument ?? 0, nowMs);
    case 'skip-all':
      return skip(store, sink, null, nowMs);
    case 'release':
    case 'release-newest':
      return release(store, sink, action === 'release-newest', argument);
    case 'verify':
    case 'verify-deep':
    case 'repair':
    case 'repair-deep':
    case 'repair-all':
      return askCheck(store, sink, action);
  }
}

/** What feeds sinks. A relay reads its settings only when it starts, so it feeds a sink under the name that it knows. */
interface Feeding {
  readonly settings: readonly SinkSetting[];
  readonly isRelayRunning: boolean;
}

function requireUnfed({ name, configured }: SinkRow, { isRelayRunning }: Feeding, hint: string): void {
  if (configured && isRelayRunning) throw usageError(`a running daemon (or relay) still feeds ${name}`, hint);
}

/** Gives a sink another name, with its position, parked events and gaps. No running relay may feed either name. */
export function renameSink({ sinks }: RequestWriter, sink: SinkRow, to: string, feeding: Feeding): void {
  if (!/^[a-z0-9][a-z0-9_]*$/.test(to)) {
    const hint = 'Use what follows CATCHWORD_SINK_ in its variable, in lower case: letters, digits and underscores.';
    throw usageError(`${to} cannot be the name of a sink`, hint);
  }
  const replaced = sinks.get(to);
  for (const one of [sink, ...(replaced === undefined ? [] : [replaced])]) {
    requireUnfed(one, feeding, 'Stop it first. Start it again when the settings have the new name.');
  }
  if (replaced !== undefined && (isFed(replaced) || sinks.parkedCount(replaced.id) > 0)) {
    throw usageError(
      `${to} is in use: it has a position of its own`,
      `To keep that one, rename it first: npx catchword sink rename ${to} OTHER.`,
    );
  }
  const setting = feeding.settings.find(({ name }) => name === to);
  // The relay would take the name from this store again, and leave its parked events behind.
  if (setting !== undefined && sinkConfig(setting).identity !== sink.identity) {
    throw usageError(
      `${setting.env} is the address of another store than ${sink.address}`,
      'Parked events are only delivered to the store that refused them. Rename before you change the address.',
    );
  }
  if (replaced !== undefined) sinks.forget(replaced.id);
  sinks.rename(sink.id, to);
}

/** Removes a sink whose setting was removed, and that no running relay feeds. */
export function forgetSink({ sinks }: RequestWriter, sink: SinkRow, feeding: Feeding): void {
  const { id, name } = sink;
  const setting = feeding.settings.find((one) => one.name === name);
  if (setting !== undefined) {
    throw usageError(
      `${name} is configured by ${setting.env}`,
      'Remove that setting and restart the daemon (or relay) first. To fill a sink again: sink replay.',
    );
  }
  requireUnfed(sink, feeding, 'Restart it without the setting of this sink first.');
  sinks.forget(id);
}
