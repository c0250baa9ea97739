import { Command } from 'commander';
import { type Config, loadConfig, requireSource, type SourceConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { createLog, type Logger } from '../log.ts';
import { startRunDesk } from '../schedule/run-desk.ts';
import { checkCron, startScheduler } from '../schedule/scheduler.ts';
import { type Service, stopAll } from '../service.ts';
import type { CommandContext } from './context.ts';
import { startFetcherService, startKeeper } from './pipeline.ts';

type Start = (options: { config: SourceConfig; context: CommandContext; log: Logger }) => Promise<Service[]>;

function requireRedis(config: Config, role: string): string {
  if (config.redisUrl !== undefined) return config.redisUrl;
  throw new CatchwordError('CONFIG_INVALID', `REDIS_URL is not set, and ${role} alone works through Redis only`, {
    hint: 'Set REDIS_URL, or run everything in one process: npx catchword daemon.',
  });
}

/** Loaded when a role needs them; see pipeline.ts. */
async function requestParts() {
  const { checkRedis } = await import('../queue/redis.ts');
  const { sourceId } = await import('../queue/bull-jobs.ts');
  const { connectRunRequests, serveRunRequests } = await import('../queue/run-requests.ts');
  return { checkRedis, sourceId, connectRunRequests, serveRunRequests };
}

/** Serves until the first signal, then stops what was started, in reverse. */
function role(context: CommandContext, name: string, description: string, start: Start): Command {
  return new Command(name).description(description).action(async () => {
    const config = requireSource(loadConfig(context.environment));
    checkCron('CATCHWORD_FULL_CRON', config.fullCron);
    checkCron('CATCHWORD_DELTA_CRON', config.deltaCron);
    const log = createLog(config.logLevel);
    const services = await start({ config, context, log });
    log.info({ role: name, services: services.map((service) => service.name) }, 'started');
    // For a process manager that waits for readiness (pm2's wait_ready).
    process.send?.('ready');
    if (!context.signal.aborted) {
      await new Promise((resolve) => context.signal.addEventListener('abort', resolve, { once: true }));
    }
    log.info({ role: name }, 'stopping');
    await stopAll(services);
    log.info({ role: name }, 'stopped');
    context.setExitCode(0);
  });
}

/** Starts one after another; what was started is stopped when a later one fails. */
async function startInOrder(starts: readonly ((started: Service[]) => Promise<Service>)[]): Promise<Service[]> {
  const services: Service[] = [];
  try {
    for (const start of starts) services.push(await start(services));
    return services;
  } catch (error) {
    await stopAll(services);
    throw error;
  }
}

const startDaemon: Start = async ({ config, context, log }) => {
  const { clock } = context;
  const kept = await startKeeper({ config, clock, log, fetching: true });
  return startInOrder([
    async () => kept,
    async (services) => {
      const desk = startRunDesk({ keeper: kept.keeper, store: kept.store, clock, log });
      services.push(desk);
      // A mirror that was never filled does not wait for the night.
      if (kept.store.watermark() === null) desk.submit({ kind: 'full' });
      return startScheduler({ ...config, log, onTick: async (kind, tick) => desk.submit({ kind, tick }) });
    },
  ]);
};

const startKeeperRole: Start = async ({ config, context, log }) => {
  const { clock } = context;
  const redisUrl = requireRedis(config, 'keeper');
  const kept = await startKeeper({ config, clock, log, fetching: false });
  return startInOrder([
    async () => kept,
    async (services) => {
      const desk = startRunDesk({ keeper: kept.keeper, store: kept.store, clock, log });
      services.push(desk);
      if (kept.store.watermark() === null) desk.submit({ kind: 'full' });
      const { sourceId, serveRunRequests } = await requestParts();
      return serveRunRequests({
        ...{ redisUrl, log, clock, source: sourceId(config.baseUrl) },
        onRequest: (request) => desk.submit(request),
      });
    },
  ]);
};

const startSchedulerRole: Start = async ({ config, log }) => {
  const redisUrl = requireRedis(config, 'scheduler');
  const { checkRedis, connectRunRequests, sourceId } = await requestParts();
  await checkRedis(redisUrl);
  const requests = connectRunRequests({ redisUrl, log, source: sourceId(config.baseUrl) });
  return startInOrder([
    async () => requests,
    async () => startScheduler({ ...config, log, onTick: (kind, tick) => requests.ask({ kind, tick }) }),
  ]);
};

const startFetcherRole: Start = async ({ config, context, log }) => {
  const redisUrl = requireRedis(config, 'fetcher');
  return [await startFetcherService({ config, clock: context.clock, log }, redisUrl)];
};

export function daemonCommands(context: CommandContext): Command[] {
  return [
    role(context, 'daemon', 'everything in one process: scheduler, keeper, fetchers', startDaemon),
    role(context, 'scheduler', 'says when a run is due (needs REDIS_URL)', startSchedulerRole),
    role(context, 'keeper', 'owns the mirror and writes it (needs REDIS_URL)', startKeeperRole),
    role(context, 'fetcher', 'reads pages; any number, on any machine (needs REDIS_URL)', startFetcherRole),
  ];
}
