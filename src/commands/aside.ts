import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Run } from '../catalog/run.ts';
import type { SourceConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import type { RunRequest } from '../sync/start-run.ts';
import { commandLog } from './command-log.ts';
import type { CommandContext } from './context.ts';
import { toPerson } from './pace.ts';
import { startKeeper } from './pipeline.ts';
import { showProgress } from './progress.ts';

/** A mirror made for the moment: what the source shows now. */
export interface Aside {
  readonly store: Store;
  run(request: RunRequest): Promise<Run>;
}

/**
 * Reads the source with the same windows and the same care as any run, into a mirror of its own in the temporary
 * directory, and leaves the real one alone. Costs as much disk as what is read.
 * @param here the real one, whose pace is kept; null where there is none yet
 * @param now whether to ask the source although it asked for a pause
 */
export async function readAside<T>(
  context: CommandContext,
  config: SourceConfig,
  here: Store | null,
  now: boolean | undefined,
  work: (aside: Aside) => Promise<T>,
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-aside-'));
  const display = showProgress(context);
  try {
    const log = commandLog(context, context.environment.LOG_LEVEL ? config.logLevel : 'error');
    const own = { ...config, db: join(directory, 'catalog.db') };
    const service = await startKeeper({
      ...{ config: own, clock: context.clock, log, fetching: true, tell: toPerson(context), now: now === true },
      ...(here !== null && { paceIn: here }),
      onProgress: display.update,
    });
    try {
      return await work({
        store: service.store,
        run: async (request) => {
          const run = await service.keeper.run(request, context.signal);
          if (run === null) throw new CatchwordError('NOT_FOUND', 'the run was not started');
          return run;
        },
      });
    } finally {
      await service.stop();
    }
  } finally {
    display.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}
