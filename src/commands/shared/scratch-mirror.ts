import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isWithdrawnBody } from '../../catalog/product.ts';
import type { Run, RunRequest } from '../../catalog/run.ts';
import { deltaFrom } from '../../catalog/watermark.ts';
import type { SourceConfig } from '../../config.ts';
import { CatchwordError } from '../../errors.ts';
import type { Store } from '../../store/store.ts';
import { compareMirrors } from '../../sync/compare-mirrors.ts';
import { commandLog } from './command-log.ts';
import type { CommandContext } from './context.ts';
import { startKeeper } from './pipeline.ts';
import { showProgress } from './progress.ts';
import { toPerson } from './rate-limit.ts';

/** A mirror made for the moment: what the source shows now. */
export interface Aside {
  readonly store: Store;
  run(request: RunRequest): Promise<Run>;
  /**
   * Reads what changed since a full run began, after a wait, if `here` has products that the run did not see: deltas may be
   * late, and what they have not told of yet would look as if it were gone.
   * @param since the delta begins here, less the overlap, or where the full run began; milliseconds since 1970
   * @returns the delta's run; null where there was nothing to wait for
   */
  settle(full: Run, here: Store, since?: number): Promise<Run | null>;
}

/** Products that only `here` has, and that were not announced as withdrawn. */
function countAbsent(here: Store, there: Store, ignoreFields: SourceConfig['ignoreFields']): number {
  let absent = 0;
  for (const found of compareMirrors(here, there, ignoreFields)) {
    if (found.kind === 'only-here' && !isWithdrawnBody(found.body)) absent++;
  }
  return absent;
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
    async function run(request: RunRequest): Promise<Run> {
      const made = await service.keeper.run(request, context.signal);
      if (made === null) throw new CatchwordError('NOT_FOUND', 'the run was not started');
      return made;
    }
    async function settle(full: Run, here: Store, since = Number.POSITIVE_INFINITY): Promise<Run | null> {
      const { deltaOverlapMs: overlapMs } = config;
      const missing = countAbsent(here, service.store, config.ignoreFields);
      if (missing === 0) return null;
      display.waits({ settlesAt: context.clock.now() + overlapMs, missing });
      await context.clock.sleep(overlapMs, context.signal);
      const began = full.sourceTime ?? full.startedAt;
      return await run({ kind: 'delta', from: deltaFrom(Math.min(since, began), overlapMs) });
    }
    try {
      return await work({ store: service.store, run, settle });
    } finally {
      await service.stop();
    }
  } finally {
    display.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}
