import type { Clock, Pause } from '@catchword/base/clock';
import type { CatchwordError } from '@catchword/base/errors';
import { iso } from '@catchword/base/iso-time';
import { type Service, startTogether, stopAll } from '@catchword/base/lifecycle';
import type { Logger, LogSettings, Tell } from '@catchword/base/log';
import { isPlain } from '@catchword/base/plain';
import { sourceId, sourceIdentity } from '@catchword/catalog/source-identity';
import type { Pacer } from '@catchword/pace/pacer';
import { createEmbeddedQueue } from '@catchword/queue/embedded-queue';
import type { PageQueue, ReadWindow, ValidatePage } from '@catchword/queue/queue-port';
import type { BullQueue } from '@catchword/queue-redis/bull-queue';
import type { RedisTrouble } from '@catchword/queue-redis/redis-trouble';
import { type Config, requireSource, type SourceConfig } from '@catchword/settings/config';
import { createCatalogClient } from 'catchword-client/catalog-client';
import { checkPause } from '../../operate/decisions/check-pause.ts';
import type { EffectiveSetting } from '../../operate/effective-settings.ts';
import { startHeartbeat } from '../../operate/incidents/heartbeat.ts';
import { checkApart } from '../../store/file/copy-subprocess.ts';
import { openStore, type Store, type StoreOptions } from '../../store/store.ts';
import type { Progress } from '../../sync/execute-run.ts';
import { startPageWorker } from '../../sync/fast/page-worker-client.ts';
import { createPageFetcher } from '../../sync/fetch-page.ts';
import { createKeeper } from '../../sync/keeper.ts';
import { recheck, type SampleAnswer } from '../../sync/recheck-held.ts';
import type { RunSettings } from '../../sync/run-settings.ts';
import { fetcherPace, forgetPause, mirrorPacer, pausesIn } from '../../sync/shared-pace.ts';
import { requireSameSource } from '../../sync/source-binding.ts';

/*
 * Assembles what a run needs. BullMQ and its Redis client are imported only if REDIS_URL is set: loading them takes longer
 * than a small delta does.
 */

export interface RoleOptions<C extends Config = SourceConfig> extends Pick<StoreOptions, 'settings'> {
  readonly config: C;
  readonly clock: Clock;
  readonly log: Logger;
  /** How threads log that serve HTTP apart from this one; undefined: HTTP is served in this thread, with `clock`. */
  readonly apart?: LogSettings | undefined;
  /** Trouble log that all parts of the process share; default: each part has its own. */
  readonly trouble?: RedisTrouble | undefined;
  /** What a page shows of the settings; default: nothing. */
  readonly effective?: readonly EffectiveSetting[];
}

export interface PipelineOptions extends RoleOptions {
  /** Takes notices about long waits; default: the log. */
  readonly tell?: Tell;
  /** Whether to ignore the pause that the source asked for. */
  readonly now?: boolean | undefined;
  /** Whether pages, and a mirror that was changed, are checked apart from this thread; default false. */
  readonly threads?: boolean | undefined;
}

export interface KeeperOptions extends PipelineOptions {
  /** Fetch in this process, too. Without Redis it always does. */
  readonly fetching: boolean;
  readonly onProgress?: (progress: Progress) => void;
  /** Mirror that notes the pace and the pauses of the source; default: the mirror that the keeper writes. */
  readonly paceIn?: Store | undefined;
  /** Whether to accept a new address of the mirror's source. */
  readonly adopting?: boolean | undefined;
}

/** Waits before a retry are reported if they are longer than this; milliseconds. */
const LONG_RETRY_MS = 5_000;

function toLog(log: Logger): Tell {
  return ({ message, fields }) => log.warn(fields, message);
}

function keeperSettings(config: SourceConfig): RunSettings {
  const { concurrency, deltaOverlapMs: overlapMs, removalConfirmations: confirmations } = config;
  const lookups = config.lookupPath !== undefined;
  const lookahead = config.redisUrl === undefined ? concurrency + 32 : Math.max(64, 4 * concurrency);
  const source = sourceIdentity(config);
  const ignoreFields = [...config.ignoreFields, ...config.volatileFields];
  return {
    ...config,
    ignoreFields,
    lookups,
    confirmations,
    overlapMs,
    lookahead,
    maxAttempts: 8,
    firstAttempts: 3,
    source,
  };
}

/** Reads the address of Redis again. */
export const redisUrlAgain =
  ({ secretAgain }: Config) =>
  async (): Promise<string | undefined> =>
    await secretAgain?.('redisUrl');

/** Starts a fetcher, which reads pages for keepers through Redis. @param keeper the queue of the one in this process */
export async function startFetcherService(
  { config, clock, log, trouble }: RoleOptions,
  redisUrl: string,
  validate?: ValidatePage,
  keeper?: BullQueue,
): Promise<Service> {
  const { startFetcher } = await import('@catchword/queue-redis/fetcher');
  const { concurrency, deltaOverlapMs } = config;
  return await startTogether(async (services) => {
    const read = (pacer: Pacer): ReadWindow => {
      const client = createCatalogClient(config, clock, pacer);
      services.push({ name: 'client', stop: () => client.close() });
      return createPageFetcher(client, deltaOverlapMs, validate);
    };
    const source = sourceId(config);
    const again = { redisUrlAgain: redisUrlAgain(config) };
    const fetcher = await startFetcher({ ...again, redisUrl, clock, log, concurrency, read, source, keeper, trouble });
    services.push({ name: 'jobs', stop: () => fetcher.close() });
    return { name: 'fetcher', stop: () => stopAll(services) };
  });
}

/** Creates a queue that reads pages in this process, at the pace that the processes of `mirror` share. */
function startEmbeddedQueue(
  options: PipelineOptions,
  mirror: Store,
  validate?: ValidatePage,
): Service & { readonly queue: PageQueue } {
  const { config, clock, log, now, tell = toLog(log) } = options;
  const { concurrency, deltaOverlapMs } = config;
  const pacer = mirrorPacer({ config, clock, tell, now }, mirror);
  const client = createCatalogClient(config, clock, pacer);
  const read = createPageFetcher(client, deltaOverlapMs, validate);
  const onRetry = ({ code, message: reason }: CatchwordError, delayMs: number): void => {
    if (delayMs <= LONG_RETRY_MS) return;
    tell({ message: 'waiting before a retry', fields: { code, reason, until: iso(clock.now() + delayMs) } });
  };
  const queue = createEmbeddedQueue({ clock, log, concurrency, read, pacer, onRetry, tell });
  const services = [
    { name: 'client', stop: () => client.close() },
    { name: 'queue', stop: () => queue.close() },
  ];
  return { name: 'queue', queue, stop: () => stopAll(services) };
}

/** Creates the queue of a keeper in Redis, at the pace that the processes of `paceIn` share. */
async function startRedisQueue(
  { config, clock, log, trouble, now, tell = toLog(log) }: PipelineOptions,
  redisUrl: string,
  store: Store,
  paceIn: Store,
  validate?: ValidatePage,
): Promise<Service & { readonly queue: BullQueue }> {
  const { createBullQueue } = await import('@catchword/queue-redis/bull-queue');
  const options = { config, clock, tell };
  const pauses = pausesIn(paceIn, options);
  const source = sourceId(config);
  const onRateLimited = (pause: Pause): void => pauses.note(pause);
  const { incarnation: mirror } = store;
  const paced = fetcherPace(paceIn, options);
  const pause = (): Pause | null => pauses.current(clock.now());
  const isTemporary = store !== paceIn;
  const noted = { pause, onRateLimited, isTemporary, trouble, redisUrlAgain: redisUrlAgain(config) };
  const queue = await createBullQueue({ redisUrl, clock, log, source, mirror, validate, ...paced, ...noted });
  if (now === true) await queue.forgetPause();
  return { name: 'queue', queue, stop: () => queue.close() };
}

async function startQueue(
  options: PipelineOptions & Pick<KeeperOptions, 'fetching'>,
  store: Store,
  paceIn: Store,
  validate?: ValidatePage,
): Promise<Service & { readonly queue: PageQueue }> {
  const { redisUrl } = options.config;
  if (redisUrl === undefined) return startEmbeddedQueue(options, paceIn, validate);
  return await startTogether(async (services) => {
    const { queue, ...service } = await startRedisQueue(options, redisUrl, store, paceIn, validate);
    services.push(service);
    if (options.fetching) services.push(await startFetcherService(options, redisUrl, validate, queue));
    return { name: 'queue', queue, stop: () => stopAll(services) };
  });
}

/**
 * Opens the mirror and starts what a run needs, with or without Redis.
 * @throws CatchwordError MIRROR_UNUSABLE, MIRROR_OTHER_SOURCE, QUEUE_UNAVAILABLE, QUEUE_MISCONFIGURED; nothing stays open
 */
export async function startKeeper(options: KeeperOptions) {
  const { config, clock, log, onProgress, tell = toLog(log) } = options;
  const { redisUrl, heartbeatUrl } = config;
  if (redisUrl !== undefined) await (await import('@catchword/queue-redis/check-redis')).checkRedis(redisUrl);
  return await startTogether(async (services) => {
    const checkContent = options.threads === true ? checkApart : undefined;
    const store = openStore(config.db, { mode: config.dbMode, checkContent, settings: options.settings });
    services.push({ name: 'mirror', stop: async () => store.close() });
    if (options.adopting !== true) requireSameSource(store, sourceIdentity(config));
    if (options.now === true) forgetPause(store, clock.now(), tell);
    else store.source.keepPause(clock.now());
    const paceIn = options.paceIn ?? store;
    const thread = options.threads === true && !isPlain ? startPageWorker(store.path) : null;
    if (thread !== null) services.push(thread);
    const validate = thread?.validate;
    const pages = await startQueue(options, store, paceIn, validate);
    services.push(pages);
    const { queue } = pages;
    const settings = keeperSettings(config);
    const heartbeat = heartbeatUrl && startHeartbeat({ url: heartbeatUrl, proxies: config, clock, log });
    if (heartbeat) services.push(heartbeat);
    const calls = { ...(onProgress && { onProgress }), ...(heartbeat && { onRun: heartbeat.beat }) };
    const keeper = createKeeper({ store, queue, clock, log, tell, settings, ...calls });
    return { name: 'keeper', store, keeper, stop: () => stopAll(services) };
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
  // With Redis, the lookups go through the queue of the fetchers, which have most of the rate, and nothing to do meanwhile.
  const lookups = await startQueue({ ...options, fetching: true }, store, store);
  try {
    return await recheck(store, runId, most, { queue: lookups.queue, clock, signal });
  } finally {
    await lookups.stop();
  }
}
