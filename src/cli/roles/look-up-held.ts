import { type Service, startTogether, stopAll } from '../../base/lifecycle.ts';
import { sourceIdentity } from '../../catalog/source-identity.ts';
import { checkPause } from '../../operate/decisions/check-pause.ts';
import type { PageQueue } from '../../queue/queue-port.ts';
import { type Config, requireSource } from '../../settings/config.ts';
import type { Store } from '../../store/store.ts';
import { recheck, type SampleAnswer } from '../../sync/recheck-held.ts';
import { requireSameSource } from '../../sync/source-binding.ts';
import {
  type PipelineOptions,
  type RoleOptions,
  startEmbeddedQueue,
  startFetcherService,
  startRedisQueue,
} from './pipeline.ts';

/** With Redis, the lookups go through the queue of the fetchers, which have most of the rate, and nothing to do meanwhile. */
async function startLookups(options: PipelineOptions, store: Store): Promise<Service & { readonly queue: PageQueue }> {
  const { redisUrl } = options.config;
  if (redisUrl === undefined) return startEmbeddedQueue(options, store);
  return await startTogether(async (services) => {
    const pages = await startRedisQueue(options, redisUrl, store, store);
    services.push(pages);
    services.push(await startFetcherService(options, redisUrl, undefined, pages.queue));
    return { name: 'lookups', queue: pages.queue, stop: () => stopAll(services) };
  });
}

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
  const lookups = await startLookups(options, store);
  try {
    return await recheck(store, runId, most, { queue: lookups.queue, clock, signal });
  } finally {
    await lookups.stop();
  }
}
