import { CatchwordError } from '@catchword/base/errors';
import type { ProxySettings } from '@catchword/base/proxy';
import { readText, readTextInTime } from '@catchword/base/text-file';
import type { z } from 'zod';
import type { Environment } from './environment.ts';
import { OPTIONS, type Option, type Values } from './option-table.ts';
import { anything, path } from './setting-forms.ts';

/** A sink or a channel as the environment configures it: `CATCHWORD_SINK_<NAME>`, `CATCHWORD_NOTIFY_<NAME>`. */
export interface SinkSetting {
  readonly env: string;
  /** In lower case. */
  readonly name: string;
  /** May contain credentials. */
  readonly url: string;
  readonly secret: string | undefined;
  /** Further headers of a webhook's requests, a line for each. They may contain credentials. */
  readonly headers?: string | undefined;
  /** Which products a sink gets, and what of them: see `view/view.ts`. */
  readonly where?: string | undefined;
  readonly fields?: string | undefined;
  /** The package, or the path of a module, that handles the address of a sink. */
  readonly module?: string | undefined;
  readonly proxies?: ProxySettings;
  /** Why one of its variables, or a file that one names, cannot be read; absent: all were. Without an address, `url` is empty. */
  readonly problems?: readonly CatchwordError[];
  /** Reads the files of `_FILE` again, where a password may have changed. @throws CatchwordError CONFIG_INVALID */
  readonly again?: () => Promise<SinkSetting | undefined>;
}

export interface Config extends Values {
  /** Reads the file of a secret again, which the service or Redis refuses. @throws CatchwordError CONFIG_INVALID */
  readonly secretAgain?: (key: 'apiKey' | 'accessToken' | 'redisUrl') => Promise<string | undefined>;
  readonly sinks: readonly SinkSetting[];
  /** Recipients of a message when something is wrong. */
  readonly channels: readonly SinkSetting[];
}

const QUOTED = /^(["']).*\1$/s;

/**
 * A value without the line breaks at its end. No error of this file repeats the value of a secret or of `_FILE`, which may
 * be the secret itself, set there by mistake.
 * @throws CatchwordError CONFIG_INVALID if it is in quotes, unless its form is `anything`
 */
function bare(setting: string, value: string | undefined, schema?: z.ZodType): string | undefined {
  const given = value?.replace(/[\r\n]+$/, '');
  if (given === undefined || schema === anything || !QUOTED.test(given)) return given;
  throw new CatchwordError('CONFIG_INVALID', `${setting}: the value is in quotes, which would be a part of it`, {
    setting,
    hint: 'Write it without them: a shell and .env remove quotes, docker --env-file keeps them.',
  });
}

const THE_FILE = 'the file that it names';

/** The path that a variable ending in `_FILE` names. */
function pathIn(setting: string, environment: Environment): string | undefined {
  const given = bare(setting, environment[setting]);
  if (!given) return undefined;
  const invalid = (problem: string, hint: string): CatchwordError =>
    new CatchwordError('CONFIG_INVALID', `${setting}: ${problem}`, { setting, hint });
  const isNoName = 'Put it into a file: a variable that ends in _FILE names a file.';
  if (ADDRESS.test(given)) throw invalid('its value is an address, not a path', isNoName);
  const parsed = path.safeParse(given);
  if (!parsed.success) throw invalid('its value is not a whole path', `It ${parsed.error.issues[0]?.message}.`);
  return given;
}

function secretIn(setting: string, text: string, schema?: z.ZodType): string | undefined {
  if (text.trim() !== '') return bare(`${setting}: ${THE_FILE}`, text.trim(), schema);
  const hint = 'Write the secret into it.';
  throw new CatchwordError('CONFIG_INVALID', `${setting}: ${THE_FILE} is empty`, { setting, hint });
}

function secretFromFile(env: string, environment: Environment, schema?: z.ZodType): string | undefined {
  const setting = `${env}_FILE`;
  const file = pathIn(setting, environment);
  return file === undefined ? undefined : secretIn(setting, readText(THE_FILE, file, setting), schema);
}

/** The environment with the contents of these variables' files, as they are now. @throws CatchwordError CONFIG_INVALID */
async function withFilesAgain(environment: Environment, names: readonly string[]): Promise<Environment> {
  const read = names.map(async (env) => {
    const setting = `${env}_FILE`;
    const file = environment[env] ? undefined : pathIn(setting, environment);
    if (file === undefined) return {};
    return { [env]: secretIn(setting, await readTextInTime(THE_FILE, file, setting), anything) };
  });
  return Object.assign({ ...environment }, ...(await Promise.all(read))) as Environment;
}

const NAMED = /^(CATCHWORD_(?:SINK|NOTIFY)_)([A-Z0-9][A-Z0-9_]*?)(?:_FILE)?$/;

/** A variable that belongs to a sink or a channel, whose own variable is the first group. */
export const BELONGING =
  /^(CATCHWORD_(?:SINK_.+|NOTIFY_.+(?=_SECRET|_HEADERS)))_(?:SECRET|HEADERS|WHERE|FIELDS|MODULE)(?:_FILE)?$/;

/** Variables of sinks, and all that a process reads which only delivers to them; `.env` stands for any. */
export const OF_SINKS = /^CATCHWORD_SINK_/;
export const OF_RELAY = /^(?:CATCHWORD_(?:SINK_.+|REMOVAL_LIMIT)|.+_PROXY|\.env)$/;

const ADDRESS = /^[a-z][a-z+]+:\S/;

/** Whether a variable names a sink or a channel (`CATCHWORD_SINK_<NAME>`), or belongs to one (`_FILE`, BELONGING). */
export function isNamed(variable: string): boolean {
  return NAMED.test(variable);
}

/** Runs `work`; a CatchwordError is collected instead of thrown. */
type Attempt = <T>(work: () => T) => T | undefined;

/** Collects the errors in `problems`. */
export function collecting(problems: CatchwordError[]): Attempt {
  return (work) => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof CatchwordError)) throw error;
      problems.push(error);
      return undefined;
    }
  };
}

function readNamed(
  prefix: 'CATCHWORD_SINK_' | 'CATCHWORD_NOTIFY_',
  environment: Environment,
  attempt: Attempt,
  { httpsProxy, httpProxy, noProxy }: ProxySettings,
): SinkSetting[] {
  const names = Object.keys(environment).flatMap((variable) => {
    const [, found, name = ''] = NAMED.exec(variable) ?? [];
    return found === prefix ? [name] : [];
  });
  return [...new Set(names)].sort().flatMap((name) => {
    const env = `${prefix}${name}`;
    const [, owner] = BELONGING.exec(env) ?? [];
    if (owner !== undefined) {
      const isSink = env.endsWith('_SECRET') && ADDRESS.test(environment[env] ?? '') && !environment[owner];
      if (!isSink) return [];
      const hint = 'Choose another name: none of a sink or a channel ends in _SECRET.';
      const problem = `${env}: its value is an address, but it is the secret of ${owner}`;
      attempt(() => {
        throw new CatchwordError('CONFIG_INVALID', problem, { setting: env, hint });
      });
      return [];
    }
    const proxies = { httpsProxy, httpProxy, noProxy };
    const readAll = (attempt: Attempt, given = environment): SinkSetting[] => {
      const read = (one: string, schema?: z.ZodType) =>
        attempt(() => bare(one, given[one], schema) || secretFromFile(one, given, schema)) || undefined;
      const [url, secret, headers] = [read(env), read(`${env}_SECRET`), read(`${env}_HEADERS`)];
      // An expression may begin and end with a quote.
      const [where, fields, module] =
        prefix === 'CATCHWORD_SINK_' ? ['WHERE', 'FIELDS', 'MODULE'].map((one) => read(`${env}_${one}`, anything)) : [];
      if (url === undefined && own.length === 0) return [];
      const problems = own.length > 0 && { problems: own };
      const values = { url: url ?? '', secret, headers, where, fields, module };
      return [{ env, name: name.toLowerCase(), ...values, proxies, ...problems }];
    };
    // A wrong setting of a sink stops nothing else.
    const own: CatchwordError[] = [];
    const found = readAll(prefix === 'CATCHWORD_SINK_' ? collecting(own) : attempt);
    const again = async () => {
      const all = ['', '_SECRET', '_HEADERS', '_WHERE', '_FIELDS', '_MODULE'].map((end) => `${env}${end}`);
      return readAll((work) => work(), await withFilesAgain(environment, all))[0];
    };
    return found.map((setting) => ({ ...setting, again }));
  });
}

/** An invalid value without what may be a credential: everything up to the last `@`, the query and the fragment. */
export function redactValue(given: string): string {
  return given.replace(/^(\w+:\/\/)?.*@/s, '$1…@').replace(/([?#]).+/s, '$1…');
}

/** The error of a required setting that is not set. */
export function notSet(key: 'baseUrl' | 'apiKey'): CatchwordError {
  const { env, help } = OPTIONS[key];
  const hint = 'Set it in the environment or in .env. To try without an account: npx catchword demo.';
  return new CatchwordError('CONFIG_INVALID', `${env} is not set (${help})`, { setting: env, hint });
}

function parseSetting({ env, help, schema, secret }: Option, given: string): unknown {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const shown = secret ? 'its value' : JSON.stringify(redactValue(given));
  const hint = `It ${parsed.error.issues[0]?.message ?? 'must have another value'}.`;
  throw new CatchwordError('CONFIG_INVALID', `${env}: ${shown} cannot be used (${help})`, { setting: env, hint });
}

export type ReadSettings = ReturnType<typeof readSettings>;

/**
 * Reads every setting. No error repeats the value of a secret, nor a password, a query or a fragment of an address.
 * @param needsSource whether the address and the key of the service must be set
 * @returns the valid settings, an error for each of the others, which names its variable, and the function that collects
 *   the errors, for further checks
 */
export function readSettings(environment: Environment, needsSource = false) {
  const problems: CatchwordError[] = [];
  const attempt = collecting(problems);
  const values: Record<string, unknown> = {};
  const parse = (option: Option, now = environment): unknown => {
    const { env, fallback, schema, secret } = option;
    const given = bare(env, now[env], schema) || (secret ? secretFromFile(env, now, schema) : undefined) || fallback;
    return given === undefined ? undefined : parseSetting(option, given);
  };
  for (const [key, option] of Object.entries<Option>(OPTIONS)) {
    const value = attempt(() => {
      const parsed = parse(option);
      if (parsed !== undefined) return parsed;
      if (needsSource && (key === 'baseUrl' || key === 'apiKey')) throw notSet(key);
      return undefined;
    });
    if (value !== undefined) values[key] = value;
  }
  const read: Partial<Values> = values;
  const sinks = readNamed('CATCHWORD_SINK_', environment, attempt, read);
  const channels = readNamed('CATCHWORD_NOTIFY_', environment, attempt, read);
  const secretAgain: NonNullable<Config['secretAgain']> = async (key) =>
    parse(OPTIONS[key], await withFilesAgain(environment, [OPTIONS[key].env])) as string | undefined;
  return { values: { ...read, sinks, channels, secretAgain }, problems, attempt };
}

/** Joins all problems in one error: a line with their number, then a line for each. */
export function settingsError(problems: readonly CatchwordError[]): CatchwordError {
  const [first] = problems;
  if (problems.length === 1 && first !== undefined) return first;
  const lines = problems.map(({ message, hint }) => `  ${message}${hint === undefined ? '' : `. ${hint}`}`);
  return new CatchwordError('CONFIG_INVALID', [`${problems.length} settings are wrong`, ...lines].join('\n'), {
    hint: 'Correct them in the environment or in .env.',
  });
}

/** The settings of a command that talks to the service. */
export interface SourceConfig extends Config {
  readonly baseUrl: string;
  readonly apiKey: string;
}

/** @throws CatchwordError CONFIG_INVALID naming what is missing */
export function requireSource(config: Config): SourceConfig {
  const problems = (['baseUrl', 'apiKey'] as const).filter((key) => config[key] === undefined).map(notSet);
  if (problems.length > 0) throw settingsError(problems);
  return config as SourceConfig;
}
