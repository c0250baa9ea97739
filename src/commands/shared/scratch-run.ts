import type { SourceConfig } from '../../config.ts';
import { type ScratchMirror, withScratchMirror } from '../../roles/scratch-mirror.ts';
import type { Store } from '../../store/store.ts';
import type { CommandContext } from './context.ts';
import { quietLog, toPerson } from './notices.ts';
import { showProgress } from './progress.ts';

/** Reads the source into a scratch mirror and shows the progress. @param mirror the real one; null if there is none */
export async function scratchRun(
  context: CommandContext,
  config: SourceConfig,
  mirror: Store | null,
  now: boolean | undefined,
  work: (scratch: ScratchMirror) => Promise<void>,
): Promise<void> {
  const { clock, signal } = context;
  const log = quietLog(context, config.logLevel);
  const { update: onProgress, waits: onSettle, stop } = showProgress(context);
  try {
    const tell = toPerson(context);
    await withScratchMirror({ config, clock, log, tell, now, mirror, signal, onProgress, onSettle }, work);
  } finally {
    stop();
  }
}
