import { Command } from 'commander';
import { eventText } from '../catalog/event.ts';
import { indentedJson } from '../catalog/json-text.ts';
import { columnsOf } from '../catalog/product.ts';
import { CatchwordError } from '../errors.ts';
import { printable } from '../printable.ts';
import { hitJson, productJson } from '../report/product.ts';
import { findProduct } from '../store/find-product.ts';
import { createHistory } from '../store/history.ts';
import type { ProductRow } from '../store/products.ts';
import { eventSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import { configuredSource } from './changes.ts';
import type { CommandContext } from './shared/context.ts';
import { colours, moment, plural, printJson, printLine, table, wholeNumber } from './shared/format.ts';
import { readMirror } from './status.ts';

/**
 * The product as it was right after a change, whatever happened to it since.
 * @throws CatchwordError USAGE for a change that the log does not have yet; NOT_FOUND where the product did not exist
 *   then, or where the log no longer holds what it was
 */
function rowAsOf(store: Store, row: ProductRow, at: number): ProductRow {
  const last = store.changes.lastSeq();
  if (at > last) {
    throw new CatchwordError('USAGE', `--at: ${at} is beyond the newest change, which is ${last}`, {
      hint: `List the changes of this product with: npx catchword product ${row.vbid} --history.`,
    });
  }
  const history = createHistory(store);
  const past = history.asOf(row.vbid, at);
  if (past === null) {
    const first = history.of(row.vbid).at(-1);
    throw new CatchwordError('NOT_FOUND', `${row.vbid} did not exist at change ${at}`, {
      hint: `It was created with change ${first?.seq ?? row.changedSeq}.`,
    });
  }
  const { seq: changedSeq, at: changedAt, op } = past.change;
  const columns = columnsOf(JSON.parse(past.body) as Record<string, unknown>);
  const removedAt = op === 'removed' ? changedAt : null;
  return { ...row, ...columns, body: past.body, changedSeq, changedAt, removedAt };
}

function productCommand(context: CommandContext): Command {
  return new Command('product')
    .description('show one product, its changes, or what it was')
    .argument('<vbid>', 'its key, or an ISBN')
    .option('--history', 'print its changes, newest first')
    .option('--at <seq>', 'what it was right after this change', wholeNumber('--at', 1))
    .option('--json', 'print one JSON document')
    .action((key: string, options: { history?: boolean; at?: number; json?: boolean }) =>
      readMirror(context, (store, config) => {
        const found = findProduct(store, key);
        if (found === undefined) {
          throw new CatchwordError('NOT_FOUND', `the mirror has no product ${key}`, {
            hint: 'Look for it with: npx catchword search <words>.',
          });
        }
        const { vbid } = found;
        const row = options.at === undefined ? found : rowAsOf(store, found, options.at);
        const body = row.removedAt === null ? row.body : null;
        const changes = options.history
          ? createHistory(store)
              .of(vbid)
              .filter(({ seq }) => seq <= row.changedSeq)
          : undefined;
        if (options.json) {
          const source = eventSource(store.source, configuredSource(config));
          const events = changes?.map((change) => eventText(change, store.incarnation, source));
          // Not by printLine: the document holds the body as it was sent.
          context.stdout.write(`${productJson(row, body, events)}\n`);
          return;
        }
        const c = colours(context, context.stdout);
        const state = row.removedAt === null ? '' : c.yellow(` (removed ${moment(row.removedAt)} UTC)`);
        printLine(context, `${c.bold(vbid)}${row.title === null ? '' : ` ${printable(row.title)}`}${state}`);
        printLine(
          context,
          `first seen ${moment(row.firstSeenAt)} UTC, changed ${moment(row.changedAt)} UTC, seq ${row.changedSeq}`,
        );
        if (options.at !== undefined) printLine(context, `as of change ${options.at}`);
        printLine(context, body === null ? 'it is removed' : indentedJson(body));
        if (changes === undefined) return;
        printLine(context);
        printLine(
          context,
          table(
            ['seq', 'at (UTC)', 'op', 'run', 'before'],
            changes.map(({ seq, at, op, runId, before }) => [
              ...[seq, moment(at), op, runId],
              op === 'removed' ? 'the whole product' : before,
            ]),
          ),
        );
      }),
    );
}

function searchCommand(context: CommandContext): Command {
  return new Command('search')
    .description('search titles, contributors, publishers, identifiers; word* for beginnings')
    .argument('<words...>')
    .option('--limit <n>', 'how many', wholeNumber('--limit', 1), 20)
    .option('--json', 'print one JSON document')
    .action((words: string[], options: { limit: number; json?: boolean }) =>
      readMirror(context, (store) => {
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
