import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { SourceConfig } from '@catchword/settings/config';
import type { SingleBar } from 'cli-progress';
import { settlingText } from '../../../report/run-text.ts';
import { count, duration } from '../../../report/text.ts';
import { type Copy, copyApart, copyHere } from '../../../store/file/copy-subprocess.ts';
import type { Progress } from '../../../sync/execute-run.ts';
import type { KeeperOptions } from '../../roles/pipeline.ts';
import type { CommandContext } from './command-context.ts';
import { isTerminal } from './output-format.ts';
import { commandLog, toPerson } from './person-notices.ts';

/** A shorter wait is not mentioned. */
const LONG_WAIT_MS = 5_000;

/** How often the bar looks at a copy; milliseconds. */
const LOOK_MS = 200;

const load = createRequire(import.meta.url);

/** A bar; null if the stream is not a terminal. */
export function progressBar(stream: NodeJS.WritableStream, format: string): SingleBar | null {
  if (!isTerminal(stream)) return null;
  const { Presets, SingleBar } = load('cli-progress') as typeof import('cli-progress');
  const look = { stream, format, barsize: 24, hideCursor: true, clearOnComplete: true };
  return new SingleBar(look, Presets.shades_classic);
}

/** Copies a mirror, and shows a bar on a terminal. The copy may be smaller than the mirror: it has no free pages. */
export function copyWithProgress({ apart, stderr }: CommandContext): Copy {
  const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return async (from, to, signal) => {
    const bar = progressBar(stderr, 'copying and checking {bar} {percentage}%');
    bar?.start(Math.max(1, bytesOf(from)), 0);
    const timer = setInterval(() => bar?.update(bytesOf(to)), LOOK_MS);
    try {
      return await (apart === true ? copyApart : copyHere)(from, to, signal);
    } finally {
      clearInterval(timer);
      bar?.stop();
    }
  };
}

/** Shows a bar on a terminal, and otherwise only long waits. */
function progressDisplay({ clock, stderr }: CommandContext) {
  const startedAt = clock.now();
  const format = '{kind} {bar} {value}/{total} pages · {speed} products/s · {requests} requests · {left}';
  const bar = progressBar(stderr, format);
  let first: Progress | undefined;
  let isSettling = false;

  return {
    update: (progress: Progress): void => {
      const { kind, pages, pagesKnown, settling } = progress;
      if (first === undefined) {
        first = progress;
        bar?.start(pagesKnown, pages, { kind, speed: '–', requests: 0, left: '– left' });
      }
      const seconds = Math.max(0.001, (clock.now() - startedAt) / 1000);
      const read = pages - first.pages;
      const left = read === 0 ? '–' : duration(((pagesKnown - pages) / read) * seconds * 1000);
      const wait = settling && settlingText(settling);
      bar?.setTotal(pagesKnown);
      bar?.update(pages, {
        kind: progress.pass > 0 ? `${kind}, changes since` : kind,
        speed: count(Math.round((progress.items - first.items) / seconds)),
        requests: count(progress.requests),
        left: wait ?? `${left} left`,
      });
      const isLong = (settling?.settlesAt ?? 0) - clock.now() > LONG_WAIT_MS;
      if (bar === null && isLong && !isSettling) stderr.write(`${wait}\n`);
      isSettling = settling !== null;
    },
    stop: (): void => bar?.stop(),
  };
}

/** Shows the progress of runs: as a bar on a terminal, otherwise only what they wait for. The log is quiet. */
export async function withProgress<Result>(
  context: CommandContext,
  config: SourceConfig,
  work: (run: Omit<KeeperOptions, 'fetching'>, display: ReturnType<typeof progressDisplay>) => Promise<Result>,
): Promise<Result> {
  const display = progressDisplay(context);
  // Only errors, unless LOG_LEVEL asks for more.
  const log = commandLog(context, context.environment.LOG_LEVEL ? config.logLevel : 'error');
  const { clock, apart: threads } = context;
  const run = { config, clock, log, tell: toPerson(context), onProgress: display.update, threads };
  try {
    return await work(run, display);
  } finally {
    display.stop();
  }
}
