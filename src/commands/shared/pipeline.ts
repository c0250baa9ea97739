import { sourceIdentity } from '../../catalog/source.ts';
import { createCatalogClient } from '../../client/catalog-client.ts';
import type { Clock } from '../../clock.ts';
import type { SourceConfig } from '../../config.ts';
import { type Service, stopAfterFailure, stopAll } from '../../lifecycle.ts';
import type { Logger, Tell } from '../../log.ts';
import { paceOf } from '../../pacer.ts';
import { createEmbeddedQueue } from '../../queue/embedded.ts';
import type { PageQueue } from '../../queue/queue.ts';
import { openStore, type Store } from '../../store/store.ts';
import type { Progress } from '../../sync/execute-run.ts';
import { createReadWindow } from '../../sync/fetch-page.ts';
import { createKeeper, type Keeper, type KeeperSettings } from '../../sync/keeper.ts';
import { requireSameSource } from '../../sync/source.ts';
import { forgetPause, mirrorPacer, pausesIn, retryNotice, toLog } from './rate-limit.ts';

/** What every role that talks to the source is given. */
export interface RoleOptions {
  readonly config: SourceConfig;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told of long waits and of what else a person would wonder about; default: the log is. */
  readonly tell?: Tell;
  /** Ask the source although it asked for a pause. */
  readonly now?: boolean | undefined;
}

export interface KeeperService extends Service {
  readonly store: Store;
  readonly keeper: Keeper;
}

export interface KeeperOptions extends RoleOptions {
  /** Fetch in this process too; without Redis it always does. */
  readonly fetching: boolean;
  readonly onProgress?: (progress: Progress) => void;
  /** The mirror that keeps the pace and the pauses of the source; default: the one that is written. */
  readonly paceIn?: Store;
  /** The mirror is about to take the configured address as its source's. */
  readonly adopting?: boolean;
}

/** A retry after less needs no word; milliseconds. */
const LONG_RETRY_MS = 5_000;

/** BullMQ and its Redis client take longer to load than a small delta takes, and most who run one have no Redis. */
const redisParts = {
  redis: () => import('../../queue/bullmq/redis.ts'),
  jobs: () => import('../../queue/bullmq/jobs.ts'),
  queue: () => import('../../queue/bullmq/queue.ts'),
  fetcher: () => import('../../queue/bullmq/fetcher.ts'),
};

function settingsOf(config: SourceConfig): KeeperSettings {
  return {
    perPage: config.perPage,
    seam: config.seam,
    maxPasses: config.maxPasses,
    lookups: config.lookupPath !== undefined,
    removalLimit: config.removalLimit,
    confirmations: config.removalConfirmations,
    withdrawnAs: config.withdrawnAs,
    overlapMs: config.deltaOverlapMs,
    runMaxAgeMs: config.runMaxAgeMs,
    ignoreFields: config.ignoreFields,
    logRetentionMs: config.logRetentionMs,
    logCap: config.logCap,
    lookahead: config.redisUrl === undefined ? 2 * config.concurrency : Math.max(64, 4 * config.concurrency),
    maxAttempts: 8,
    firstAttempts: 3,
    source: sourceIdentity(config),
  };
}

/** Reads pages for a keeper, here or elsewhere, through Redis. */
export async function startFetcherService({ config, clock, log }: RoleOptions, redisUrl: string): Promise<Service> {
  const [{ startFetcher }, { sourceId }] = await Promise.all([redisParts.fetcher(), redisParts.jobs()]);
  const client = createCatalogClient(config, clock);
  try {
    const fetcher = await startFetcher({
      ...{ redisUrl, clock, log, concurrency: config.concurrency },
      read: createReadWindow(client, config.deltaOverlapMs),
      intervalMs: paceOf(config.rateLimit)?.intervalMs ?? null,
      source: sourceId(config.baseUrl),
    });
    const stop = async (): Promise<void> => {
      await fetcher.close();
      await client.close();
    };
    return { name: 'fetcher', stop };
  } catch (error) {
    await client.close();
    throw error;
  }
}

function startEmbedded({ config, clock, log, tell = toLog(log), now }: RoleOptions, paceIn: Store) {
  const pacer = mirrorPacer({ config, clock, tell, now }, paceIn);
  const client = createCatalogClient(config, clock, pacer);
  const queue = createEmbeddedQueue({
    ...{ clock, log, concurrency: config.concurrency },
    read: createReadWindow(client, config.deltaOverlapMs),
    pacer,
    onRetry: (error, delayMs) => {
      if (delayMs > LONG_RETRY_MS) tell(retryNotice(error, delayMs, clock.now()));
    },
  });
  const services: Service[] = [{ name: 'client', stop: () => client.close() }];
  return { queue, services };
}

/** Point lookups in this process, at the pace of any other request. */
export function startLookups(options: RoleOptions, store: Store): { queue: PageQueue; stop: () => Promise<void> } {
  const { queue, services } = startEmbedded(options, store);
  return { queue, stop: () => stopAll([...services, { name: 'queue', stop: () => queue.close() }]) };
}

/**
 * Opens the mirror and everything a run needs: embedded, or through Redis where `REDIS_URL` is set.
 * @throws CatchwordError MIRROR_UNUSABLE, MIRROR_OTHER_SOURCE, QUEUE_UNAVAILABLE, QUEUE_MISCONFIGURED; nothing stays open
 *   then
 */
export async function startKeeper(options: KeeperOptions): Promise<KeeperService> {
  const { config, clock, log, onProgress, tell = toLog(log) } = options;
  if (config.redisUrl !== undefined) await (await redisParts.redis()).checkRedis(config.redisUrl);
  const store = openStore(config.db, { mode: config.dbMode });
  const services: Service[] = [{ name: 'mirror', stop: async () => store.close() }];
  try {
    if (options.adopting !== true) requireSameSource(store, sourceIdentity(config));
    if (options.now === true) forgetPause(store, clock.now(), tell);
    // With Redis, no pacer of this process does so.
    else store.source.keepPause(clock.now());
    let queue: PageQueue;
    if (config.redisUrl === undefined) {
      const embedded = startEmbedded(options, options.paceIn ?? store);
      queue = embedded.queue;
      services.push(...embedded.services);
    } else {
      const { redisUrl } = config;
      const [{ createBullQueue }, { sourceId }] = await Promise.all([redisParts.queue(), redisParts.jobs()]);
      const notedPauses = pausesIn(options.paceIn ?? store, { config, clock, tell });
      const jobs = await createBullQueue({
        ...{ redisUrl, clock, log, source: sourceId(config.baseUrl), mirror: store.incarnation },
        onRateLimited: (pause) => notedPauses.note(pause),
      });
      queue = jobs;
      if (options.now === true) await jobs.forgetPause();
      if (options.fetching) services.push(await startFetcherService(options, redisUrl));
    }
    services.push({ name: 'queue', stop: () => queue.close() });
    const keeper = await createKeeper({
      ...{ store, queue, clock, log, tell, settings: settingsOf(config) },
      ...(onProgress !== undefined && { onProgress }),
    });
    return { name: 'keeper', store, keeper, stop: () => stopAll(services) };
  } catch (error) {
    await stopAfterFailure(services);
    throw error;
  }
}
