import { once } from 'node:events';
import { Command } from 'commander';
import { eventText } from '../catalog/event.ts';
import { type Config, loadConfig } from '../config.ts';
import { createHistory } from '../store/history.ts';
import { openStore } from '../store/store.ts';
import { checkPlace } from '../web/parameters.ts';
import type { CommandContext } from './context.ts';
import { wholeNumber } from './format.ts';

/** Records read at once: a slow reader of stdout holds up the next read, so memory stays flat. */
const BATCH = 500;
/** How often a follower looks for new records. */
const FOLLOW_MS = 500;

/** The `source` of events: where the catalog is read. */
export function eventSource(config: Config): string {
  return `${config.baseUrl ?? ''}/v4/products`;
}

/** Resolves when stdout takes more, or nobody waits for it any longer. */
async function drained({ stdout, signal }: CommandContext): Promise<void> {
  try {
    await once(stdout, 'drain', { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

interface Options {
  readonly after: number;
  readonly limit?: number;
  readonly follow?: boolean;
}

async function print(
  context: CommandContext,
  { after, limit = Number.POSITIVE_INFINITY, follow }: Options,
): Promise<void> {
  const config = loadConfig(context.environment);
  const store = openStore(config.db, { mustExist: true });
  try {
    checkPlace('--after', after, store.changes.lastSeq());
    const history = createHistory(store);
    const source = eventSource(config);
    let cursor = after;
    let left = limit;
    while (left > 0 && !context.signal.aborted) {
      const changes = history.after(cursor, Math.min(BATCH, left));
      for (const change of changes) {
        const room = context.stdout.write(`${eventText(change, store.incarnation, source)}\n`);
        cursor = change.seq;
        if (!room) await drained(context);
        if (context.signal.aborted) break;
      }
      left -= changes.length;
      if (changes.length > 0) continue;
      if (!follow) return;
      store.check();
      await context.clock.sleep(FOLLOW_MS, context.signal).catch(() => {});
    }
  } finally {
    store.close();
  }
}

export function changesCommand(context: CommandContext): Command {
  return new Command('changes')
    .description('the change log as CloudEvents, one JSON document a line, oldest first')
    .option('--after <seq>', 'only changes after this one', wholeNumber('--after', 0), 0)
    .option('--limit <n>', 'at most so many', wholeNumber('--limit', 1))
    .option('--follow', 'go on with new changes until interrupted')
    .option('--json', 'the output is NDJSON in any case')
    .action((options: Options) => print(context, options));
}
