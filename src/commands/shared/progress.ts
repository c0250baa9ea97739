import { Presets, SingleBar } from 'cli-progress';
import type { Progress } from '../../sync/execute-run.ts';
import type { CommandContext } from './context.ts';
import { count, duration, isTerminal } from './format.ts';
import { settlingText } from './settling.ts';

const RUNNING = { settlesAt: null, missing: 0 };

/** A wait that is shorter needs no word. */
const LONG_WAIT_MS = 5_000;

function sayWait(context: CommandContext, settling: NonNullable<Progress['settling']>): void {
  if ((settling.settlesAt ?? 0) - context.clock.now() <= LONG_WAIT_MS) return;
  context.stderr.write(`${settlingText(settling)}\n`);
}

/** Elsewhere than on a terminal, one line says why nothing goes on for a while. */
function showWaits(context: CommandContext): ProgressDisplay {
  let shown = false;
  return {
    update: ({ settling }) => {
      if (settling !== null && !shown) sayWait(context, settling);
      shown = settling !== null;
    },
    waits: (settling) => sayWait(context, settling),
    stop: () => {},
  };
}

/** Shows how a run goes on: a bar on a terminal, and elsewhere only what it waits for (logs say the rest there). */
export interface ProgressDisplay {
  readonly update: (progress: Progress) => void;
  /** Says that nothing goes on for a while, where no run does. */
  waits(settling: NonNullable<Progress['settling']>): void;
  stop(): void;
}

export function showProgress(context: CommandContext): ProgressDisplay {
  if (!isTerminal(context.stderr)) return showWaits(context);
  const startedAt = context.clock.now();
  let first: Progress | undefined;
  const bar = new SingleBar(
    {
      stream: context.stderr,
      format: '{kind} {bar} {value}/{total} pages · {speed} products/s · {requests} requests · {left}',
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
        bar.start(progress.pagesKnown, progress.pages, {
          kind: progress.kind,
          speed: '–',
          requests: 0,
          left: '– left',
        });
      }
      const seconds = Math.max(0.001, (context.clock.now() - startedAt) / 1000);
      const pagesHere = progress.pages - first.pages;
      const leftMs = pagesHere === 0 ? null : ((progress.pagesKnown - progress.pages) / pagesHere) * seconds * 1000;
      bar.setTotal(progress.pagesKnown);
      bar.update(progress.pages, {
        kind: progress.pass > 0 ? `${progress.kind}, changes since` : progress.kind,
        speed: count(Math.round((progress.items - first.items) / seconds)),
        requests: count(progress.requests),
        left: settlingText(progress.settling ?? RUNNING) ?? `${leftMs === null ? '–' : duration(leftMs)} left`,
      });
    },
    waits: (settling) => bar.update({ left: settlingText(settling) }),
    stop: () => bar.stop(),
  };
}
