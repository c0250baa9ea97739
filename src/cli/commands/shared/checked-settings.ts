import { CatchwordError } from '../../../base/errors.ts';
import { channelConfig } from '../../../operate/incidents/channel-config.ts';
import { checkCron } from '../../../operate/schedule/due.ts';
import { sinkConfig } from '../../../relay/sink-config.ts';
import { type Config, readSettings, type SourceConfig, settingsError } from '../../../settings/config.ts';
import type { Environment } from '../../../settings/environment.ts';
import { OPTIONS } from '../../../settings/option-table.ts';
import { unknownSettings } from '../../../settings/unknown-settings.ts';
import type { CommandContext } from './command-context.ts';
import { colours } from './output-format.ts';

/** Settings that a verb requires: the address and the key of the service, or nothing. */
export type Need = 'source' | 'nothing';

/** The settings of a verb with that need. */
export interface ConfigFor {
  readonly source: SourceConfig;
  readonly nothing: Config;
}

function problemOf(check: () => unknown): CatchwordError[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof CatchwordError) return [error];
    throw error;
  }
}

/** An error for every setting that is wrong, schedules and addresses of sinks and channels included. */
export function settingProblems(environment: Environment, need: Need): CatchwordError[] {
  const { values, problems } = readSettings(environment, need === 'source');
  const schedules = (['fullCron', 'deltaCron'] as const).flatMap((key) => {
    const { env } = OPTIONS[key];
    const cron = values[key];
    // A default is valid.
    return cron === undefined || environment[env] === undefined ? [] : problemOf(() => checkCron(env, cron));
  });
  const sinks = values.sinks.flatMap((sink) => problemOf(() => sinkConfig(sink)));
  const channels = values.channels.flatMap((channel) => problemOf(() => channelConfig(channel)));
  return [...problems, ...schedules, ...sinks, ...channels];
}

/** @throws CatchwordError CONFIG_INVALID naming everything that is wrong */
export function checkedSettings<N extends Need>(environment: Environment, need: N): ConfigFor[N] {
  const problems = settingProblems(environment, need);
  if (problems.length > 0) throw settingsError(problems);
  return readSettings(environment).values as ConfigFor[N];
}

/** Reads the settings of a verb, and names unknown variables on stderr. @throws CatchwordError CONFIG_INVALID */
export function loadSettings<N extends Need>(context: CommandContext, need: N): ConfigFor[N] {
  const c = colours(context, context.stderr);
  // Before the errors: a setting that is missing may be misspelt.
  for (const text of unknownSettings(context.environment)) context.stderr.write(`${c.yellow('note')}  ${text}\n`);
  return checkedSettings(context.environment, need);
}
