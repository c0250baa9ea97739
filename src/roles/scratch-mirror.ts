import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isWithdrawnBody } from '../catalog/product.ts';
import type { Run, RunRequest } from '../catalog/run.ts';
import { deltaFrom } from '../catalog/watermark.ts';
import { CatchwordError } from '../errors.ts';
import { openStore, type Store } from '../store/store.ts';
import { compareMirrors } from '../sync/compare-mirrors.ts';
import { type KeeperOptions, startKeeper } from './pipeline.ts';

/** A temporary mirror that shows what the source holds now. */
export interface ScratchMirror {
  readonly store: Store;
  /** The real mirror, or an empty one if there is none yet. */
  readonly mirror: Store;
  readonly run: (request: RunRequest) => Promise<Run>;
  /**
   * If the mirror has products that a full run did not see, waits for late deltas and reads what changed meanwhile.
   * @param since the delta begins here, or when the full run began, whichever is earlier; milliseconds since 1970
   * @returns the delta's run; null if nothing is missing
   */
  readonly settle: (full: Run, since?: number) => Promise<Run | null>;
}

export interface ScratchOptions extends Omit<KeeperOptions, 'fetching' | 'paceIn' | 'adopting'> {
  /** The real mirror, whose pace is kept; null if there is none yet. */
  readonly mirror: Store | null;
  readonly signal: AbortSignal;
  /** Called before a wait for late deltas. */
  readonly onSettle: (settling: Pick<Run, 'settlesAt' | 'missing'>) => void;
}

/**
 * Reads the source into a temporary mirror, as a run would, and leaves the real one unchanged. Needs as much disk space
 * as what is read.
 */
export async function withScratchMirror<T>(
  { mirror: real, signal, onSettle, ...options }: ScratchOptions,
  work: (scratch: ScratchMirror) => Promise<T>,
): Promise<T> {
  const { config, clock } = options;
  const { deltaOverlapMs: overlapMs, ignoreFields } = config;
  const directory = mkdtempSync(join(tmpdir(), 'catchword-scratch-'));
  let empty: Store | null = null;
  try {
    empty = real === null ? openStore(join(directory, 'empty.db')) : null;
    const mirror = real ?? (empty as Store);
    const kept = await startKeeper({
      ...options,
      config: { ...config, db: join(directory, 'catalog.db') },
      fetching: true,
      paceIn: real ?? undefined,
    });
    const { store, keeper } = kept;
    async function run(request: RunRequest): Promise<Run> {
      const made = await keeper.run(request, signal);
      if (made === null) throw new CatchwordError('NOT_FOUND', 'the run was not started');
      return made;
    }
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
    try {
      return await work({ store, mirror, run, settle });
    } finally {
      await kept.stop();
    }
  } finally {
    try {
      empty?.close();
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }
}
