import { Presets, SingleBar } from 'cli-progress';
import type { Progress } from '../../sync/keeper.ts';
import type { CommandContext } from './context.ts';
import { count, duration, isTerminal, settlingText } from './format.ts';

type Settling = NonNullable<Progress['settling']>;

/** A shorter wait is not mentioned. */
const LONG_WAIT_MS = 5_000;

/** Shows the progress of a run: as a bar on a terminal, otherwise only what the run waits for. */
export interface ProgressDisplay {
  readonly update: (progress: Progress) => void;
  /** Shows a wait between two runs. */
  waits(settling: Settling): void;
  stop(): void;
}

function showWaits(context: CommandContext): ProgressDisplay {
  let shown = false;
  const waits = (settling: Settling): void => {
    if ((settling.settlesAt ?? 0) - context.clock.now() > LONG_WAIT_MS) {
      context.stderr.write(`${settlingText(settling)}\n`);
    }
  };
  return {
    update: ({ settling }) => {
      if (settling !== null && !shown) waits(settling);
      shown = settling !== null;
    },
    waits,
    stop: () => {},
  };
}

export function showProgress(context: CommandContext): ProgressDisplay {
  if (!isTerminal(context.stderr)) return showWaits(context);
  const startedAt = context.clock.now();
  let first: Progress | undefined;
  const format = '{kind} {bar} {value}/{total} pages · {speed} products/s · {requests} requests · {left}';
  const bar = new SingleBar(
    { stream: context.stderr, format, barsize: 24, hideCursor: true, clearOnComplete: true, fps: 10 },
    Presets.shades_classic,
  );
  return {
    update: (progress) => {
      const { kind, pages, pagesKnown, settling } = progress;
      if (first === undefined) {
        first = progress;
        bar.start(pagesKnown, pages, { kind, speed: '–', requests: 0, left: '– left' });
      }
      const seconds = Math.max(0.001, (context.clock.now() - startedAt) / 1000);
      const read = pages - first.pages;
      const left = read === 0 ? '–' : duration(((pagesKnown - pages) / read) * seconds * 1000);
      bar.setTotal(pagesKnown);
      bar.update(pages, {
        kind: progress.pass > 0 ? `${kind}, changes since` : kind,
        speed: count(Math.round((progress.items - first.items) / seconds)),
        requests: count(progress.requests),
        left: (settling && settlingText(settling)) ?? `${left} left`,
      });
    },
    waits: (settling) => bar.update({ left: settlingText(settling) }),
    stop: () => bar.stop(),
  };
}
