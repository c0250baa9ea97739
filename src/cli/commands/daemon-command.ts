import { CatchwordError } from '@catchword/base/errors';
import { requireForcedExit } from '@catchword/base/forced-exit';
import { serveUntil, startTogether } from '@catchword/base/lifecycle';
import { createLog, errorFields } from '@catchword/base/log';
import { explainMissing } from '@catchword/base/missing-package';
import { createRedisTrouble } from '@catchword/queue-redis/redis-trouble';
import { readSettings } from '@catchword/settings/config';
import { unknownSettings } from '@catchword/settings/unknown-settings';
import { Command } from 'commander';
import { effectiveSettings } from '../../operate/effective-settings.ts';
import { noteSettings } from '../../operate/setting-digests.ts';
import * as roles from '../roles/roles.ts';
import { type ConfigFor, checkedSettings, type Need } from './shared/checked-settings.ts';
import type { CommandContext } from './shared/command-context.ts';
import { isTerminal } from './shared/output-format.ts';
import { commandLog, logSettings } from './shared/person-notices.ts';

type Start<N extends Need> = roles.StartRole<ConfigFor[N]>;

/** Serves until the first signal or the first failure, then stops the services. */
async function serve<N extends Need>(context: CommandContext, role: string, need: N, start: Start<N>): Promise<void> {
  const { clock, environment, again } = context;
  const { logLevel = 'info', logOutput } = readSettings(environment).values;
  const logging = logSettings(context, logLevel, logOutput === 'split');
  const log = createLog(logLevel, logging);
  for (const reason of unknownSettings(environment)) log.warn({ reason }, 'a variable is not a setting');
  const config = checkedSettings(environment, need);
  const settings = noteSettings(environment, again);
  const services = await startTogether(async (started) => {
    const trouble = createRedisTrouble({ clock, log });
    const apart = context.apart === true ? logging : undefined;
    await start({ config, clock, log, trouble, apart, settings, effective: effectiveSettings(context) }, started);
    return started;
  });
  // A daemon logs by itself whether it is active or stands by.
  if (role !== 'daemon') log.info({ role, services: services.map(({ name }) => name) }, 'started');
  // For pm2's wait_ready.
  process.send?.('ready');
  try {
    await serveUntil(context.signal, services, () => log.info({ role }, 'stopping'));
  } finally {
    // A socket to a server that says nothing does not keep the process alive.
    requireForcedExit();
  }
  log.info({ role }, 'stopped');
  context.setExitCode(0);
}

/** Logs the error that ended a role as JSON, unless a person reads stderr. @returns false if it did not */
function logFatal(context: CommandContext, role: string, error: unknown): boolean {
  if (isTerminal(context.stderr) || context.environment.LOG_LEVEL === 'silent' || context.signal.aborted) return false;
  const exitCode = error instanceof CatchwordError ? error.exitCode : 1;
  commandLog(context, 'fatal').fatal({ role, ...errorFields(error), exitCode }, 'ended by an error');
  context.setExitCode(exitCode);
  return true;
}

export function daemonCommands(context: CommandContext): Command[] {
  const role = <N extends Need>(need: N, name: string, start: Start<N>): Command =>
    new Command(name).action(async () => {
      try {
        await serve(context, name, need, start);
      } catch (thrown) {
        const error = explainMissing(thrown);
        if (!logFatal(context, name, error)) throw error;
      }
    });
  return [
    role('source', 'daemon', roles.startDaemon),
    role('source', 'scheduler', roles.startSchedulerRole),
    role('source', 'keeper', roles.startKeeperRole),
    role('source', 'fetcher', roles.startFetcherRole),
    role('nothing', 'relay', roles.startRelayRole),
    role('nothing', 'web', roles.startWebRole),
  ];
}
