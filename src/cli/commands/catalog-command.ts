import { CatchwordError, usageError } from '@catchword/base/errors';
import { oneLine } from '@catchword/catalog/event';
import { bodyAt } from '@catchword/catalog/page-items';
import { readPages } from 'catchword-client/products/read-pages';
import { Command } from 'commander';
import { count, plural, time } from '../../report/text.ts';
import type { CommandContext } from './shared/command-context.ts';
import { drained, isoMoment, wholeNumber } from './shared/output-format.ts';
import { withService } from './shared/service-connection.ts';

interface Options {
  readonly from?: number;
  readonly until?: number;
  readonly page?: number;
  readonly perPage?: number;
}

const HELP = `
Prints each item as the service sent it, one a line. It needs no mirror and changes none, and it keeps the rate limit of
the other commands. The catalog changes while it is read: products move between pages, so some may be printed twice or
not at all. catchword sync makes an exact copy.

  catchword catalog --from 2026-11-20T02:00:00Z | jq .vbid
  catchword catalog --page 3 --per-page 100`;

const INEXACT =
  'The totals of the pages differ: products may be missing, or printed twice. catchword sync makes an exact copy.';

async function printItems(context: CommandContext, { from, until, page, perPage }: Options): Promise<void> {
  if (from !== undefined && until !== undefined && until < from) {
    throw usageError('--until is before --from', 'Exchange the two times.');
  }
  const { stdout, stderr, signal } = context;
  await withService(context, async ({ caller }, config) => {
    const range = { from: from ?? null, until: until ?? null, page, perPage: perPage ?? config.perPage };
    let [pages, printed] = [0, 0];
    const totals = new Set<number>();
    try {
      for await (const { items, envelope, sourceTime } of readPages(caller, config, range, signal)) {
        const lines = Array.from({ length: items.count }, (_, at) => `${oneLine(bodyAt(items, at))}\n`).join('');
        if (lines !== '' && !stdout.write(lines)) await drained(context);
        pages++;
        printed += items.count;
        const { numItems, totalPages } = envelope;
        totals.add(numItems);
        const isLast = page !== undefined || envelope.page >= totalPages;
        if (!isLast) continue;
        if (page === undefined) totals.add(printed);
        const at = sourceTime === null ? '' : `, answered at ${time(sourceTime)}`;
        const of = `${plural(pages, 'page')} of ${count(totalPages)}, ${count(printed)} of ${plural(numItems, 'product')}`;
        stderr.write(`${of}${at}\n`);
      }
    } catch (error) {
      if (!(error instanceof CatchwordError) || pages === 0) throw error;
      throw error.with({ message: `${error.message}, after ${plural(pages, 'page')}` });
    }
    if (totals.size > 1) stderr.write(`${INEXACT}\n`);
  });
}

export function catalogCommand(context: CommandContext): Command {
  return new Command('catalog')
    .option('--from <time>', 'read what changed since this time (ISO 8601, UTC by default)', isoMoment('--from'))
    .option('--until <time>', 'read what changed until this time', isoMoment('--until'))
    .option('--page <n>', 'read only this page; 1 is the first', wholeNumber('--page', 1))
    .option('--per-page <n>', 'products per page (default: CATCHWORD_PER_PAGE)', wholeNumber('--per-page', 1, 1000))
    .option('--json', 'accepted; the output is always NDJSON')
    .addHelpText('after', HELP)
    .action((options: Options) => printItems(context, options));
}
