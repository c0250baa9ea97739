import { Command } from 'commander';
import type { Config } from '../config.ts';
import { usageError } from '../errors.ts';
import { forgetSink, pauseSink, replaySink, requireSink, skipEvent, skipRefused } from '../relay/change-sink.ts';
import { sinkConfig } from '../relay/sink-config.ts';
import { storedSizes } from '../relay/stored-sizes.ts';
import { parkedJson, sinkListJson, sinkSummary } from '../report/sink.ts';
import { sinkListLines } from '../report/sink-text.ts';
import { plural, table, time } from '../report/text.ts';
import type { ParkedState, SinkRow } from '../store/sinks.ts';
import type { Store } from '../store/store.ts';
import type { RequestWriter } from '../store/writers.ts';
import type { CommandContext } from './shared/context.ts';
import { colours, type JsonOption, type Result, wholeNumber } from './shared/format.ts';
import { onMirror } from './shared/mirror.ts';

async function list(context: CommandContext, store: Store, config: Config): Promise<Result> {
  const nowMs = context.clock.now();
  const sinks = store.read(() => store.sinks.list().map((sink) => sinkSummary(store, sink, nowMs)));
  const configs = config.sinks.map(sinkConfig);
  const fresh = configs.filter(({ name }) => !sinks.some((sink) => sink.name === name));
  const sizes = await storedSizes(configs.filter((one) => !fresh.includes(one)));
  const text = sinkListLines(colours(context), sinks, fresh, sizes);
  return { json: sinkListJson(sinks, fresh, sizes), text };
}

/** Events that wait for a decision, or for their delivery. */
const SHOWN: ReadonlySet<ParkedState> = new Set(['refused', 'waiting', 'ready']);

function listParked(store: Store, name: string): Result {
  const events = store.sinks.parked(requireSink(store, name).id).filter(({ state }) => SHOWN.has(state));
  const rows = events.map(({ seq, vbid, change, state, at, reason }) => {
    return [seq, vbid, change.op, state, time(at), reason];
  });
  const head = ['seq', 'vbid', 'op', 'state', 'since', 'why'];
  const retry = `redeliver them: npx catchword sink retry ${name}`;
  const hint = `${retry}; skip one: npx catchword sink skip ${name} SEQ (or --all)`;
  const text = events.length === 0 ? `nothing of ${name} is parked` : [table(head, rows), hint];
  return { json: events.map(parkedJson), text };
}

/** A change to a sink, in one transaction. @returns the outcome, for a person */
type Change = (writer: RequestWriter, sink: SinkRow, now: Now) => string;

interface Now {
  readonly nowMs: number;
  readonly config: Config;
  readonly isRelayRunning: boolean;
}

async function changeSink(context: CommandContext, name: string, change: Change): Promise<void> {
  await onMirror(context, 'write', {}, (store, config) => {
    const nowMs = context.clock.now();
    const text = store.request((writer) => {
      const isRelayRunning = store.relayLease.holder(nowMs) !== null;
      return change(writer, requireSink(writer, name), { nowMs, config, isRelayRunning });
    });
    return { json: null, text };
  });
}

function resumeHint({ name, state }: SinkRow): string {
  return `${name} is ${state}: npx catchword sink resume ${name}`;
}

/** @param from 0 for all current products */
function replay(from: number): Change {
  return (store, sink) => {
    replaySink(store, sink, from);
    const all = `every product as of change ${store.changes.lastSeq()}, and then what follows`;
    const waits = sink.state === 'running' ? '' : `; ${resumeHint(sink)}`;
    return `${sink.name} gets ${from === 0 ? all : `every change from ${from} on`}${waits}`;
  };
}

/** @param seq undefined for all refused events */
function skip(seq: number | undefined): Change {
  return (store, sink, { nowMs }) => {
    const skipped = seq === undefined ? skipRefused(store, sink, nowMs) : skipEvent(store, sink, seq, nowMs);
    if (skipped === 0) return `${sink.name} has not refused any event`;
    const now = requireSink(store, sink.name);
    const delivered = now.state === 'running' ? 'are delivered now' : `wait, because ${resumeHint(now)}`;
    return `${plural(skipped, 'event')} skipped; later ones of the same products ${delivered}`;
  };
}

export function sinkCommand(context: CommandContext): Command {
  const group = new Command('sink');
  const add = (name: string, description: string): Command => group.command(name).description(description);
  const addChange = (name: string, description: string, change: Change): Command =>
    add(name, description)
      .argument('<name>')
      .action((sink: string) => changeSink(context, sink, change));
  add('list', 'list sinks: position, state, last error, and stores that grow without a limit')
    .option('--json', 'print one JSON document')
    .action((options: JsonOption) =>
      onMirror(context, 'read', options, (store, config) => list(context, store, config)),
    );
  add('parked', 'list events that a sink refused, and later ones of the same products, which wait')
    .argument('<name>')
    .option('--json', 'print one JSON document')
    .action((name: string, options: JsonOption) =>
      onMirror(context, 'read', options, (store) => listParked(store, name)),
    );
  addChange('pause', 'stop delivering to a sink; the change log keeps what it needs', (store, sink) => {
    pauseSink(store, sink);
    return `${sink.name} is paused`;
  });
  const resumes = 'resume a sink that was paused, stopped or disabled, or retry a failing one now';
  addChange('resume', resumes, ({ sinks }, { id, name, cursor }) => {
    sinks.setState(id, 'running');
    return `${name} resumes after ${cursor}`;
  });
  addChange('retry', 'redeliver the events that a sink refused, and resume it', ({ sinks }, { id, name }) => {
    const freed = sinks.retry(id);
    sinks.setState(id, 'running');
    return freed === 0 ? `${name} is resumed; nothing is parked` : `${name} gets ${plural(freed, 'event')} again`;
  });
  const start = (value: string): number => (value === 'beginning' ? 0 : wholeNumber('--from', 1)(value));
  add('replay', 'redeliver from a change, or all current products')
    .argument('<name>')
    .option('--from <seq>', 'redeliver from this change, or: beginning', start, 0)
    .action((name: string, { from }: { from: number }) => changeSink(context, name, replay(from)));
  add('skip', 'skip an event that a sink refused: it is never delivered there')
    .argument('<name>')
    .argument('[seq]', 'number of the event', wholeNumber('<seq>', 1))
    .option('--all', 'skip every event that the sink refused')
    .action((name: string, seq: number | undefined, { all }: { all?: boolean }) => {
      if ((seq === undefined) === (all === true)) return changeSink(context, name, skip(seq));
      const hint = `See: npx catchword sink parked ${name}.`;
      throw usageError('sink skip needs either the number of an event or --all', hint);
    });
  const forgets = 'remove a sink whose setting was removed, with its position and parked events';
  addChange('forget', forgets, (store, sink, { config, isRelayRunning }) => {
    forgetSink(store, sink, config.sinks, isRelayRunning);
    return `${sink.name} is forgotten; what it stored is kept there`;
  });
  return group;
}
