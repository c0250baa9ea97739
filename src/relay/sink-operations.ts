import { randomUUID } from 'node:crypto';
import { CatchwordError, usageError } from '../base/errors.ts';
import type { SinkSetting } from '../settings/config.ts';
import { createHistory } from '../store/history/history.ts';
import { type CheckRequest, type HeldSink, heldOf, type SinkRow } from '../store/rows/sink-rows.ts';
import { needsFullRun } from '../store/rows/source-state.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { RequestWriter } from '../store/schema/writers.ts';
import { sinkConfig } from './sink-config.ts';
import { viewAt } from './store-contents.ts';

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

export function pauseSink({ sinks }: RequestWriter, { id, name, state }: SinkRow): void {
  if (state !== 'running') throw new CatchwordError('USAGE', `${name} is not running: it is ${state}`);
  sinks.setState(id, 'paused');
}

/** Asks the relay to compare the store with its source; a relay does so between two deliveries. @returns the id of the result */
export function askCheck(store: RequestWriter, { id, name, state }: SinkRow, how: Omit<CheckRequest, 'id'>): string {
  if (state !== 'running') {
    const hint = `Let it go on first, see: npx catchword sink list.`;
    throw new CatchwordError('USAGE', `${name} cannot be compared: it is ${state}`, { hint });
  }
  if (needsFullRun(store)) {
    const hint = 'Complete it first: npx catchword sync.';
    throw new CatchwordError('USAGE', `${name} cannot be compared: the mirror is not complete`, { hint });
  }
  const asked = { ...how, id: randomUUID() };
  store.sinks.askCheck(id, asked);
  return asked.id;
}

/** @throws CatchwordError USAGE if the sink is held: only an approval lets it go on */
export function requireNotHeld({ name, state }: SinkRow): void {
  if (state !== 'held') return;
  throw new CatchwordError('USAGE', `${name} is held`, {
    hint: `See why: npx catchword sink list. To let it go on: npx catchword sink approve ${name}.`,
  });
}

/**
 * Lets a held sink go on.
 * @param newest after an unusual run: sends each product once, as it is now, and only where what the store has differs
 * @returns why it was held
 */
export function approveSink({ sinks }: RequestWriter, sink: SinkRow, newest: boolean): HeldSink {
  const { id, name, state, generation } = sink;
  const held = heldOf(sink);
  if (state !== 'held' || held === null) throw new CatchwordError('USAGE', `${name} is not held: it is ${state}`);
  if (held.why === 'run') {
    if (newest) sinks.sendNewest(sink, viewAt(sinks.views(id), generation));
    sinks.approveRuns(id);
  } else if (newest) {
    const hint = `To send what the changed view changes: npx catchword sink approve ${name}.`;
    throw usageError(`--newest is for a sink that an unusual run holds, and ${name} has another view`, hint);
  } else sinks.approveView(id);
  return held;
}

/** Redelivers from a change on, or every product as it is now (0), and then what follows. */
export function replaySink(
  { sinks, changes }: RequestWriter,
  { id, name, cursor, backfillTo }: SinkRow,
  from: number,
): void {
  if (from > cursor + 1) {
    throw new CatchwordError('USAGE', `--from: ${name} has not had ${from} yet: it is at ${cursor}`, {
      hint: 'Replay from a change that was delivered already; later ones follow anyway.',
    });
  }
  const later = `Use a later one, or: npx catchword sink replay ${name} --from beginning.`;
  const pruned = changes.prunedTo();
  if (from > 0 && from <= pruned) {
    throw usageError(`--from: up to ${pruned}, the log no longer has every change`, later);
  }
  const view = sinks.views(id).at(-1);
  const filledTo = Math.max(backfillTo, view?.toCursor ?? 0);
  // Other events brought the store to its view: a later replay would not send these again.
  if (from > 0 && view !== undefined && from <= filledTo) {
    throw usageError(`--from: ${name} got its view at ${filledTo}`, later);
  }
  sinks.replay(id, Math.max(0, from - 1), from === 0);
}

/** Skips an event that the sink refused: one that is parked, or the one that stopped it. @returns 1 */
export function skipEvent(store: RequestWriter, { id, name, stoppedAt }: SinkRow, seq: number, nowMs: number): number {
  const { sinks } = store;
  if (sinks.stateOf(id, seq) === 'refused') {
    sinks.skip(id, seq, nowMs);
    return 1;
  }
  const [change] = createHistory(store).after(seq - 1, 1);
  if (stoppedAt !== seq || change?.seq !== seq) {
    throw new CatchwordError('USAGE', `${name} has not refused event ${seq}`, {
      hint: `See: npx catchword sink parked ${name}, and npx catchword sink list.`,
    });
  }
  sinks.skipUnparked(id, { seq, at: nowMs, change });
  sinks.setState(id, 'running');
  return 1;
}

/** Skips every event that the sink refused. @returns how many */
export function skipRefused(store: RequestWriter, sink: SinkRow, nowMs: number): number {
  // All at once: one after the other, ten thousand would take half a minute.
  const skipped = store.sinks.skipAll(sink.id, nowMs);
  return sink.stoppedAt === null ? skipped : skipped + skipEvent(store, sink, sink.stoppedAt, nowMs);
}

/** A relay reads its settings only when it starts, so it feeds a sink under the name that it knows. */
function requireUnfed({ name, configured }: SinkRow, isRelayRunning: boolean, hint: string): void {
  if (configured && isRelayRunning) {
    throw new CatchwordError('USAGE', `a running daemon (or relay) still feeds ${name}`, { hint });
  }
}

/** Gives a sink another name, with its position, parked events and gaps. No running relay may feed either name. */
export function renameSink(
  { sinks }: RequestWriter,
  sink: SinkRow,
  to: string,
  settings: readonly SinkSetting[],
  isRelayRunning: boolean,
): void {
  if (!/^[a-z0-9][a-z0-9_]*$/.test(to)) {
    const hint = 'Use what follows CATCHWORD_SINK_ in its variable, in lower case: letters, digits and underscores.';
    throw new CatchwordError('USAGE', `${to} cannot be the name of a sink`, { hint });
  }
  const replaced = sinks.get(to);
  for (const one of [sink, ...(replaced === undefined ? [] : [replaced])]) {
    requireUnfed(one, isRelayRunning, 'Stop it first. Start it again when the settings have the new name.');
  }
  if (replaced !== undefined && (replaced.opened || sinks.parkedCount(replaced.id) > 0)) {
    throw new CatchwordError('USAGE', `${to} is in use: it has a position of its own`, {
      hint: `To keep that one, rename it first: npx catchword sink rename ${to} OTHER.`,
    });
  }
  const setting = settings.find(({ name }) => name === to);
  // The relay would take the name from this store again, and leave its parked events behind.
  if (setting !== undefined && sinkConfig(setting).identity !== sink.identity) {
    throw new CatchwordError('USAGE', `${setting.env} is the address of another store than ${sink.address}`, {
      hint: 'Parked events are only delivered to the store that refused them. Rename before you change the address.',
    });
  }
  if (replaced !== undefined) sinks.forget(replaced.id);
  sinks.rename(sink.id, to);
}

/** Removes a sink whose setting was removed, and that no running relay feeds. */
export function forgetSink(
  { sinks }: RequestWriter,
  sink: SinkRow,
  settings: readonly SinkSetting[],
  isRelayRunning: boolean,
): void {
  const { id, name } = sink;
  const setting = settings.find((one) => one.name === name);
  if (setting !== undefined) {
    throw new CatchwordError('USAGE', `${name} is configured by ${setting.env}`, {
      hint: 'Remove that setting and restart the daemon (or relay) first. To fill a sink again: sink replay.',
    });
  }
  requireUnfed(sink, isRelayRunning, 'Restart it without the setting of this sink first.');
  sinks.forget(id);
}
