import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CatchwordError } from '../../base/errors.ts';
import { startTogether, stopAll } from '../../base/lifecycle.ts';
import { isWithdrawnBody } from '../../catalog/field-values.ts';
import type { Run, RunRequest } from '../../catalog/run-types.ts';
import { deltaFrom } from '../../proof/watermark.ts';
import { openStore, type Store } from '../../store/store.ts';
import { compareMirrors } from '../../sync/compare-mirrors.ts';
import { type KeeperOptions, startKeeper } from './pipeline.ts';

export interface ScratchOptions extends Omit<KeeperOptions, 'fetching' | 'paceIn' | 'adopting'> {
  /** The real mirror, whose pace is kept; null if there is none yet. */
  readonly mirror: Store | null;
  readonly signal: AbortSignal;
  /** Called before a wait for late deltas. */
  readonly onSettle: (settling: Pick<Run, 'settlesAt' | 'missing'>) => void;
}

async function startScratchMirror({ mirror: real, signal, onSettle, ...options }: ScratchOptions) {
  const { config, clock } = options;
  const { deltaOverlapMs: overlapMs, ignoreFields } = config;
  return await startTogether(async (services) => {
    const directory = mkdtempSync(join(tmpdir(), 'catchword-scratch-'));
    services.push({ name: 'directory', stop: async () => rmSync(directory, { recursive: true, force: true }) });
    const mirror = real ?? openStore(join(directory, 'empty.db'));
    if (real === null) services.push({ name: 'empty mirror', stop: async () => mirror.close() });
    // A run that only compares is not one of the mirror.
    const own = { ...config, db: join(directory, 'catalog.db'), heartbeatUrl: undefined };
    const kept = await startKeeper({ ...options, config: own, fetching: true, paceIn: real ?? undefined });
    services.push(kept);
    const { store, keeper } = kept;
    async function run(request: RunRequest): Promise<Run> {
      const made = await keeper.run(request, signal);
      if (made === null) throw new CatchwordError('NOT_FOUND', 'the run was not started');
      return made;
    }
    /**
     * If the mirror has products that a full run did not see, waits for late deltas and reads what changed meanwhile.
     * @param since the delta begins here, or when the full run began, whichever is earlier; milliseconds since 1970
     * @returns the delta's run; null if nothing is missing
     */
    async function settle(full: Run, since = Number.POSITIVE_INFINITY): Promise<Run | null> {
      let missing = 0;
      for (const found of compareMirrors(mirror, store, ignoreFields)) {
        if (found.kind === 'only-here' && !isWithdrawnBody(found.body)) missing++;
      }
      if (missing === 0) return null;
      onSettle({ settlesAt: clock.now() + overlapMs, missing });
      await clock.sleep(overlapMs, signal);
      const began = full.sourceTime ?? full.startedAt;
      return await run({ kind: 'delta', from: deltaFrom(Math.min(since, began), overlapMs) });
    }
    return { store, mirror, run, settle, stop: () => stopAll(services) };
  });
}

/** A temporary mirror (`store`) that shows what the source holds now, and the real one, or an empty one (`mirror`). */
export type ScratchMirror = Awaited<ReturnType<typeof startScratchMirror>>;

/**
 * Reads the source into a temporary mirror, as a run would, and leaves the real one unchanged. Needs as much disk space
 * as what is read.
 */
export async function withScratchMirror(options: ScratchOptions, work: (scratch: ScratchMirror) => Promise<void>) {
  const scratch = await startScratchMirror(options);
  try {
    await work(scratch);
  } finally {
    await scratch.stop();
  }
}
