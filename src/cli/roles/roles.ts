import { CatchwordError } from '@catchword/base/errors';
import type { Service } from '@catchword/base/lifecycle';
import { configuredSource } from '@catchword/catalog/event';
import { limitOf } from '@catchword/catalog/product-limit';
import type { RunKind } from '@catchword/catalog/run-types';
import { sourceId } from '@catchword/catalog/source-identity';
import { type Config, notSet, type SourceConfig } from '@catchword/settings/config';
import { checkExposure } from '../../http/listen.ts';
import { startWhenPortIsFree } from '../../http/wait-for-port.ts';
import { createDecisionQueue, watchDecisions } from '../../operate/decisions/decision-queue.ts';
import type { ReviewOptions } from '../../operate/decisions/held-run-review.ts';
import { channelConfig } from '../../operate/incidents/channel-config.ts';
import { notifierSettings, startNotifier } from '../../operate/incidents/notifier.ts';
import { startRunQueue } from '../../operate/schedule/run-queue.ts';
import {
  createRequestedTicks,
  requestLateRuns,
  startRequestedRuns,
  startScheduler,
} from '../../operate/schedule/scheduler.ts';
import { showPresence, startStandby } from '../../operate/schedule/standby.ts';
import { startRelay } from '../../relay/relay.ts';
import { sinkConfigs } from '../../relay/sink-config.ts';
import { checkApart } from '../../store/file/copy-subprocess.ts';
import { watchMirror } from '../../store/file/watch-file.ts';
import { needsFullRun } from '../../store/rows/source-state.ts';
import type { LeasedDaemon } from '../../store/schema/writers.ts';
import { openStore, type Store } from '../../store/store.ts';
import { httpConfig } from './http-config.ts';
import { withMirrorIfAny } from './open-mirror.ts';
import { lookUpHeld, type RoleOptions, redisUrlAgain, startFetcherService, startKeeper } from './pipeline.ts';

/** Starts the services of a role in order, and adds each to `services`; they are stopped in reverse order. */
export type StartRole<C extends Config> = (options: RoleOptions<C>, services: Service[]) => Promise<void>;

function requireRedis({ redisUrl }: Config, role: string): string {
  if (redisUrl !== undefined) return redisUrl;
  const hint = 'Set REDIS_URL, or run everything in one process: npx catchword daemon.';
  const message = `REDIS_URL is not set, and ${role} alone works only through Redis`;
  throw new CatchwordError('CONFIG_INVALID', message, { hint });
}

/** Events name the source that the mirror has noted; if it has noted none, CATCHWORD_BASE_URL is required. */
async function requireEventSource(config: Config): Promise<void> {
  if (config.baseUrl !== undefined) return;
  const noted = await withMirrorIfAny(config, (mirror) => mirror?.source.noted() ?? null);
  if (noted === null) throw notSet('baseUrl');
}

/** Serves HTTP for a daemon, in a thread of its own if it may. @param tookOver whether another daemon used the port before */
async function startDaemonHttp(options: RoleOptions, port: number, tookOver: boolean): Promise<Service> {
  const { clock, log, apart, trouble } = options;
  const config = httpConfig(options.config, options.effective);
  if (apart !== undefined) {
    const { startWebThread } = await import('./web-worker-client.ts');
    return await startWebThread({ config, port, log: apart, waitsForPort: tookOver }, undefined, trouble?.problem);
  }
  const { startHttp } = await import('./start-http.ts');
  const http = () => startHttp({ config, port, clock, log, problem: trouble?.problem });
  return tookOver ? await startWhenPortIsFree(http, { clock, log }) : await http();
}

/** Creates each channel once, so that an invalid option is an error at the start. */
async function checkChannels({ channels }: Config): Promise<void> {
  for (const channel of channels) await channelConfig(channel).make();
}

function notifierOf(store: Store, leased: LeasedDaemon, { config, clock, log }: RoleOptions<Config>): Service {
  return startNotifier({ store, leased, clock, log, ...notifierSettings(config) });
}

function relayOf(store: Store, { config, clock, log }: RoleOptions<Config>): Service {
  const source = configuredSource(config.baseUrl);
  const removalLimit = (products: number): number => limitOf(config.removalLimit, products);
  const sinks = sinkConfigs(config.sinks, store.sinks.hasFed);
  return startRelay({ store, sinks, clock, log, source, removalLimit });
}

/**
 * Starts to make runs of the mirror, with a full run at once if it was never filled or was restored, and to carry out
 * what operators decide about runs.
 */
function startRuns({ keeper, store }: Awaited<ReturnType<typeof startKeeper>>, options: RoleOptions) {
  const { config, clock, log } = options;
  const lookUp: ReviewOptions['lookUp'] = (runId, most, signal) => lookUpHeld(options, store, runId, most, signal);
  const decisions = createDecisionQueue({ store, keeper, clock, log, lookUp });
  const runQueue = startRunQueue({ keeper, store, clock, log, decisions });
  const watch = watchDecisions(decisions, { clock, log }, runQueue.wake);
  if (needsFullRun(store)) runQueue.submit({ kind: 'full' });
  const { fullCron, deltaCron, timezone } = config;
  const onDue = async (kind: RunKind, tick: string): Promise<void> => runQueue.submit({ kind, tick });
  return {
    services: [runQueue, watch],
    schedule: { fullCron, deltaCron, timezone, ticks: store.schedule, clock, log, onDue },
  };
}

/** Adds a server for the figures of this process, if the settings ask for one. */
async function addMetrics(options: RoleOptions<Config>, services: Service[], tookOver = false): Promise<void> {
  const { config, clock, log, trouble } = options;
  const { metricsPort: port, httpHost: host, httpToken: token, rateLimit } = config;
  if (port === null) return;
  const { startMetricsServer } = await import('../../http/metrics-server.ts');
  const metrics = () => startMetricsServer({ host, port, token, rateLimit, log, problem: trouble?.problem });
  services.push(tookOver ? await startWhenPortIsFree(metrics, { clock, log }) : await metrics());
}

function withMetrics<C extends Config>(start: StartRole<C>): StartRole<C> {
  return async (options, services) => {
    await addMetrics(options, services);
    await start(options, services);
  };
}

/** One daemon is active; others stand by, and use neither the port nor the source until one takes over. */
export const startDaemon: StartRole<SourceConfig> = async (options, services) => {
  const { config, clock, log } = options;
  const { db, dbMode: mode, httpPort: port } = config;
  // An invalid setting is an error now, not when a daemon that stands by takes over.
  await checkChannels(config);
  if (port !== null) checkExposure(config.httpHost, config.httpToken);
  async function start(active: Service[], tookOver: boolean, leased: LeasedDaemon): Promise<void> {
    const kept = await startKeeper({ ...options, fetching: true, threads: options.apart !== undefined });
    active.push(kept);
    // Before any run starts, so that a port in use is reported at once.
    if (port !== null) active.push(await startDaemonHttp(options, port, tookOver));
    await addMetrics(options, active, tookOver);
    active.push(watchMirror(kept.store, clock));
    active.push(relayOf(kept.store, options));
    const { services: runs, schedule } = startRuns(kept, options);
    active.push(...runs);
    active.push(startScheduler(schedule));
    active.push(notifierOf(kept.store, leased, options));
  }
  const checkContent = options.apart && checkApart;
  const { settings } = options;
  services.push(await startStandby({ role: 'daemon', db, mode, checkContent, settings, clock, log, start }));
};

export const startKeeperRole = withMetrics<SourceConfig>(async (options, services) => {
  const { config, clock, log, trouble } = options;
  const redisUrl = requireRedis(config, 'keeper');
  await checkChannels(config);
  const kept = await startKeeper({ ...options, fetching: false, threads: options.apart !== undefined });
  const { store } = kept;
  const presence = showPresence({ store, clock, log }, (leased) => [notifierOf(store, leased, options)]);
  services.push(kept, presence, watchMirror(store, clock));
  const { services: runs, schedule } = startRuns(kept, options);
  const requested = startRequestedRuns(schedule);
  services.push(...runs, requested, requestLateRuns(schedule));
  const { serveRunRequests } = await import('@catchword/queue-redis/run-requests');
  const place = { redisUrl, redisUrlAgain: redisUrlAgain(config), source: sourceId(config) };
  services.push(await serveRunRequests({ ...place, log, clock, trouble, onRequest: requested.request }));
});

export const startSchedulerRole = withMetrics<SourceConfig>(async ({ config, clock, log, trouble }, services) => {
  const redisUrl = requireRedis(config, 'scheduler');
  const { checkRedis } = await import('@catchword/queue-redis/check-redis');
  const { connectRunRequests } = await import('@catchword/queue-redis/run-requests');
  await checkRedis(redisUrl);
  const place = { redisUrl, redisUrlAgain: redisUrlAgain(config), source: sourceId(config) };
  const requests = connectRunRequests({ ...place, clock, log, trouble });
  services.push(requests);
  const ticks = createRequestedTicks();
  async function onDue(kind: RunKind, tick: string): Promise<void> {
    await requests.ask({ kind, tick });
    ticks.requested(kind, tick);
  }
  const { fullCron, deltaCron, timezone } = config;
  services.push(startScheduler({ fullCron, deltaCron, timezone, ticks, clock, log, onDue }));
});

export const startFetcherRole = withMetrics<SourceConfig>(async (options, services) => {
  services.push(await startFetcherService(options, requireRedis(options.config, 'fetcher')));
});

export const startRelayRole = withMetrics<Config>(async (options, services) => {
  const { config, clock, settings } = options;
  if (config.sinks.length === 0) {
    const hint = 'Set one, such as CATCHWORD_SINK_FILE=jsonl:data/changes.jsonl, or do not start relay.';
    const message = 'CATCHWORD_SINK_<NAME> is not set, and relay only delivers to sinks';
    throw new CatchwordError('CONFIG_INVALID', message, { hint });
  }
  await requireEventSource(config);
  const store = openStore(config.db, { mode: config.dbMode, checkContent: options.apart && checkApart, settings });
  services.push({ name: 'mirror', stop: async () => store.close() }, watchMirror(store, clock));
  services.push(relayOf(store, options));
});

export const startWebRole = withMetrics<Config>(async (options, services) => {
  const { config } = options;
  await requireEventSource(config);
  if (config.httpPort === null) {
    const hint = 'Set CATCHWORD_HTTP_PORT to a port, or do not start web.';
    throw new CatchwordError('CONFIG_INVALID', 'CATCHWORD_HTTP_PORT is off, and web only serves HTTP', { hint });
  }
  const { startHttp } = await import('./start-http.ts');
  const { clock, log, apart, effective } = options;
  services.push(
    await startHttp({
      config: httpConfig(config, effective),
      port: config.httpPort,
      clock,
      log,
      searchApart: apart && {},
    }),
  );
});
