import { Command } from 'commander';
import { configuredSource, eventText } from '../catalog/event.ts';
import { indentedJson } from '../catalog/json-text.ts';
import { CatchwordError } from '../errors.ts';
import { printable } from '../printable.ts';
import { hitJson, productJson } from '../report/product.ts';
import { moment, plural, table, time } from '../report/text.ts';
import { findProduct } from '../store/find-product.ts';
import { createHistory, productAsOf } from '../store/history.ts';
import { eventSource } from '../store/source.ts';
import type { CommandContext } from './shared/context.ts';
import { colours, print, printLine, wholeNumber } from './shared/format.ts';
import { readMirror } from './shared/mirror.ts';

interface Options {
  readonly history?: boolean;
  readonly at?: number;
  readonly json?: boolean;
}

function productCommand(context: CommandContext): Command {
  return new Command('product')
    .argument('<vbid>', 'its key, or an ISBN')
    .option('--history', 'print its changes, newest first')
    .option('--at <seq>', 'show what it was right after this change', wholeNumber('--at', 1))
    .option('--json', 'print one JSON document')
    .action((key: string, options: Options) =>
      readMirror(context, (store, config) => {
        const found = findProduct(store, key);
        if (found === undefined) {
          throw new CatchwordError('NOT_FOUND', `the mirror has no product ${key}`, {
            hint: 'Search for it with: npx catchword search <words>.',
          });
        }
        const row = options.at === undefined ? found : productAsOf(store, found, options.at);
        const { vbid, title, removedAt, changedSeq } = row;
        const body = removedAt === null ? row.body : null;
        const all = options.history ? createHistory(store).of(vbid) : undefined;
        const changes = all?.filter(({ seq }) => seq <= changedSeq);
        if (options.json) {
          const source = eventSource(store.source, configuredSource(config.baseUrl));
          const events = changes?.map((change) => eventText(change, store.incarnation, source));
          // Not by printJson: the document contains the body exactly as the service sent it.
          context.stdout.write(`${productJson(row, body, events)}\n`);
          return;
        }
        const c = colours(context, context.stdout);
        const state = removedAt === null ? '' : c.yellow(` (removed ${time(removedAt)})`);
        const rows = changes?.map(({ seq, at, op, runId, before }) => {
          return [seq, moment(at), op, runId, op === 'removed' ? 'the whole product' : before];
        });
        const lines = [
          `${c.bold(vbid)}${title === null ? '' : ` ${printable(title)}`}${state}`,
          `first seen ${time(row.firstSeenAt)}, changed ${time(row.changedAt)}, seq ${changedSeq}`,
          ...(options.at === undefined ? [] : [`as of change ${options.at}`]),
          body === null ? 'it is removed' : indentedJson(body),
          ...(rows === undefined ? [] : ['', table(['seq', 'at (UTC)', 'op', 'run', 'before'], rows)]),
        ];
        printLine(context, lines.join('\n'));
      }),
    );
}

function searchCommand(context: CommandContext): Command {
  return new Command('search')
    .argument('<words...>')
    .option('--limit <n>', 'print at most this many', wholeNumber('--limit', 1), 20)
    .option('--json', 'print one JSON document')
    .action((words: string[], options: { limit: number; json?: boolean }) =>
      readMirror(context, (store) => {
        const hits = store.search(words.join(' '), options.limit);
        const head = ['vbid', 'title', 'publisher', 'format', 'print ISBN', 'e-ISBN'];
        const rows = hits.map((hit) => [hit.vbid, hit.title, hit.publisher, hit.format, hit.printIsbn, hit.eIsbn]);
        const lines = hits.length === 0 ? ['nothing found'] : [table(head, rows)];
        if (hits.length === options.limit)
          lines.push(`the first ${plural(hits.length, 'product')}; --limit shows more`);
        print(context, options, hits.map(hitJson), lines);
      }),
    );
}

export function productCommands(context: CommandContext): Command[] {
  return [productCommand(context), searchCommand(context)];
}
