import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CatchwordError } from '@catchword/base/errors';
import { startTogether, stopAll } from '@catchword/base/lifecycle';
import { createIdSet } from '@catchword/catalog/id-set';
import type { Run, RunRequest } from '@catchword/catalog/run-types';
import { copyForScratch } from '../../store/file/copy-mirror.ts';
import { writeUnder } from '../../store/schema/lease.ts';
import { openStore, type Store } from '../../store/store.ts';
import { type KeeperOptions, startKeeper } from './pipeline.ts';

export interface ScratchOptions extends Omit<KeeperOptions, 'fetching' | 'paceIn' | 'adopting'> {
  /** The real mirror, whose pace is kept; null if there is none yet. */
  readonly mirror: Store | null;
  /** Whether the scratch mirror begins as a copy of the real one: a product that has not changed then costs little. */
  readonly copies: boolean;
  readonly signal: AbortSignal;
}

/** Removes from a scratch mirror what its full run did not see: an open run keeps these products, and a held one, too. */
function removeUnseen({ keeperLease, products, runs }: Store, { id }: Run, nowMs: number): void {
  const seen = createIdSet(products.lastId());
  for (const ids of runs.eachIds(id)) seen.addAll(ids);
  writeUnder(keeperLease, nowMs, ({ removals }) => removals.remove(removals.unseen(seen), id, nowMs));
}

async function startScratchMirror({ mirror: real, copies, signal, ...options }: ScratchOptions) {
  const { config, clock } = options;
  return await startTogether(async (services) => {
    const directory = mkdtempSync(join(tmpdir(), 'catchword-scratch-'));
    services.push({ name: 'directory', stop: async () => rmSync(directory, { recursive: true, force: true }) });
    const mirror = real ?? openStore(join(directory, 'empty.db'));
    if (real === null) services.push({ name: 'empty mirror', stop: async () => mirror.close() });
    const db = join(directory, 'catalog.db');
    if (copies && real !== null) copyForScratch(real.path, db);
    // A run that only compares is not one of the mirror.
    const own = { ...config, db, heartbeatUrl: undefined };
    const kept = await startKeeper({ ...options, config: own, fetching: true, paceIn: real ?? undefined });
    services.push(kept);
    const { store, keeper } = kept;
    const copiedAt = copies && real !== null ? store.changes.lastSeq() : null;
    async function run(request: RunRequest): Promise<Run> {
      const made = await keeper.run(request, signal);
      if (made === null) throw new CatchwordError('NOT_FOUND', 'the run was not started');
      if (made.kind === 'full') removeUnseen(store, made, clock.now());
      return made;
    }
    return { store, mirror, copiedAt, run, stop: () => stopAll(services) };
  });
}

/**
 * A temporary mirror (`store`) that shows what the source holds now, and the real one, or an empty one (`mirror`).
 * `copiedAt` is the newest change of the copy with which it began; null if it began empty.
 */
export type ScratchMirror = Awaited<ReturnType<typeof startScratchMirror>>;

/**
 * Reads the source into a temporary mirror, as a run would, and leaves the real one unchanged. Needs as much disk space
 * as the real one, or as what is read.
 */
export async function withScratchMirror(options: ScratchOptions, work: (scratch: ScratchMirror) => Promise<void>) {
  const scratch = await startScratchMirror(options);
  try {
    await work(scratch);
  } finally {
    await scratch.stop();
  }
}
