import { Command } from 'commander';
import { loadConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { sinkConfig } from '../relay/settings.ts';
import { sinkSummary } from '../relay/summary.ts';
import { createHistory } from '../store/history.ts';
import type { ParkedState, SinkRow } from '../store/sinks.ts';
import type { Store } from '../store/store.ts';
import type { CommandContext } from './context.ts';
import { colours, count, duration, moment, printJson, printLine, table, wholeNumber } from './format.ts';
import { readMirror, withMirror } from './status.ts';

function requireSink(store: Store, name: string): SinkRow {
  const sink = store.sinks.get(name);
  if (sink !== undefined) return sink;
  const names = store.sinks.list().map((known) => known.name);
  throw new CatchwordError('NOT_FOUND', `the mirror has no sink ${name}`, {
    hint:
      names.length > 0
        ? `There is: ${names.join(', ')}.`
        : 'Set CATCHWORD_SINK_<NAME> and start npx catchword daemon (or relay).',
  });
}

/** Looks a sink up and changes it, in one transaction. */
function decide(context: CommandContext, name: string, work: (store: Store, sink: SinkRow) => string): void {
  withMirror(context, (store) => {
    printLine(
      context,
      store.write(() => work(store, requireSink(store, name))),
    );
  });
}

function listCommand(context: CommandContext): Command {
  return new Command('list')
    .description('every sink: how far it is, its state, its last error')
    .option('--json', 'print one JSON document')
    .action((options: { json?: boolean }) =>
      readMirror(context, (store) => {
        const sinks = store.read(() => store.sinks.list().map((sink) => sinkSummary(store, sink, context.clock.now())));
        const known = sinks.map(({ name }) => name);
        const settings = loadConfig(context.environment).sinks.filter(({ name }) => !known.includes(name));
        const fresh = settings.map((setting) => sinkConfig(setting));
        if (options.json) {
          printJson(context, [
            ...sinks,
            ...fresh.map(({ name, kind, address }) => ({ name, kind, address, state: 'new' })),
          ]);
          return;
        }
        if (sinks.length + fresh.length === 0) {
          printLine(
            context,
            'no sinks: set CATCHWORD_SINK_<NAME>, such as CATCHWORD_SINK_FILE=jsonl:data/changes.jsonl',
          );
          return;
        }
        const c = colours(context, context.stdout);
        const rows = sinks.map((sink) => [
          sink.name,
          sink.kind,
          sink.address,
          sink.cursor,
          sink.lag_records,
          sink.lag_seconds === null ? '–' : duration(sink.lag_seconds * 1000),
          sink.state,
          `${count(Math.round(sink.rate))}/s`,
          sink.parked,
        ]);
        const news = fresh.map(({ name, kind, address }) => [name, kind, address, 0, '–', '–', 'new', '–', 0]);
        const head = ['name', 'kind', 'where', 'cursor', 'behind', 'for', 'state', 'rate', 'parked'];
        printLine(context, table(head, [...rows, ...news]));
        for (const { name, error, error_at: at } of sinks) {
          if (error !== null) printLine(context, c.yellow(`${name}: ${error} (${moment(Date.parse(at ?? ''))} UTC)`));
        }
        for (const { name, gaps } of sinks) {
          for (const gap of gaps) {
            printLine(
              context,
              c.yellow(`${name}: was not told of superseded changes after ${gap.after} up to ${gap.up_to}`),
            );
          }
        }
      }),
    );
}

function pauseCommand(context: CommandContext): Command {
  return new Command('pause')
    .description('delivers nothing more to a sink; the log keeps what it needs')
    .argument('<name>')
    .action((name: string) =>
      decide(context, name, (store, { id, state }) => {
        if (state !== 'running') throw new CatchwordError('USAGE', `${name} is not running: it is ${state}`);
        store.sinks.setState(id, 'paused');
        return `${name} is paused`;
      }),
    );
}

function resumeCommand(context: CommandContext): Command {
  return new Command('resume')
    .description('goes on with a sink that was paused, stopped or disabled, or tries a failing one at once')
    .argument('<name>')
    .action((name: string) =>
      decide(context, name, (store, { id, cursor }) => {
        store.sinks.setState(id, 'running');
        return `${name} goes on after ${cursor}`;
      }),
    );
}

/** `beginning` as 0. */
function replayStart(value: string): number {
  return value === 'beginning' ? 0 : wholeNumber('--from', 1)(value);
}

function replayCommand(context: CommandContext): Command {
  return new Command('replay')
    .description('delivers again: from a change on, or the products as they are now and then what follows')
    .argument('<name>')
    .option('--from <seq>', 'a change, or: beginning', replayStart, 0)
    .action((name: string, options: { from: number }) =>
      decide(context, name, (store, { id, cursor, state }) => {
        const last = store.changes.lastSeq();
        if (options.from > cursor + 1) {
          throw new CatchwordError('USAGE', `--from: ${name} has not had ${options.from} yet: it is at ${cursor}`, {
            hint: 'A replay begins with what was delivered already; nothing is left out.',
          });
        }
        const pruned = store.changes.prunedTo();
        if (options.from > 0 && options.from <= pruned) {
          throw new CatchwordError('USAGE', `--from: up to ${pruned}, the log no longer has every change`, {
            hint: `Use a later one, or: npx catchword sink replay ${name} --from beginning.`,
          });
        }
        store.sinks.replay(id, Math.max(0, options.from - 1), options.from === 0);
        const when = state === 'running' ? '' : `; it is ${state}: npx catchword sink resume ${name}`;
        return options.from === 0
          ? `${name} is delivered every product as of change ${last}, and then what follows${when}`
          : `${name} is delivered every change from ${options.from} on${when}`;
      }),
    );
}

/** What waits for somebody, or for its delivery. */
const SHOWN: ReadonlySet<ParkedState> = new Set(['refused', 'waiting', 'ready']);

function parkedCommand(context: CommandContext): Command {
  return new Command('parked')
    .description('events that a sink refused, and later ones of the same products, which wait')
    .argument('<name>')
    .option('--json', 'print one JSON document')
    .action((name: string, options: { json?: boolean }) =>
      readMirror(context, (store) => {
        const events = store.sinks.parked(requireSink(store, name).id).filter(({ state }) => SHOWN.has(state));
        if (options.json) {
          printJson(
            context,
            events.map(({ change, at, ...event }) => ({ ...event, op: change.op, at: new Date(at).toISOString() })),
          );
          return;
        }
        if (events.length === 0) {
          printLine(context, `nothing of ${name} is parked`);
          return;
        }
        const rows = events.map(({ seq, vbid, change, state, at, reason }) => [
          ...[seq, vbid, change.op, state, moment(at)],
          reason,
        ]);
        printLine(context, table(['seq', 'vbid', 'op', 'state', 'since (UTC)', 'why'], rows));
        printLine(context, `give one up with: npx catchword sink skip ${name} SEQ`);
      }),
    );
}

function skip(store: Store, sink: SinkRow, seq: number, nowMs: number): string {
  if (store.sinks.stateOf(sink.id, seq) === 'refused') {
    store.sinks.skip(sink.id, seq, nowMs);
    return `event ${seq} is given up; later ones of its product are delivered now`;
  }
  const [change] = createHistory(store).after(seq - 1, 1);
  if (sink.stoppedAt !== seq || change?.seq !== seq) {
    throw new CatchwordError('USAGE', `${sink.name} has not refused event ${seq}`, {
      hint: `See: npx catchword sink parked ${sink.name}, and npx catchword sink list.`,
    });
  }
  store.sinks.park(sink.id, { seq, reason: 'skipped by the operator', at: nowMs, change }, 'skipped');
  store.sinks.setState(sink.id, 'running');
  return `event ${seq} is given up; ${sink.name} goes on`;
}

function skipCommand(context: CommandContext): Command {
  return new Command('skip')
    .description('gives up an event that a sink refused: it will never be delivered there')
    .argument('<name>')
    .argument('<seq>', 'number of the event', wholeNumber('<seq>', 1))
    .action((name: string, seq: number) =>
      decide(context, name, (store, sink) => skip(store, sink, seq, context.clock.now())),
    );
}

export function sinkCommand(context: CommandContext): Command {
  const sink = new Command('sink').description('downstream stores that the change log feeds');
  const commands = [listCommand, pauseCommand, resumeCommand, replayCommand, parkedCommand, skipCommand];
  for (const command of commands) sink.addCommand(command(context));
  return sink;
}
