import { Presets, SingleBar } from 'cli-progress';
import type { Progress } from '../sync/keeper.ts';
import type { CommandContext } from './context.ts';
import { count, duration, isTerminal } from './format.ts';

/** Shows how a run goes on: a bar on a terminal, nothing elsewhere (logs say it there). */
export interface ProgressDisplay {
  readonly update: (progress: Progress) => void;
  stop(): void;
}

export function showProgress(context: CommandContext): ProgressDisplay {
  if (!isTerminal(context.stderr)) return { update: () => {}, stop: () => {} };
  const startedAt = context.clock.now();
  let first: Progress | undefined;
  const bar = new SingleBar(
    {
      stream: context.stderr,
      format: '{kind} {bar} {value}/{total} pages · {speed} products/s · {requests} requests · {left} left',
      barsize: 24,
      hideCursor: true,
      clearOnComplete: true,
      fps: 10,
    },
    Presets.shades_classic,
  );
  return {
    update: (progress) => {
      if (first === undefined) {
        first = progress;
        bar.start(progress.pagesKnown, progress.pages, { kind: progress.kind, speed: '–', requests: 0, left: '–' });
      }
      const seconds = Math.max(0.001, (context.clock.now() - startedAt) / 1000);
      const pagesHere = progress.pages - first.pages;
      const leftMs = pagesHere === 0 ? null : ((progress.pagesKnown - progress.pages) / pagesHere) * seconds * 1000;
      bar.setTotal(progress.pagesKnown);
      bar.update(progress.pages, {
        kind: progress.pass > 0 ? `${progress.kind}, changes since` : progress.kind,
        speed: count(Math.round((progress.items - first.items) / seconds)),
        requests: count(progress.requests),
        left: leftMs === null ? '–' : duration(leftMs),
      });
    },
    stop: () => bar.stop(),
  };
}
