import { once } from 'node:events';
import { fstatSync } from 'node:fs';
import { Command } from 'commander';
import { eventText } from '../catalog/event.ts';
import { sourceAddress } from '../catalog/source.ts';
import type { Config } from '../config.ts';
import { createHistory, requireKnownSeq } from '../store/history.ts';
import { eventSource } from '../store/source.ts';
import { openStore } from '../store/store.ts';
import type { CommandContext } from './shared/context.ts';
import { wholeNumber } from './shared/format.ts';
import { loadSettings } from './shared/settings.ts';
import { watchReader } from './shared/stdout-reader.ts';

/** Records read at once: a slow reader of stdout holds up the next read, so memory stays flat. */
const BATCH = 500;
/** How often a follower looks for new records. */
const FOLLOW_MS = 500;

/** The `source` of events where the mirror has not noted its own yet. */
export function configuredSource({ baseUrl }: Config): string {
  return `${baseUrl === undefined ? '' : sourceAddress(baseUrl)}/v4/products`;
}

/** Resolves when stdout takes more, or nobody waits for it any longer. */
async function drained({ stdout, signal }: CommandContext): Promise<void> {
  try {
    await once(stdout, 'drain', { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Whether the reader of stdout went away; a file or a terminal has none that could. */
async function readerOf(stdout: NodeJS.WritableStream): Promise<() => boolean> {
  const fd = 'fd' in stdout && typeof stdout.fd === 'number' ? stdout.fd : null;
  if (fd === null) return () => false;
  const kind = fstatSync(fd);
  return kind.isFIFO() || kind.isSocket() ? await watchReader(fd) : () => false;
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
  const config = loadSettings(context, 'nothing');
  const store = openStore(config.db, { mustExist: true, forReading: true, mode: config.dbMode });
  try {
    requireKnownSeq('--after', after, store.changes.lastSeq());
    const history = createHistory(store);
    const source = eventSource(store.source, configuredSource(config));
    const readerIsGone = follow ? await readerOf(context.stdout) : () => false;
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
      if (!follow || readerIsGone()) return;
      store.check();
      await context.clock.sleep(FOLLOW_MS, context.signal).catch(() => {});
    }
  } finally {
    store.close();
  }
}

export function changesCommand(context: CommandContext): Command {
  return new Command('changes')
    .description('print the change log as CloudEvents, one a line, oldest first')
    .option('--after <seq>', 'print only changes after this one', wholeNumber('--after', 0), 0)
    .option('--limit <n>', 'print at most so many', wholeNumber('--limit', 1))
    .option('--follow', 'keep printing new changes until interrupted')
    .option('--json', 'accepted; the output is always NDJSON')
    .action((options: Options) => print(context, options));
}
