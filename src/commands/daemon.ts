import { Command } from 'commander';
import type { RunKind } from '../catalog/run.ts';
import { type Config, readSettings, requireName, type SourceConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { type Service, serveUntil, stopAfterFailure } from '../lifecycle.ts';
import { errorFields, type Logger } from '../log.ts';
import { startRelay } from '../relay/relay.ts';
import { sinkConfig } from '../relay/sink-config.ts';
import { haltedSinks } from '../report/sink.ts';
import { plansOf } from '../schedule/due.ts';
import { showPresence } from '../schedule/presence.ts';
import { type RunQueue, startRunQueue } from '../schedule/run-queue.ts';
import { createRequestedTicks, requestDueRuns, startScheduler } from '../schedule/scheduler.ts';
import { mirrorExists } from '../store/place.ts';
import { openStore, type Store } from '../store/store.ts';
import { watchMirror } from '../store/watch.ts';
import { checkExposure } from '../web/listen.ts';
import { configuredSource } from './changes.ts';
import { commandLog } from './shared/command-log.ts';
import type { CommandContext } from './shared/context.ts';
import { isTerminal } from './shared/format.ts';
import { type KeeperService, startFetcherService, startKeeper } from './shared/pipeline.ts';
import { type ConfigFor, checkedSettings, type Need, unknownSettings } from './shared/settings.ts';
import { startAlone, startWhenPortIsFree } from './shared/standby.ts';

interface StartOptions<C extends Config> {
  readonly config: C;
  readonly context: CommandContext;
  readonly log: Logger;
}

type Start<C extends Config = SourceConfig> = (options: StartOptions<C>) => Promise<Service[]>;

function requireRedis(config: Config, role: string): string {
  if (config.redisUrl !== undefined) return config.redisUrl;
  throw new CatchwordError('CONFIG_INVALID', `REDIS_URL is not set, and ${role} alone works through Redis only`, {
    hint: 'Set REDIS_URL, or run everything in one process: npx catchword daemon.',
  });
}

/** Loaded when a role needs them; see pipeline.ts. */
async function requestParts() {
  const { checkRedis } = await import('../queue/bullmq/redis.ts');
  const { sourceId } = await import('../queue/bullmq/jobs.ts');
  const { connectRunRequests, serveRunRequests } = await import('../queue/bullmq/run-requests.ts');
  return { checkRedis, sourceId, connectRunRequests, serveRunRequests };
}

/** Serves until the first signal, or until a part cannot go on; then stops what was started, in reverse. */
async function serve<N extends Need>(
  context: CommandContext,
  name: string,
  need: N,
  start: Start<ConfigFor[N]>,
): Promise<void> {
  const { logLevel = 'info', logOutput } = readSettings(context.environment).values;
  const log = commandLog(context, logLevel, logOutput === 'split');
  for (const reason of unknownSettings(context.environment)) log.warn({ reason }, 'a variable is not a setting');
  const config = checkedSettings(context.environment, need);
  const services = await start({ config, context, log });
  // A daemon says by itself whether it is active or stands by.
  if (name !== 'daemon') log.info({ role: name, services: services.map((service) => service.name) }, 'started');
  // For a process manager that waits for readiness (pm2's wait_ready).
  process.send?.('ready');
  await serveUntil(context.signal, services, () => log.info({ role: name }, 'stopping'));
  log.info({ role: name }, 'stopped');
  context.setExitCode(0);
}

/**
 * A program that reads the log of a service is not shown two lines of plain text among those of JSON.
 * @returns false where the error is left to be printed for a person
 */
function logFatal(context: CommandContext, name: string, error: unknown): boolean {
  if (isTerminal(context.stderr) || context.environment.LOG_LEVEL === 'silent' || context.signal.aborted) return false;
  const exitCode = error instanceof CatchwordError ? error.exitCode : 1;
  commandLog(context, 'fatal').fatal({ role: name, ...errorFields(error), exitCode }, 'ended by an error');
  context.setExitCode(exitCode);
  return true;
}

function role<N extends Need>(
  context: CommandContext,
  name: string,
  description: string,
  need: N,
  start: Start<ConfigFor[N]>,
): Command {
  return new Command(name).description(description).action(async () => {
    try {
      await serve(context, name, need, start);
    } catch (error) {
      if (!logFatal(context, name, error)) throw error;
    }
  });
}

/** Starts one after another; what was started is stopped when a later one fails. */
async function startInOrder(starts: readonly ((started: Service[]) => Promise<Service>)[]): Promise<Service[]> {
  const services: Service[] = [];
  try {
    for (const start of starts) services.push(await start(services));
    return services;
  } catch (error) {
    await stopAfterFailure(services);
    throw error;
  }
}

/** Events name the source that the mirror has noted; the configured one is needed only where it has none yet. */
function requireEventSource(config: Config): void {
  if (config.baseUrl !== undefined) return;
  if (!mirrorExists(config.db)) requireName(config);
  const store = openStore(config.db, { mustExist: true, forReading: true, mode: config.dbMode });
  try {
    if (store.source.noted() === null) requireName(config);
  } finally {
    store.close();
  }
}

/** Loaded when it is needed, as the queue is. */
async function startWebService({ config, context, log }: StartOptions<Config>, port: number): Promise<Service> {
  const { startWeb } = await import('../web/server.ts');
  return await startWeb({
    db: config.db,
    dbMode: config.dbMode,
    host: config.httpHost,
    port,
    token: config.httpToken,
    readyMaxAgeMs: config.readyMaxAgeMs,
    source: configuredSource(config),
    unready: haltedSinks,
    plans: (nowMs) => plansOf(config, nowMs),
    clock: context.clock,
    log,
  });
}

const startWebRole: Start<Config> = async (options) => {
  const { httpPort } = options.config;
  requireEventSource(options.config);
  if (httpPort !== null) return [await startWebService(options, httpPort)];
  throw new CatchwordError('CONFIG_INVALID', 'CATCHWORD_HTTP_PORT is off, and web does nothing but serve HTTP', {
    hint: 'Set CATCHWORD_HTTP_PORT to a port, or do not start web.',
  });
};

/** Each sink is made once for its options: a wrong one is an error now, and not retried forever. */
async function checkSinks(config: Config): Promise<void> {
  for (const sink of config.sinks) await (await sinkConfig(sink).make()).close();
}

async function startRelayOf(store: Store, { config, context, log }: StartOptions<Config>): Promise<Service> {
  await checkSinks(config);
  const sinks = config.sinks.map((sink) => sinkConfig(sink));
  return startRelay({ store, sinks, clock: context.clock, log, source: configuredSource(config) });
}

const startRelayRole: Start<Config> = async (options) => {
  const { config } = options;
  if (config.sinks.length === 0) {
    throw new CatchwordError('CONFIG_INVALID', 'CATCHWORD_SINK_<NAME> is not set, and relay delivers to sinks only', {
      hint: 'Set one, such as CATCHWORD_SINK_FILE=jsonl:data/changes.jsonl, or do not start relay.',
    });
  }
  requireEventSource(config);
  return startInOrder([
    async (services) => {
      const store = openStore(config.db, { mode: config.dbMode });
      services.push({ name: 'mirror', stop: async () => store.close() }, watchMirror(store, options.context.clock));
      return await startRelayOf(store, options);
    },
  ]);
};

/** Makes runs of the mirror, beginning with one that fills it where none did. */
function startRuns(kept: KeeperService, { context, log }: StartOptions<SourceConfig>): RunQueue {
  const runQueue = startRunQueue({ keeper: kept.keeper, store: kept.store, clock: context.clock, log });
  // A mirror that was never filled does not wait for the night.
  if (kept.store.watermark() === null) runQueue.submit({ kind: 'full' });
  return runQueue;
}

async function startActiveDaemon(options: StartOptions<SourceConfig>, waited: boolean): Promise<Service[]> {
  const { config, context, log } = options;
  const { clock } = context;
  const { httpPort } = config;
  const kept = await startKeeper({ config, clock, log, fetching: true });
  const startHttp = async (port: number): Promise<Service> => {
    const start = (): Promise<Service> => startWebService(options, port);
    return waited ? await startWhenPortIsFree(start, { clock, log }) : await start();
  };
  return startInOrder([
    async () => kept,
    // Before any run is started: a port that is taken is told at once.
    ...(httpPort === null ? [] : [() => startHttp(httpPort)]),
    async () => watchMirror(kept.store, clock),
    async () => startRelayOf(kept.store, options),
    async (services) => {
      const runQueue = startRuns(kept, options);
      services.push(runQueue);
      return startScheduler({
        ...config,
        ticks: kept.store.schedule,
        clock,
        log,
        onDue: async (kind, tick) => runQueue.submit({ kind, tick }),
      });
    },
  ]);
}

/** One daemon is active for a mirror; another stands by, and needs neither the port nor the source until it takes over. */
const startDaemon: Start = async (options) => {
  const { config, context, log } = options;
  const { clock } = context;
  // A daemon that stands by finds a wrong setting now, and not when it is needed.
  await checkSinks(config);
  if (config.httpPort !== null) checkExposure(config.httpHost, config.httpToken);
  const start = (waited: boolean): Promise<Service[]> => startActiveDaemon(options, waited);
  return [await startAlone({ role: 'daemon', db: config.db, mode: config.dbMode, clock, log, start })];
};

const startKeeperRole: Start = async (options) => {
  const { config, context, log } = options;
  const { clock } = context;
  const redisUrl = requireRedis(config, 'keeper');
  const kept = await startKeeper({ config, clock, log, fetching: false });
  return startInOrder([
    async () => kept,
    async () => showPresence({ store: kept.store, clock, log }),
    async () => watchMirror(kept.store, clock),
    async (services) => {
      const runQueue = startRuns(kept, options);
      services.push(runQueue);
      // What fell due while no keeper ran; from now on the scheduler asks.
      await requestDueRuns({
        ...config,
        ticks: kept.store.schedule,
        clock,
        log,
        onDue: async (kind, tick) => runQueue.submit({ kind, tick }),
      });
      const { sourceId, serveRunRequests } = await requestParts();
      return serveRunRequests({
        ...{ redisUrl, log, clock, source: sourceId(config.baseUrl) },
        onRequest: (request) => runQueue.submit(request),
      });
    },
  ]);
};

const startSchedulerRole: Start = async ({ config, context, log }) => {
  const redisUrl = requireRedis(config, 'scheduler');
  const { checkRedis, connectRunRequests, sourceId } = await requestParts();
  await checkRedis(redisUrl);
  const requests = connectRunRequests({ redisUrl, log, source: sourceId(config.baseUrl) });
  const ticks = createRequestedTicks();
  const onDue = async (kind: RunKind, tick: string): Promise<void> => {
    await requests.ask({ kind, tick });
    ticks.requested(kind, tick);
  };
  return startInOrder([
    async () => requests,
    async () => startScheduler({ ...config, ticks, clock: context.clock, log, onDue }),
  ]);
};

const startFetcherRole: Start = async ({ config, context, log }) => {
  const redisUrl = requireRedis(config, 'fetcher');
  return [await startFetcherService({ config, clock: context.clock, log }, redisUrl)];
};

export function daemonCommands(context: CommandContext): Command[] {
  const serving = (name: string, description: string, start: Start): Command =>
    role(context, name, description, 'source', start);
  return [
    serving('daemon', 'run everything in one process, until it is stopped', startDaemon),
    serving('scheduler', 'start runs when they are due (needs REDIS_URL)', startSchedulerRole),
    serving('keeper', 'own the mirror and write it (needs REDIS_URL)', startKeeperRole),
    serving('fetcher', 'read pages, in any number, on any machine (needs REDIS_URL)', startFetcherRole),
    role(context, 'relay', 'deliver changes to the sinks; run it where the mirror is', 'nothing', startRelayRole),
    role(context, 'web', 'serve the mirror over HTTP, read-only; run it where the mirror is', 'nothing', startWebRole),
  ];
}
