import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { z } from 'zod';
import { CatchwordError, systemCodeOf } from './errors.ts';
import {
  baseUrl,
  duration,
  fileMode,
  headerName,
  headerValue,
  list,
  lookupPath,
  pointers,
  port,
  rate,
  redisUrl,
  reference,
  removalLimit,
  seam,
  servicePath,
  suffix,
  text,
  timeZone,
  whole,
} from './setting-forms.ts';

interface Option<S extends z.ZodType = z.ZodType, F extends string | undefined = string | undefined> {
  readonly env: string;
  readonly fallback: F;
  readonly schema: S;
  readonly help: string;
  /** A secret: may come from a file named by `<env>_FILE`, and its value is never printed. */
  readonly secret?: boolean;
}

function option<S extends z.ZodType, F extends string | undefined>(
  env: string,
  fallback: F,
  schema: S,
  help: string,
  secret = false,
): Option<S, F> {
  return { env, fallback, schema, help, secret };
}

/** Every setting: name, default, form, meaning. The only place that knows the names of the environment. */
export const OPTIONS = {
  baseUrl: option('CATCHWORD_BASE_URL', undefined, baseUrl, 'address of the service'),
  apiKey: option('CATCHWORD_API_KEY', undefined, headerValue, 'API key', true),
  accessToken: option('CATCHWORD_ACCESS_TOKEN', undefined, headerValue, 'access token', true),
  userReference: option('CATCHWORD_USER_REFERENCE', undefined, reference, 'whose token it is: fetches a new one'),
  tokenStore: option('CATCHWORD_TOKEN_STORE', undefined, text, 'file that keeps a new access token; read first'),
  userPassword: option('CATCHWORD_USER_PASSWORD', undefined, text, 'password of the user to create', true),
  usersSuffix: option('CATCHWORD_V3_SUFFIX', '.xml', suffix, 'behind /v3/users and /v3/users/reset_access; off: none'),
  apiKeyHeader: option('CATCHWORD_API_KEY_HEADER', 'X-Service-API-Key', headerName, 'header of the API key'),
  accessTokenHeader: option(
    'CATCHWORD_ACCESS_TOKEN_HEADER',
    'X-Service-Access-Token',
    headerName,
    'header of the access token',
  ),
  pageParam: option('CATCHWORD_PAGE_PARAM', 'page', text, 'name of the page parameter'),
  perPageParam: option('CATCHWORD_PER_PAGE_PARAM', 'per_page', text, 'name of the page size parameter'),
  untilParam: option('CATCHWORD_UNTIL_PARAM', 'until', text, 'name of the parameter that ends a time range'),
  currencyParam: option('CATCHWORD_CURRENCY_PARAM', 'currency', text, 'name of the currency parameter'),
  perPage: option('CATCHWORD_PER_PAGE', '1000', whole(1, 1000), 'products a page, 1 to 1000'),
  includeDetails: option('CATCHWORD_INCLUDE_DETAILS', '', list, 'groups to include, comma-separated'),
  currency: option('CATCHWORD_CURRENCY', '', list, 'ISO 4217 codes, comma-separated'),
  db: option('CATCHWORD_DB', 'data/catalog.db', text, 'the mirror, an SQLite file'),
  dbMode: option(
    'CATCHWORD_DB_MODE',
    undefined,
    fileMode,
    "mode of the mirror's files, such as 0640; a new one is 0600",
  ),
  redisUrl: option('REDIS_URL', undefined, redisUrl, 'Redis for BullMQ; unset: everything in one process', true),
  concurrency: option('CATCHWORD_CONCURRENCY', '8', whole(1, 256), 'pages in flight per process'),
  rateLimit: option(
    'CATCHWORD_RATE_LIMIT',
    '50/min',
    rate,
    'requests: N/s, N/min or off; all processes of a mirror keep it together; with REDIS_URL, fetchers keep one of their own',
  ),
  requestTimeoutMs: option('CATCHWORD_REQUEST_TIMEOUT', '60s', duration, 'whole request, body included'),
  fullCron: option('CATCHWORD_FULL_CRON', '0 2 * * *', text, 'when a full load starts; off: never'),
  deltaCron: option('CATCHWORD_DELTA_CRON', '0 * * * *', text, 'when a delta load starts; off: never'),
  timezone: option('CATCHWORD_TIMEZONE', 'UTC', timeZone, 'time zone of both'),
  deltaOverlapMs: option(
    'CATCHWORD_DELTA_OVERLAP',
    '5m',
    duration,
    'how late deltas may be: how far back a delta asks, and how long a run waits before it removes',
  ),
  seam: option(
    'CATCHWORD_SEAM',
    '10',
    seam,
    'products that neighbouring windows share; off: plain pages, no run is sealed',
  ),
  removalLimit: option(
    'CATCHWORD_REMOVAL_LIMIT',
    '1%',
    removalLimit,
    'removals above this are held for approval: a share of the mirror (at least 100), or a number',
  ),
  removalConfirmations: option(
    'CATCHWORD_REMOVAL_CONFIRMATIONS',
    '2',
    whole(1, 1000),
    'full runs in a row that did not see a product, before an open run removes it',
  ),
  withdrawnAs: option(
    'CATCHWORD_WITHDRAWN_AS',
    'updated',
    z.enum(['updated', 'removed']),
    'what `distributable: false` is recorded as: updated or removed',
  ),
  maxPasses: option('CATCHWORD_MAX_PASSES', '2', whole(1, 10), 'readings of the whole list, where one is not sealed'),
  lookupPath: option('CATCHWORD_LOOKUP_PATH', undefined, lookupPath, 'point lookup, such as /v4/products/:vbid'),
  booksPath: option('CATCHWORD_BOOKS_PATH', '/vital_books', servicePath, 'path of the book operations'),
  packagesPath: option('CATCHWORD_PACKAGES_PATH', '/v4/packages', servicePath, 'path of the package operations'),
  runMaxAgeMs: option('CATCHWORD_RUN_MAX_AGE', '24h', duration, 'an unfinished run older than this is given up'),
  ignoreFields: option('CATCHWORD_IGNORE_FIELDS', '', pointers, 'JSON pointers left out of comparison'),
  httpHost: option('CATCHWORD_HTTP_HOST', '127.0.0.1', text, 'where web listens; beyond loopback a token is required'),
  httpPort: option('CATCHWORD_HTTP_PORT', '8080', port, 'its port; 0: any free one; off: the daemon serves no HTTP'),
  httpToken: option('CATCHWORD_HTTP_TOKEN', undefined, headerValue, 'what HTTP readers show as a bearer token', true),
  readyMaxAgeMs: option('CATCHWORD_READY_MAX_AGE', '26h', duration, '/readyz answers 503 when the mirror is older'),
  logRetentionMs: option(
    'CATCHWORD_LOG_RETENTION',
    '30d',
    duration,
    'how long the change log keeps superseded records',
  ),
  logCap: option(
    'CATCHWORD_LOG_CAP',
    '10000000',
    whole(1000, Number.MAX_SAFE_INTEGER),
    'a sink that is further behind, in records, and beyond the retention, is disabled',
  ),
  name: option(
    'CATCHWORD_NAME',
    undefined,
    z.string().regex(/^[A-Za-z0-9_-]+$/, 'letters, digits, _ and - are needed'),
    'name of this catalog in the names of its pm2 processes',
  ),
  logOutput: option(
    'LOG_OUTPUT',
    'stderr',
    z.enum(['stderr', 'split']),
    'where services log: stderr, or split: errors to stderr, all else to stdout',
  ),
  logLevel: option(
    'LOG_LEVEL',
    'info',
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    'fatal, error, warn, info, debug, trace or silent',
  ),
} as const satisfies Record<string, Option>;

type Values = {
  readonly [K in keyof typeof OPTIONS]: (typeof OPTIONS)[K] extends Option<infer S, infer F>
    ? F extends string
      ? z.output<S>
      : z.output<S> | undefined
    : never;
};

/** A downstream store, as it is named: `CATCHWORD_SINK_<NAME>`. */
export interface SinkSetting {
  readonly env: string;
  /** In lower case. */
  readonly name: string;
  /** Its address, which may hold credentials. */
  readonly url: string;
  readonly secret: string | undefined;
}

export interface Config extends Values {
  readonly sinks: readonly SinkSetting[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The process environment, under which a `.env` in the working directory is laid. */
export function readEnvironment(directory = process.cwd()): Environment {
  const file = `${directory}/.env`;
  return { ...(existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {}), ...process.env };
}

function secretFromFile(env: string, environment: Environment): string | undefined {
  const path = environment[`${env}_FILE`];
  if (path === undefined || path === '') return undefined;
  try {
    const text = readFileSync(path, 'utf8').trim();
    if (text !== '') return text;
  } catch (cause) {
    // Not by its name: the secret itself is set there by mistake.
    const code = systemCodeOf(cause) ?? 'unknown error';
    throw new CatchwordError('CONFIG_INVALID', `${env}_FILE: cannot read the file that it names (${code})`, {
      hint: 'Set it to the path of a file that this user may read.',
    });
  }
  // Taken for unset, it would switch off what it was to protect.
  throw new CatchwordError('CONFIG_INVALID', `${env}_FILE: the file that it names is empty`, {
    hint: 'Write the secret into it.',
  });
}

const SINK = /^CATCHWORD_SINK_([A-Z0-9][A-Z0-9_]*?)(?:_FILE)?$/;

/** `CATCHWORD_SINK_<NAME>`, with `…_SECRET`; both may come from a file. */
export function isSinkVariable(name: string): boolean {
  return SINK.test(name);
}

/** Runs `work`; what is wrong with a setting is collected instead of thrown. */
type Attempt = <T>(work: () => T) => T | undefined;

function readSinks(environment: Environment, attempt: Attempt): SinkSetting[] {
  const names = Object.keys(environment).flatMap((name) => SINK.exec(name)?.[1] ?? []);
  return [...new Set(names)].sort().flatMap((name) => {
    const env = `CATCHWORD_SINK_${name}`;
    if (name.endsWith('_SECRET')) return [];
    const url = environment[env] || attempt(() => secretFromFile(env, environment));
    const secret = environment[`${env}_SECRET`] || attempt(() => secretFromFile(`${env}_SECRET`, environment));
    if (url === undefined || url === '') return [];
    return [{ env, name: name.toLowerCase(), url, secret: secret || undefined }];
  });
}

/**
 * Without who asks: whatever stands before the last `@`, since an address may be refused for how it is written; nor with
 * what stands behind a path.
 */
function shownValue(given: string): string {
  return JSON.stringify(given.replace(/^(\w+:\/\/)?.*@/s, '$1…@').replace(/([?#]).+/s, '$1…'));
}

type Need = 'baseUrl' | 'apiKey';

function isNeeded(key: string, needs: readonly Need[]): key is Need {
  return needs.some((need) => need === key);
}

function notSet(key: Need): CatchwordError {
  return new CatchwordError('CONFIG_INVALID', `${OPTIONS[key].env} is not set (${OPTIONS[key].help})`, {
    hint: 'Set it in the environment or in .env. To try without an account: npx catchword demo.',
  });
}

function parseSetting({ env, help, schema, secret }: Option, given: string): unknown {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const shown = secret ? 'its value' : shownValue(given);
  throw new CatchwordError('CONFIG_INVALID', `${env}: ${shown} cannot be used (${help})`, {
    hint: `${parsed.error.issues[0]?.message ?? 'another value is needed'}.`.replace(/^./, (c) => c.toUpperCase()),
  });
}

/** Settings as far as they are valid, and an error for each of the others, which names its variable. */
export interface ReadSettings {
  readonly values: Partial<Config> & Pick<Config, 'sinks'>;
  readonly problems: readonly CatchwordError[];
}

/**
 * Reads every setting, whatever is wrong with others. No error repeats the value of a secret, nor a password, a query or
 * a fragment that stands in an address.
 * @param needs settings that must be set
 */
export function readSettings(environment: Environment, needs: readonly Need[] = []): ReadSettings {
  const problems: CatchwordError[] = [];
  const attempt: Attempt = (work) => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof CatchwordError)) throw error;
      problems.push(error);
      return undefined;
    }
  };
  const values: Record<string, unknown> = {};
  for (const [key, option] of Object.entries<Option>(OPTIONS)) {
    const { env, fallback, secret } = option;
    const value = attempt(() => {
      const given = environment[env] || (secret ? secretFromFile(env, environment) : undefined) || fallback;
      if (given !== undefined) return parseSetting(option, given);
      if (isNeeded(key, needs)) throw notSet(key);
      return undefined;
    });
    if (value !== undefined) values[key] = value;
  }
  return { values: { ...values, sinks: readSinks(environment, attempt) }, problems };
}

/** Everything that is wrong with the settings as one error: a line that counts, then a line for each. */
export function settingsError(problems: readonly CatchwordError[]): CatchwordError {
  const [first] = problems;
  if (problems.length === 1 && first !== undefined) return first;
  const lines = problems.map(({ message, hint }) => `  ${message}${hint === undefined ? '' : `. ${hint}`}`);
  return new CatchwordError('CONFIG_INVALID', [`${problems.length} settings are wrong`, ...lines].join('\n'), {
    hint: 'Correct them in the environment or in .env.',
  });
}

/** @throws CatchwordError CONFIG_INVALID naming every variable that is wrong; see `readSettings` */
export function loadConfig(environment: Environment = readEnvironment()): Config {
  const { values, problems } = readSettings(environment);
  if (problems.length > 0) throw settingsError(problems);
  return values as Config;
}

/** What a command needs that talks to the service. */
export interface SourceConfig extends Config {
  readonly baseUrl: string;
  readonly apiKey: string;
}

/** @throws CatchwordError CONFIG_INVALID naming what is missing */
export function requireSource(config: Config): SourceConfig {
  const needs = ['baseUrl', 'apiKey'] as const;
  const problems = needs.filter((key) => config[key] === undefined).map(notSet);
  if (problems.length > 0) throw settingsError(problems);
  return config as SourceConfig;
}

/** @throws CatchwordError CONFIG_INVALID where the base URL is missing */
export function requireName(config: Config): void {
  if (config.baseUrl === undefined) throw settingsError([notSet('baseUrl')]);
}
