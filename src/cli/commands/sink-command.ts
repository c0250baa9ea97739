import { usageError } from '@catchword/base/errors';
import type { Config } from '@catchword/settings/config';
import { Command, Option } from 'commander';
import type { SinkAction } from '../../operate/decisions/decision-types.ts';
import { forgetSink, renameSink, requireSink } from '../../operate/decisions/sink-actions.ts';
import { carryOutNow } from '../../operate/decisions/submit-decision.ts';
import { sinkConfigs } from '../../relay/sink-config.ts';
import { seenSinks, storedSizes } from '../../report/sink-report.ts';
import { PARKED } from '../../shown/shown-parked.ts';
import { jsonOf, shownLines } from '../../shown/shown-row.ts';
import { NO_SINKS, SINK } from '../../shown/shown-sink.ts';
import { parseMoment } from '../../store/history/moment.ts';
import type { Store } from '../../store/store.ts';
import type { CommandContext } from './shared/command-context.ts';
import { colours, type JsonOption, printLine, type Result, wholeNumber } from './shared/output-format.ts';
import { commandUser } from './shared/person-notices.ts';
import { type PreviewOptions, previewSink } from './shared/preview-sink.ts';
import { trySink } from './shared/try-sink.ts';
import { type VerifyOptions, verifySink } from './shared/verify-sink.ts';
import { mirrorCommand, onMirror, settingsNotInUse } from './shared/with-mirror.ts';

async function list(context: CommandContext, store: Store, config: Config): Promise<Result> {
  const configs = sinkConfigs(config.sinks, store.sinks.hasFed);
  const known = new Set(store.sinks.list().map(({ name }) => name));
  const sizes = await storedSizes(configs.filter(({ name }) => known.has(name)));
  return store.read(() => {
    const sinks = seenSinks(store, context.clock.now(), configs, sizes);
    const c = colours(context);
    const lines = sinks.length === 0 ? [NO_SINKS] : shownLines(c, SINK, sinks, ({ name }) => name);
    const text = [...lines, ...settingsNotInUse(context, store).map(c.yellow)];
    return { json: sinks.map((sink) => jsonOf(SINK, sink)), text };
  });
}

function listParked(context: CommandContext, store: Store, name: string): Result {
  const events = store.sinks.waiting(requireSink(store, name).id, 0, -1);
  const hint = `redeliver them: npx catchword sink retry ${name}; skip one: npx catchword sink skip ${name} SEQ (or --all)`;
  const lines = [...shownLines(colours(context), PARKED, events, () => ''), hint];
  const text = events.length === 0 ? `nothing of ${name} is parked` : lines;
  return { json: events.map((event) => jsonOf(PARKED, event)), text };
}

async function decide(
  context: CommandContext,
  action: SinkAction,
  target: string,
  argument: number | null = null,
): Promise<void> {
  await onMirror(context, 'write', (store) => {
    printLine(context, carryOutNow(store, { who: commandUser(), action, target, argument }, context.clock.now()));
    const isHalted = action !== 'pause' && requireSink(store, target).state !== 'running';
    if (isHalted) printLine(context, `resume it with: npx catchword sink resume ${target}`);
  });
}

/** Renames a sink; without another name, forgets it. */
async function rename(context: CommandContext, name: string, to: string | null): Promise<void> {
  await onMirror(context, 'write', (store, { sinks }) => {
    store.request((writer) => {
      const sink = requireSink(writer, name);
      const feeding = { settings: sinks, isRelayRunning: store.relayLease.holder(context.clock.now()) !== null };
      if (to === null) forgetSink(writer, sink, feeding);
      else renameSink(writer, sink, to, feeding);
    });
    if (to === null) return printLine(context, `${name} is forgotten; what it stored is kept there`);
    printLine(context, `${name} is ${to} now, with its position and parked events`);
    if (sinks.some((sink) => sink.name === to)) return;
    const variable = (sink: string): string => `CATCHWORD_SINK_${sink.toUpperCase()}`;
    printLine(context, `before you start a daemon, rename ${variable(name)} to ${variable(to)}`);
  });
}

export function sinkCommand(context: CommandContext): Command {
  const group = new Command('sink');
  const add = (name: string, description: string): Command => group.command(name).description(description);
  const addDecision = (action: SinkAction, description: string): Command =>
    add(action, description)
      .argument('<name>')
      .action((name: string) => decide(context, action, name));
  const all = add('list', 'list sinks: position, state, last error, and stores that grow without a limit');
  mirrorCommand(context, 'look', all, (store, config) => list(context, store, config));
  const parked = add('parked', 'list events that a sink refused, and later ones of the same products, which wait');
  mirrorCommand(context, 'look', parked.argument('<name>'), (store, _config, name: string) =>
    listParked(context, store, name),
  );
  const preview = add('preview', 'show what another view would change in a store; sends nothing')
    .argument('<name>')
    .option('--where <expression>', 'which products, as CATCHWORD_SINK_<NAME>_WHERE; empty: every product')
    .option('--fields <list>', 'what of them, as CATCHWORD_SINK_<NAME>_FIELDS; empty: the whole product')
    .option('--at <when>', 'the products as of this change, or of this time (default: now)', (text) =>
      parseMoment('--at', text, context.clock.now()),
    );
  const previewOf = (store: Store, config: Config, name: string, options: PreviewOptions) =>
    previewSink(context, store, config, name, options);
  const wholly = 'print one JSON document, with whole products';
  mirrorCommand(context, 'read', preview, previewOf, wholly);
  const verify = add('verify', 'compare a store with its source, between two deliveries')
    .argument('<name>')
    .option('--deep', 'compare all that the store has of each product, not only which products and positions')
    .option('--repair', 'bring each product that differs to what it should be; remove extra ones, if they are few')
    .option('--extra', 'with --repair: compare deeply, and remove extra products however many');
  mirrorCommand(context, 'write', verify, (store, _config, name: string, options: VerifyOptions) =>
    verifySink(context, store, name, options),
  );
  addDecision('pause', 'stop delivering to a sink; the change log keeps what it needs');
  addDecision('resume', 'resume a sink that was paused, stopped or disabled, or retry a failing one now');
  addDecision('retry', 'redeliver the events that a sink refused, and resume it');
  add('approve', 'let a held sink go on: with its changed view, or with the changes of an unusual run')
    .argument('<name>')
    .argument('[number]', 'of what holds it, as sink list shows: approves only this', wholeNumber('[number]', 0))
    .option('--newest', 'after an unusual run: send each product once, as it is now, where what the store has differs')
    .action((name: string, number: number | undefined, { newest }: { newest?: boolean }) =>
      decide(context, newest === true ? 'release-newest' : 'release', name, number),
    );
  const start = (value: string): number => (value === 'beginning' ? 0 : wholeNumber('--from', 0)(value));
  const from = new Option('--from <seq>', 'redeliver from this change, or: beginning');
  add('replay', 'redeliver from a change, or all current products')
    .argument('<name>')
    .addOption(from.argParser(start).default(0, 'beginning'))
    .action((name: string, options: { from: number }) => decide(context, 'replay', name, options.from));
  add('skip', 'skip an event that a sink refused: it is never delivered there')
    .argument('<name>')
    .argument('[seq]', 'number of the event', wholeNumber('<seq>', 1))
    .option('--all', 'skip every event that the sink refused')
    .action((name: string, seq: number | undefined, { all }: { all?: boolean }) => {
      if (seq !== undefined && all !== true) return decide(context, 'skip', name, seq);
      if (seq === undefined && all === true) return decide(context, 'skip-all', name);
      const hint = `See: npx catchword sink parked ${name}.`;
      throw usageError('sink skip needs either the number of an event or --all', hint);
    });
  add('contract', 'check a store of yours, which is written to and then removed, as every sink of catchword is checked')
    .argument('<url>', 'address of a scratch table, stream or file; {secret} is CATCHWORD_CONTRACT_SECRET')
    .option('--module <name>', 'package, or path of a module, that handles the address')
    .option('--json', 'print one JSON document')
    .action((url: string, options: JsonOption & { module?: string }) => trySink(context, url, options));
  add('rename', 'give a sink another name, with its position and parked events; stop the daemon first')
    .argument('<old>')
    .argument('<new>')
    .action((name: string, to: string) => rename(context, name, to));
  add('forget', 'remove a sink whose setting was removed, with its position and parked events')
    .argument('<name>')
    .action((name: string) => rename(context, name, null));
  return group;
}
