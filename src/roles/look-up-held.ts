import { sourceIdentity } from '../catalog/source.ts';
import { checkPause } from '../operator/check-pause.ts';
import type { Store } from '../store/store.ts';
import { recheck } from '../sync/recheck-held.ts';
import { requireSameSource } from '../sync/source.ts';
import { type PipelineOptions, startEmbeddedQueue } from './pipeline.ts';

/**
 * Looks up the products that a held run would remove, with a queue of its own: that of the keeper has one consumer, the
 * run under way. Keeps the pace that the processes of the mirror share.
 * @returns ids of those that still exist; none without a lookup path
 * @throws CatchwordError MIRROR_OTHER_SOURCE, SOURCE_RATE_LIMITED; as `recheck`
 */
export async function lookUpHeld(
  options: PipelineOptions,
  store: Store,
  runId: number,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const { config, clock } = options;
  if (config.lookupPath === undefined) return [];
  requireSameSource(store, sourceIdentity(config));
  checkPause(store, clock.now());
  const lookups = startEmbeddedQueue(options, store);
  try {
    return await recheck(store, lookups.queue, runId, signal);
  } finally {
    await lookups.stop();
  }
}
