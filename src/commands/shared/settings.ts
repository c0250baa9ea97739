import { type Config, isSinkVariable, readSettings, type SourceConfig, settingsError } from '../../config.ts';
import type { Environment } from '../../environment.ts';
import { CatchwordError } from '../../errors.ts';
import { nearestName } from '../../nearest-name.ts';
import { OPTIONS } from '../../option-table.ts';
import { sinkConfig } from '../../relay/sink-config.ts';
import { checkCron } from '../../schedule/scheduler.ts';
import type { CommandContext } from './context.ts';
import { colours } from './format.ts';

/** Settings that a verb requires: the address and the key of the service, or nothing. */
export type Need = 'source' | 'nothing';

const NEEDED = { source: ['baseUrl', 'apiKey'], nothing: [] } as const;

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

/** An error for every setting that is wrong, schedules and addresses of sinks included. */
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

/** The variable of the sink that a secret belongs to, if that sink is not set. */
function missingSink(name: string, environment: Environment): string | null {
  const [, sink] = /^(CATCHWORD_SINK_.+)_SECRET(?:_FILE)?$/.exec(name) ?? [];
  return sink === undefined || environment[sink] || environment[`${sink}_FILE`] ? null : sink;
}

function withoutPrefix(name: string): string {
  return name.replace(PREFIX, '').toLowerCase();
}

function suggestion(name: string, known: readonly string[]): string {
  // Without the prefix, which makes any two names look alike.
  const nearest = nearestName(withoutPrefix(name), known.map(withoutPrefix));
  const upper = name.toUpperCase();
  const sink = upper !== name && isSinkVariable(upper) ? upper : undefined;
  const meant = sink ?? (nearest === undefined ? undefined : `CATCHWORD_${nearest.toUpperCase()}`);
  return meant === undefined ? 'It is ignored.' : `It is ignored. Did you mean ${meant}?`;
}

/** A sentence for each variable that looks like a setting but is not one, with the nearest known name. */
export function unknownSettings(environment: Environment): string[] {
  const known = Object.values(OPTIONS).flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env]));
  const given = Object.keys(environment).filter((name) => PREFIX.test(name) && environment[name]);
  const sinks = given.filter((name) => isSinkVariable(name) && !/_SECRET(_FILE)?$/.test(name));
  return given.flatMap((name) => {
    if (known.includes(name)) return [];
    if (!isSinkVariable(name)) return [`${name} is not a setting. ${suggestion(name, known)}`];
    const sink = missingSink(name, environment);
    return sink === null ? [] : [`${name}: ${sink} is not set. ${suggestion(sink, sinks)}`];
  });
}

/**
 * Reads the settings of a verb. Names unknown variables on stderr.
 * @throws CatchwordError CONFIG_INVALID naming everything that is wrong
 */
export function loadSettings<N extends Need>(context: CommandContext, need: N): ConfigFor[N] {
  const c = colours(context, context.stderr);
  // Before the errors: a setting that is missing may be misspelt.
  for (const text of unknownSettings(context.environment)) context.stderr.write(`${c.yellow('note')}  ${text}\n`);
  return checkedSettings(context.environment, need);
}
