import { Command } from 'commander';
import { eventText } from '../catalog/event.ts';
import { loadConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { createHistory } from '../store/history.ts';
import { hitJson, productJson } from '../store/product-json.ts';
import { eventSource } from './changes.ts';
import type { CommandContext } from './context.ts';
import { colours, moment, plural, printJson, printLine, table, wholeNumber } from './format.ts';
import { withMirror } from './status.ts';

function productCommand(context: CommandContext): Command {
  return new Command('product')
    .description('one product, its changes, or as it was')
    .argument('<vbid>')
    .option('--history', 'its changes, newest first')
    .option('--at <seq>', 'as it was right after this change', wholeNumber('--at', 1))
    .option('--json', 'print one JSON document')
    .action((vbid: string, options: { history?: boolean; at?: number; json?: boolean }) =>
      withMirror(context, (store) => {
        const row = store.products.get(vbid);
        if (row === undefined) {
          throw new CatchwordError('NOT_FOUND', `the mirror has no product ${vbid}`, {
            hint: 'Look for it with: npx catchword search <words>.',
          });
        }
        const history = createHistory(store);
        const body =
          options.at === undefined ? (row.removedAt === null ? row.body : null) : history.bodyAt(vbid, options.at);
        const changes = options.history ? history.of(vbid) : undefined;
        if (options.json) {
          const source = eventSource(loadConfig(context.environment));
          const events = changes?.map((change) => eventText(change, store.incarnation, source));
          printLine(context, productJson(row, body, events));
          return;
        }
        const c = colours(context, context.stdout);
        const state = row.removedAt === null ? '' : c.yellow(` (removed ${moment(row.removedAt)} UTC)`);
        printLine(context, `${c.bold(vbid)}${row.title === null ? '' : ` ${row.title}`}${state}`);
        printLine(
          context,
          `first seen ${moment(row.firstSeenAt)} UTC, changed ${moment(row.changedAt)} UTC, seq ${row.changedSeq}`,
        );
        printLine(
          context,
          body === null
            ? `it did not exist at ${options.at ?? 'this time'}`
            : JSON.stringify(JSON.parse(body), null, 2),
        );
        if (changes === undefined) return;
        printLine(context);
        printLine(
          context,
          table(
            ['seq', 'at (UTC)', 'op', 'run', 'before'],
            changes.map((change) => [change.seq, moment(change.at), change.op, change.runId, change.before]),
          ),
        );
      }),
    );
}

function searchCommand(context: CommandContext): Command {
  return new Command('search')
    .description('full-text search in title, contributors, publisher and identifiers; word* for beginnings')
    .argument('<words...>')
    .option('--limit <n>', 'how many', wholeNumber('--limit', 1), 20)
    .option('--json', 'print one JSON document')
    .action((words: string[], options: { limit: number; json?: boolean }) =>
      withMirror(context, (store) => {
        const hits = store.search(words.join(' '), options.limit);
        if (options.json) {
          printJson(context, hits.map(hitJson));
          return;
        }
        if (hits.length === 0) printLine(context, 'nothing found');
        else {
          const rows = hits.map((hit) => [hit.vbid, hit.title, hit.publisher, hit.format, hit.printIsbn, hit.eIsbn]);
          printLine(context, table(['vbid', 'title', 'publisher', 'format', 'print ISBN', 'e-ISBN'], rows));
          if (hits.length === options.limit)
            printLine(context, `the first ${plural(hits.length, 'product')}; --limit shows more`);
        }
      }),
    );
}

export function productCommands(context: CommandContext): Command[] {
  return [productCommand(context), searchCommand(context)];
}
