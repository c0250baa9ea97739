import { setImmediate as nextTurn } from 'node:timers/promises';
import { printable } from '@catchword/base/printable';
import { configuredSource, eventText } from '@catchword/catalog/event';
import { CHANGE_OPS, type ChangeFilter } from '@catchword/catalog/run-types';
import type { Config } from '@catchword/settings/config';
import { Command, Option } from 'commander';
import { approvedTo } from '../../state/mirror-state.ts';
import { requireKnownSeq } from '../../store/history/history.ts';
import { eventSource } from '../../store/rows/source-state.ts';
import type { Store } from '../../store/store.ts';
import { createViewReader } from '../../view/read-view.ts';
import { type GivenView, readerView } from '../../view/view.ts';
import type { CommandContext } from './shared/command-context.ts';
import { drained, isoMoment, wholeNumber } from './shared/output-format.ts';
import { watchReader } from './shared/stdout-reader.ts';
import { onMirror } from './shared/with-mirror.ts';

/** Changes read at once. The next batch waits until stdout takes this one, so memory stays flat. */
const BATCH = 500;
/** How often `--follow` looks for new changes; milliseconds. */
const FOLLOW_MS = 500;

interface Options extends ChangeFilter, GivenView {
  readonly after: number;
  readonly to?: number;
  readonly since?: number;
  readonly limit?: number;
  readonly follow?: boolean;
  readonly approved?: boolean;
}

async function printChanges(
  context: CommandContext,
  {
    after,
    to: upTo = Number.MAX_SAFE_INTEGER,
    since = 0,
    limit = Number.POSITIVE_INFINITY,
    follow,
    approved,
    ...filter
  }: Options,
  store: Store,
  { baseUrl }: Config,
): Promise<void> {
  requireKnownSeq('--after', after, store.changes.lastSeq());
  const view = readerView(filter, '--');
  const reader = createViewReader(store);
  const source = eventSource(store.source, configuredSource(baseUrl));
  const readerIsGone = follow ? await watchReader(context.stdout) : () => false;
  let cursor = Math.max(after, store.changes.seqAt(since));
  let left = limit;
  while (left > 0 && !context.signal.aborted) {
    const { changes, to } = reader.changes(cursor, BATCH, left, filter, view);
    const last = approved === true ? Math.min(upTo, approvedTo(store)) : upTo;
    const due = changes.filter(({ seq }) => seq <= last);
    for (const change of due) {
      const hasRoom = context.stdout.write(`${eventText(change, store.incarnation, source)}\n`);
      if (!hasRoom) await drained(context);
      if (context.signal.aborted) break;
    }
    left -= due.length;
    // Lets a signal arrive, also while nothing matches or stdout takes everything at once.
    await nextTurn();
    const isRead = to === cursor || cursor >= last;
    cursor = Math.min(to, Math.max(cursor, last));
    if (!isRead) continue;
    if (!follow || readerIsGone() || cursor >= upTo) break;
    store.check();
    await context.clock.sleep(FOLLOW_MS, context.signal).catch(() => {});
  }
  const { count = 0, last } = view?.failures() ?? {};
  if (count > 0) context.stderr.write(`failures of --where or --fields: ${count}, last ${printable(`${last}`)}\n`);
}

export function changesCommand(context: CommandContext): Command {
  return new Command('changes')
    .option('--after <seq>', 'print only changes after this one', wholeNumber('--after', 0), 0)
    .option('--to <seq>', 'print only changes up to this one', wholeNumber('--to', 0))
    .option('--since <time>', 'print only changes since this time (ISO 8601, UTC by default)', isoMoment('--since'))
    .addOption(new Option('--op <op...>', 'print only these').choices(CHANGE_OPS))
    .option('--field <name...>', 'print only changes of one of these fields, such as variants')
    .option('--where <sql>', 'print what a reader sees of the products for which this is true')
    .option('--fields <list>', 'print only these members, or what an SQL expression yields')
    .option('--limit <n>', 'print at most this many', wholeNumber('--limit', 1))
    .option('--approved', 'print only changes before an unusual run that is still a problem')
    .option('--follow', 'keep printing new changes until interrupted')
    .option('--json', 'accepted; the output is always NDJSON')
    .action((options: Options) =>
      onMirror(context, 'read', (store, config) => printChanges(context, options, store, config)),
    );
}
