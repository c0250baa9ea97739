import { Command } from 'commander';
import { withDeadline } from '../abort.ts';
import { loadConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { answerWithin } from '../relay/answer-within.ts';
import type { StoredSize } from '../relay/sink.ts';
import { type SinkConfig, sinkConfig } from '../relay/sink-config.ts';
import { sinkSummary } from '../report/sink.ts';
import { createHistory } from '../store/history.ts';
import type { Reader } from '../store/reader.ts';
import type { ParkedState, SinkRow } from '../store/sinks.ts';
import type { Store } from '../store/store.ts';
import type { RequestWriter } from '../store/writers.ts';
import type { CommandContext } from './shared/context.ts';
import { colours, count, duration, moment, plural, printJson, printLine, table, wholeNumber } from './shared/format.ts';
import { readMirror, withMirror } from './status.ts';

/** `sink list` does not wait longer for a store to say how much it keeps. */
const SIZE_TIMEOUT_MS = 2_000;

function requireSink(store: Reader, name: string): SinkRow {
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
function decide(
  context: CommandContext,
  name: string,
  work: (store: RequestWriter, sink: SinkRow, relayLease: Store['relayLease']) => string,
): void {
  withMirror(context, (store) => {
    printLine(
      context,
      store.request((writer) => work(writer, requireSink(writer, name), store.relayLease)),
    );
  });
}

/** How much stores of events keep, by the names of their sinks; null for one that cannot be asked. */
async function sizesOf(configs: readonly SinkConfig[]): Promise<Map<string, StoredSize | null>> {
  const never = new AbortController().signal;
  const asked = configs.map(async (config) => {
    try {
      const sink = await config.make();
      const size = sink.size?.bind(sink);
      if (size === undefined) return [];
      return [[config.name, await withDeadline(never, answerWithin(SIZE_TIMEOUT_MS), size).catch(() => null)] as const];
    } catch {
      // What is wrong with its settings is the relay's to say, and doctor's.
      return [];
    }
  });
  return new Map((await Promise.all(asked)).flat());
}

type Listed = ReturnType<typeof sinkSummary>;

function printList(
  context: CommandContext,
  sinks: readonly Listed[],
  fresh: readonly SinkConfig[],
  sizes: ReadonlyMap<string, StoredSize | null>,
): void {
  if (sinks.length + fresh.length === 0) {
    printLine(context, 'no sinks: set CATCHWORD_SINK_<NAME>, such as CATCHWORD_SINK_FILE=jsonl:data/changes.jsonl');
    return;
  }
  const c = colours(context, context.stdout);
  const rows = sinks.map((sink) => [
    ...[sink.name, sink.kind, sink.address, sink.cursor, sink.lag_records],
    sink.lag_seconds === null ? '–' : duration(sink.lag_seconds * 1000),
    ...[sink.state, `${count(Math.round(sink.rate))}/s`, sink.parked],
  ]);
  const news = fresh.map(({ name, kind, address }) => [name, kind, address, 0, '–', '–', 'new', '–', 0]);
  const head = ['name', 'kind', 'where', 'cursor', 'behind', 'for', 'state', 'rate', 'parked'];
  printLine(context, table(head, [...rows, ...news]));
  for (const { name, error, error_at: at } of sinks) {
    if (error !== null) printLine(context, c.yellow(`${name}: ${error} (${moment(Date.parse(at ?? ''))} UTC)`));
  }
  for (const { name, gaps } of sinks) {
    for (const gap of gaps) {
      printLine(context, c.yellow(`${name}: was not told of superseded changes after ${gap.after} up to ${gap.up_to}`));
    }
  }
  for (const [name, size] of sizes) {
    if (size === null || size.limit !== null) continue;
    printLine(context, c.yellow(`${name}: keeps every event (${size.text} now); to limit it, add ${size.option}`));
  }
}

function listCommand(context: CommandContext): Command {
  return new Command('list')
    .description('list sinks: position, state, last error, and stores that grow without a limit')
    .option('--json', 'print one JSON document')
    .action(async (options: { json?: boolean }) => {
      const nowMs = context.clock.now();
      const sinks = readMirror(context, (store) =>
        store.read(() => store.sinks.list().map((sink) => sinkSummary(store, sink, nowMs))),
      );
      const configs = loadConfig(context.environment).sinks.map((setting) => sinkConfig(setting));
      const fresh = configs.filter(({ name }) => !sinks.some((sink) => sink.name === name));
      const sizes = await sizesOf(configs.filter((config) => !fresh.includes(config)));
      if (!options.json) {
        printList(context, sinks, fresh, sizes);
        return;
      }
      printJson(context, [
        ...sinks.map((sink) => {
          const size = sizes.get(sink.name);
          return { ...sink, size: size?.text ?? null, limit: size?.limit ?? null };
        }),
        ...fresh.map(({ name, kind, address, identity }) => ({ name, kind, address, identity, state: 'new' })),
      ]);
    });
}

function pauseCommand(context: CommandContext): Command {
  return new Command('pause')
    .description('stop delivering to a sink; the change log keeps what it needs')
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
    .description('resume a sink that was paused, stopped or disabled, or try a failing one at once')
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
    .description('deliver again: from a change on, or the products as they are now and then what follows')
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
    .description('list events that a sink refused, and later ones of the same products, which wait')
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
        printLine(
          context,
          `deliver them again: npx catchword sink retry ${name}; skip one: npx catchword sink skip ${name} SEQ (or --all)`,
        );
      }),
    );
}

/** When events that were set free are delivered. */
function whenDelivered(store: Reader, name: string): string {
  const { state } = requireSink(store, name);
  return state === 'running'
    ? 'are delivered now'
    : `wait, because ${name} is ${state}: npx catchword sink resume ${name}`;
}

function skip(store: RequestWriter, sink: SinkRow, seq: number, nowMs: number): string {
  if (store.sinks.stateOf(sink.id, seq) === 'refused') {
    store.sinks.skip(sink.id, seq, nowMs);
    return `event ${seq} is skipped; later ones of its product ${whenDelivered(store, sink.name)}`;
  }
  const [change] = createHistory(store).after(seq - 1, 1);
  if (sink.stoppedAt !== seq || change?.seq !== seq) {
    throw new CatchwordError('USAGE', `${sink.name} has not refused event ${seq}`, {
      hint: `See: npx catchword sink parked ${sink.name}, and npx catchword sink list.`,
    });
  }
  store.sinks.skipUnparked(sink.id, { seq, at: nowMs, change });
  store.sinks.setState(sink.id, 'running');
  return `event ${seq} is skipped; ${sink.name} continues`;
}

function skipAll(store: RequestWriter, sink: SinkRow, nowMs: number): string {
  const refused = store.sinks.parked(sink.id, 'refused').map(({ seq }) => seq);
  const seqs = sink.stoppedAt === null ? refused : [...refused, sink.stoppedAt];
  for (const seq of seqs) skip(store, sink, seq, nowMs);
  if (seqs.length === 0) return `${sink.name} has not refused any event`;
  return `${plural(seqs.length, 'event')} skipped; later ones of their products ${whenDelivered(store, sink.name)}`;
}

function skipCommand(context: CommandContext): Command {
  return new Command('skip')
    .description('skip an event that a sink refused: it is never delivered there')
    .argument('<name>')
    .argument('[seq]', 'number of the event', wholeNumber('<seq>', 1))
    .option('--all', 'skip every event that the sink refused')
    .action((name: string, seq: number | undefined, { all }: { all?: boolean }) => {
      if ((seq === undefined) === (all === undefined)) {
        throw new CatchwordError('USAGE', 'sink skip needs either the number of an event or --all', {
          hint: `See: npx catchword sink parked ${name}.`,
        });
      }
      decide(context, name, (store, sink) =>
        seq === undefined ? skipAll(store, sink, context.clock.now()) : skip(store, sink, seq, context.clock.now()),
      );
    });
}

function retryCommand(context: CommandContext): Command {
  return new Command('retry')
    .description('deliver the events again that a sink refused, and resume it')
    .argument('<name>')
    .action((name: string) =>
      decide(context, name, (store, { id }) => {
        const freed = store.sinks.retry(id);
        store.sinks.setState(id, 'running');
        return freed === 0
          ? `${name} is resumed; nothing is parked`
          : `${name} is sent ${plural(freed, 'event')} again`;
      }),
    );
}

/** Whether a relay that lives may be feeding it: one reads its settings only when it starts. */
function isFed(relayLease: Store['relayLease'], { configured }: SinkRow, nowMs: number): boolean {
  return configured && relayLease.holder(nowMs) !== null;
}

function forgetCommand(context: CommandContext): Command {
  return new Command('forget')
    .description('remove a sink that is no longer configured, with its position and parked events')
    .argument('<name>')
    .action((name: string) => {
      const setting = loadConfig(context.environment).sinks.find((one) => one.name === name);
      decide(context, name, (store, sink, relayLease) => {
        if (setting !== undefined) {
          throw new CatchwordError('USAGE', `${name} is configured by ${setting.env}`, {
            hint: 'Remove that setting and restart the daemon (or relay) first. To fill a sink again: sink replay.',
          });
        }
        if (isFed(relayLease, sink, context.clock.now())) {
          throw new CatchwordError('USAGE', `a running daemon (or relay) still feeds ${name}`, {
            hint: 'Restart it without the setting of this sink first.',
          });
        }
        store.sinks.forget(sink.id);
        return `${name} is forgotten; what it stored stays there`;
      });
    });
}

export function sinkCommand(context: CommandContext): Command {
  const sink = new Command('sink').description('look after the downstream stores that the change log feeds');
  const looking = [listCommand, parkedCommand];
  const deciding = [pauseCommand, resumeCommand, retryCommand, replayCommand, skipCommand, forgetCommand];
  for (const command of [...looking, ...deciding]) sink.addCommand(command(context));
  return sink;
}
