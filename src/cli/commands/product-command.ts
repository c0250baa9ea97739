import { printable } from '@catchword/base/printable';
import { configuredSource, eventText } from '@catchword/catalog/event';
import { SUMMARY } from '@catchword/catalog/fields';
import { indentedJson } from '@catchword/catalog/json-text';
import type { Config } from '@catchword/settings/config';
import { Command } from 'commander';
import { hitJson, productJson } from '../../report/product-report.ts';
import { changeLines } from '../../report/product-text.ts';
import { type SinkProduct, sinkProduct } from '../../report/sink-product.ts';
import { moment, plural, table, time } from '../../report/text.ts';
import { createHistory, productAsOf, productChanges } from '../../store/history/history.ts';
import { type Moment, parseMoment, seqOf } from '../../store/history/moment.ts';
import { requireProduct } from '../../store/rows/find-product.ts';
import { eventSource } from '../../store/rows/source-state.ts';
import type { Store } from '../../store/store.ts';
import type { CommandContext } from './shared/command-context.ts';
import { colours, type JsonOption, printLine, wholeNumber } from './shared/output-format.ts';
import { sinkView } from './shared/preview-sink.ts';
import { mirrorCommand, onMirror } from './shared/with-mirror.ts';

interface Options extends JsonOption {
  readonly history?: boolean;
  readonly at?: Moment;
  readonly sink?: string;
}

function sinkLines({ sink, position, known, has, gets, why }: SinkProduct): string[] {
  const shown = (json: string | null): string[] => [json === null ? '  nothing' : indentedJson(json)];
  return [
    `${sink}, as of change ${position}: ${why}`,
    ...(known ? ['it has:', ...shown(has)] : ['what it has is not known']),
    ...(known && has === gets ? [] : ['it is to have:', ...shown(gets)]),
  ];
}

function printProduct(context: CommandContext, key: string, options: Options, store: Store, config: Config) {
  const { history, json } = options;
  const found = requireProduct(store, key, 'Search for it with: npx catchword search <words>.');
  const at = options.at && seqOf(store, '--at', options.at);
  const row = at === undefined ? found : productAsOf(store, found, at);
  const { vbid, title, removedAt, changedSeq } = row;
  const name = options.sink;
  const to = name === undefined ? undefined : sinkView(store, config, name);
  const atSink = to && sinkProduct(store, name ?? '', to.row, to.view, found);
  if (json) {
    const all = history ? createHistory(store).of(vbid) : undefined;
    const changes = all?.filter(({ seq }) => seq <= changedSeq);
    const source = eventSource(store.source, configuredSource(config.baseUrl));
    const events = changes?.map((change) => eventText(change, store.incarnation, source));
    // Not by `print`: the document contains the body exactly as the service sent it.
    context.stdout.write(`${productJson(row, events, atSink)}\n`);
    return;
  }
  const c = colours(context);
  const state = removedAt === null ? '' : c.yellow(` (removed ${time(removedAt)})`);
  const all = history ? productChanges(store, row, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER).changes : [];
  const changes = all.flatMap((change) => {
    const head = `change ${change.seq}: ${change.op} at ${moment(change.at)} UTC, run ${change.runId}`;
    return [c.bold(head), ...changeLines(change).map((line) => `  ${line}`)];
  });
  const lines = [
    `${c.bold(vbid)}${title === null ? '' : ` ${printable(title)}`}${state}`,
    `first seen ${time(row.firstSeenAt)}, changed ${time(row.changedAt)}, seq ${changedSeq}`,
    ...(at === undefined ? [] : [`as of change ${at}`]),
    ...(atSink === undefined ? [removedAt === null ? indentedJson(row.body) : 'it is removed'] : sinkLines(atSink)),
    ...(changes.length === 0 ? [] : ['', ...changes]),
  ];
  printLine(context, lines.join('\n'));
}

function productCommand(context: CommandContext): Command {
  return new Command('product')
    .argument('<vbid>', 'its key, or an ISBN')
    .option('--history', 'print its changes, newest first')
    .option('--at <when>', 'show what it was right after this change, or at this time', (text) =>
      parseMoment('--at', text, context.clock.now()),
    )
    .option('--sink <name>', 'show what the store of this sink has of it, and why')
    .option('--json', 'print one JSON document')
    .action((key: string, options: Options) =>
      onMirror(context, 'read', (store, config) => printProduct(context, key, options, store, config)),
    );
}

function searchCommand(context: CommandContext): Command {
  const command = new Command('search')
    .argument('<words...>')
    .option('--limit <n>', 'print at most this many', wholeNumber('--limit', 1), 20);
  return mirrorCommand(context, 'read', command, (store, _config, words: string[], { limit }: { limit: number }) => {
    const hits = store.search(words.join(' '), limit);
    const json = hits.map(hitJson);
    const head = ['vbid', ...SUMMARY.map(({ label }) => label ?? '')];
    const text = hits.length === 0 ? ['nothing found'] : [table(head, json.map(Object.values<string | null>))];
    if (hits.length === limit) text.push(`the first ${plural(hits.length, 'product')}; --limit shows more`);
    return { json, text };
  });
}

export function productCommands(context: CommandContext): [product: Command, search: Command] {
  return [productCommand(context), searchCommand(context)];
}
