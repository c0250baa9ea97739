import { sourceIdentity } from '../../catalog/source-identity.ts';
import { checkPause } from '../../operate/decisions/check-pause.ts';
import { type Config, requireSource } from '../../settings/config.ts';
import type { Store } from '../../store/store.ts';
import { recheck, type SampleAnswer } from '../../sync/recheck-held.ts';
import { requireSameSource } from '../../sync/source-binding.ts';
import { type PipelineOptions, type RoleOptions, startQueue } from './pipeline.ts';

/**
 * Looks up the products that a held run would remove, with a queue of its own: the queue of the keeper has one consumer, the
 * run under way. Keeps the pace that the processes of the mirror share.
 * @returns null without a lookup path
 * @throws CatchwordError MIRROR_OTHER_SOURCE, SOURCE_RATE_LIMITED, QUEUE_UNAVAILABLE; as `recheck`
 */
export async function lookUpHeld(
  given: RoleOptions<Config> & Pick<PipelineOptions, 'tell'>,
  store: Store,
  runId: number,
  most: number,
  signal: AbortSignal,
): Promise<SampleAnswer | null> {
  // Then nothing is requested, and the settings of a source are not needed.
  if (given.config.lookupPath === undefined) return null;
  const options = { ...given, config: requireSource(given.config) };
  const { config, clock } = options;
  requireSameSource(store, sourceIdentity(config));
  checkPause(store, clock.now());
  // With Redis, the lookups go through the queue of the fetchers, which have most of the rate, and nothing to do meanwhile.
  const lookups = await startQueue({ ...options, fetching: true }, store, store);
  try {
    return await recheck(store, runId, most, { queue: lookups.queue, clock, signal });
  } finally {
    await lookups.stop();
  }
}
