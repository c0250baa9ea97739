import type { CatchwordError } from '@catchword/base/errors';
import {
  type Config,
  type ReadSettings,
  readSettings,
  type SourceConfig,
  settingsError,
} from '@catchword/settings/config';
import type { Environment } from '@catchword/settings/environment';
import { OPTIONS, type Option } from '@catchword/settings/option-table';
import { unknownSettings } from '@catchword/settings/unknown-settings';
import { channelConfig } from '../../../operate/incidents/channel-config.ts';
import { checkCron } from '../../../operate/schedule/due.ts';
import { sinkConfigs } from '../../../relay/sink-config.ts';
import { openMirrorIfSound } from '../../roles/open-mirror.ts';
import type { CommandContext } from './command-context.ts';
import { colours } from './output-format.ts';

/** Settings that a verb requires: the address and the key of the service, or nothing. */
export type Need = 'source' | 'nothing';

/** The settings of a verb with that need. */
export interface ConfigFor {
  readonly source: SourceConfig;
  readonly nothing: Config;
}

/** The errors of sinks. Which one has fed a store that two of them name, and so goes on, the mirror knows. */
function sinkProblems({ db, dbMode, sinks }: ReadSettings['values']): CatchwordError[] {
  const mirror = db === undefined ? undefined : openMirrorIfSound({ db, dbMode });
  try {
    return sinkConfigs(sinks, mirror?.sinks.hasFed).flatMap(({ problems = [] }) => problems);
  } finally {
    mirror?.close();
  }
}

/**
 * An error for every setting that is wrong, schedules and addresses of channels included.
 * @param isOfSinks whether to name wrong settings of sinks, too, which stop only their sinks
 */
export function settingProblems(environment: Environment, need: Need, isOfSinks = false): CatchwordError[] {
  const { values, problems, attempt } = readSettings(environment, need === 'source');
  for (const key of ['fullCron', 'deltaCron'] as const) {
    const { env } = OPTIONS[key];
    const cron = values[key];
    // A default is valid.
    if (cron !== undefined && environment[env] !== undefined) attempt(() => checkCron(env, cron));
  }
  if (isOfSinks) problems.push(...sinkProblems(values));
  for (const channel of values.channels) attempt(() => channelConfig(channel));
  return problems;
}

/**
 * @param isOfSinks whether it is an error if only settings of sinks are wrong
 * @throws CatchwordError CONFIG_INVALID naming everything that is wrong
 */
export function checkedSettings<N extends Need>(environment: Environment, need: N, isOfSinks = false): ConfigFor[N] {
  const wrong = settingProblems(environment, need, isOfSinks);
  if (wrong.length > 0) throw settingsError(isOfSinks ? wrong : settingProblems(environment, need, true));
  return readSettings(environment).values as ConfigFor[N];
}

/**
 * Reads the settings of a verb that only looks at a mirror, as far as they are valid: a wrong one counts as its default, a
 * wrong schedule as off, and a wrong channel as not set. The caller reports wrong settings afterwards.
 * @throws CatchwordError CONFIG_INVALID if the path of the mirror is wrong
 */
export function usableSettings(environment: Environment): Config {
  const { values, problems, attempt } = readSettings(environment);
  if (values.db === undefined) throw settingsError(problems);
  const defaults = Object.entries<Option>(OPTIONS).flatMap(([key, { fallback, schema }]) =>
    fallback === undefined ? [] : [[key, schema.parse(fallback)] as const],
  );
  const cron = (key: 'fullCron' | 'deltaCron') => {
    const { [key]: given = 'off' } = values;
    const isValid = attempt(() => checkCron(OPTIONS[key].env, given) ?? true);
    return isValid && values.timezone !== undefined ? given : 'off';
  };
  const channels = values.channels.filter((channel) => attempt(() => channelConfig(channel)));
  const schedule = { fullCron: cron('fullCron'), deltaCron: cron('deltaCron') };
  return { ...Object.fromEntries(defaults), ...values, ...schedule, channels } as Config;
}

/** Reads the settings of a verb, and names unknown variables on stderr. @throws CatchwordError CONFIG_INVALID */
export function loadSettings<N extends Need>(context: CommandContext, need: N, isOfSinks = false): ConfigFor[N] {
  const c = colours(context, context.stderr);
  // Before the errors: a setting that is missing may be misspelt.
  for (const text of unknownSettings(context.environment)) context.stderr.write(`${c.yellow('note')}  ${text}\n`);
  return checkedSettings(context.environment, need, isOfSinks);
}
