import { type Service, startTogether, stopAll } from '../../base/lifecycle.ts';
import { sourceIdentity } from '../../catalog/source-identity.ts';
import { checkPause } from '../../operate/decisions/check-pause.ts';
import type { PageQueue } from '../../queue/queue-port.ts';
import type { Store } from '../../store/store.ts';
import { recheck, type SampleAnswer } from '../../sync/recheck-held.ts';
import { requireSameSource } from '../../sync/source-binding.ts';
import { type PipelineOptions, startEmbeddedQueue, startFetcherService, startRedisQueue } from './pipeline.ts';

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
  options: PipelineOptions,
  store: Store,
  runId: number,
  most: number,
  signal: AbortSignal,
): Promise<SampleAnswer | null> {
  const { config, clock } = options;
  if (config.lookupPath === undefined) return null;
  requireSameSource(store, sourceIdentity(config));
  checkPause(store, clock.now());
  const lookups = await startLookups(options, store);
  try {
    return await recheck(store, runId, most, { queue: lookups.queue, clock, signal });
  } finally {
    await lookups.stop();
  }
}
