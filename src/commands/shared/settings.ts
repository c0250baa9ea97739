import { nearestName } from '../../client/input/input-error.ts';
import {
  type Config,
  type Environment,
  isSinkVariable,
  OPTIONS,
  readSettings,
  type SourceConfig,
  settingsError,
} from '../../config.ts';
import { CatchwordError } from '../../errors.ts';
import { sinkConfig } from '../../relay/sink-config.ts';
import { checkCron } from '../../schedule/scheduler.ts';
import type { CommandContext } from './context.ts';
import { colours } from './format.ts';

/** What a verb cannot do without: the address and the key of the service, or nothing. */
export type Need = 'source' | 'nothing';

const NEEDED = { source: ['baseUrl', 'apiKey'], nothing: [] } as const;

/** The settings as a verb with that need has them. */
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

/** Everything that is wrong with the settings, schedules and addresses of sinks included; empty where nothing is. */
export function settingProblems(environment: Environment, need: Need): CatchwordError[] {
  const { values, problems } = readSettings(environment, NEEDED[need]);
  const schedules = [
    [OPTIONS.fullCron.env, values.fullCron],
    [OPTIONS.deltaCron.env, values.deltaCron],
  ] as const;
  return [
    ...problems,
    ...schedules.flatMap(([env, cron]) => (cron === undefined ? [] : problemOf(() => checkCron(env, cron)))),
    ...values.sinks.flatMap((sink) => problemOf(() => sinkConfig(sink))),
  ];
}

/** @throws CatchwordError CONFIG_INVALID naming everything that is wrong */
export function checkedSettings<N extends Need>(environment: Environment, need: N): ConfigFor[N] {
  const problems = settingProblems(environment, need);
  if (problems.length > 0) throw settingsError(problems);
  return readSettings(environment).values as ConfigFor[N];
}

const PREFIX = /^catchword[_-]/i;

/** `CATCHWORD_SINK_<NAME>_SECRET` without the sink that it belongs to. */
function lonelySecret(name: string, environment: Environment): string | null {
  const [, sink] = /^(CATCHWORD_SINK_.+)_SECRET(?:_FILE)?$/.exec(name) ?? [];
  return sink === undefined || environment[sink] || environment[`${sink}_FILE`] ? null : sink;
}

function withoutPrefix(name: string): string {
  return name.replace(PREFIX, '').toLowerCase();
}

function suggestion(name: string, known: readonly string[]): string {
  // The prefix, which all of them share, would make any two of them look alike.
  const nearest = nearestName(withoutPrefix(name), known.map(withoutPrefix));
  const inCapitals = name.toUpperCase();
  const meant = inCapitals !== name && isSinkVariable(inCapitals) ? inCapitals : undefined;
  const shown = meant ?? (nearest === undefined ? undefined : `CATCHWORD_${nearest.toUpperCase()}`);
  return shown === undefined ? 'It is ignored.' : `It is ignored. Did you mean ${shown}?`;
}

/** A sentence for each variable that looks like a setting but is not one, with the name that was probably meant. */
export function unknownSettings(environment: Environment): string[] {
  const known = Object.values(OPTIONS).flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env]));
  const given = Object.keys(environment).filter((name) => PREFIX.test(name) && environment[name]);
  const sinks = given.filter((name) => isSinkVariable(name) && !/_SECRET(_FILE)?$/.test(name));
  return given.flatMap((name) => {
    if (known.includes(name)) return [];
    if (!isSinkVariable(name)) return [`${name} is not a setting. ${suggestion(name, known)}`];
    const sink = lonelySecret(name, environment);
    return sink === null ? [] : [`${name}: there is no ${sink}. ${suggestion(sink, sinks)}`];
  });
}

/**
 * The settings of a verb. Variables that are probably misspelt are named on stderr.
 * @throws CatchwordError CONFIG_INVALID naming everything that is wrong
 */
export function loadSettings<N extends Need>(context: CommandContext, need: N): ConfigFor[N] {
  const c = colours(context, context.stderr);
  // First: what is missing below may be misspelt here.
  for (const text of unknownSettings(context.environment)) context.stderr.write(`${c.yellow('note')}  ${text}\n`);
  return checkedSettings(context.environment, need);
}
