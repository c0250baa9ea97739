import { z } from 'zod';
import { CatchwordError } from '../errors.ts';
import { OPTIONS } from '../option-table.ts';
import { parseInput } from './input/parse-input.ts';
import { only } from './input/request-fields.ts';

export interface ClientOptions {
  /** Address of the service, http or https; may have a path, but not a user name or password. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Required for licenses and the catalog (interface, section 5), unless `reference` is given. */
  readonly accessToken?: string | undefined;
  /** Reference of the user who owns the token; lets the client fetch and renew the token. */
  readonly reference?: string | undefined;
  /** File that stores a renewed access token, mode 0600. Default: in memory only. */
  readonly tokenStore?: string | undefined;
  /** Default `X-Service-API-Key`. */
  readonly apiKeyHeader?: string | undefined;
  /** Default `X-Service-Access-Token`. */
  readonly accessTokenHeader?: string | undefined;
  /** Limit of one request, body included, in milliseconds; default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Requests of this client: `N/s`, `N/min` or `off`; default `50/min`. */
  readonly rateLimit?: string | undefined;
  /** Maximum number of open connections, 1 to 256; default 8. */
  readonly connections?: number | undefined;
  /** Default `/vital_books`. */
  readonly booksPath?: string | undefined;
  /** Default `/v4/packages`. */
  readonly packagesPath?: string | undefined;
  /** Path of one product, with `:vbid`. Default `/v4/products/:vbid`. */
  readonly lookupPath?: string | undefined;
  /** Suffix of `/v3/users` and `/v3/users/reset_access`: default `.xml`; `off` for none. */
  readonly usersSuffix?: string | undefined;
  /** Names of catalog parameters that the interface does not show: `page`, `per_page`, `until`, `currency` by default. */
  readonly pageParam?: string | undefined;
  readonly perPageParam?: string | undefined;
  readonly untilParam?: string | undefined;
  readonly currencyParam?: string | undefined;
}

const TIME = 'must be milliseconds, a whole number from 1 to 3600000';
const CONNECTIONS = 'must be a whole number from 1 to 256';

const SCHEMA = only({
  baseUrl: OPTIONS.baseUrl.schema,
  apiKey: OPTIONS.apiKey.schema,
  accessToken: OPTIONS.accessToken.schema.optional(),
  reference: OPTIONS.userReference.schema.optional(),
  tokenStore: OPTIONS.tokenStore.schema.optional(),
  apiKeyHeader: OPTIONS.apiKeyHeader.schema.default(OPTIONS.apiKeyHeader.fallback),
  accessTokenHeader: OPTIONS.accessTokenHeader.schema.default(OPTIONS.accessTokenHeader.fallback),
  timeoutMs: z.int(TIME).min(1, TIME).max(3_600_000, TIME).default(60_000),
  rateLimit: OPTIONS.rateLimit.schema.prefault(OPTIONS.rateLimit.fallback),
  connections: z.int(CONNECTIONS).min(1, CONNECTIONS).max(256, CONNECTIONS).default(8),
  booksPath: OPTIONS.booksPath.schema.default(OPTIONS.booksPath.fallback),
  packagesPath: OPTIONS.packagesPath.schema.default(OPTIONS.packagesPath.fallback),
  lookupPath: OPTIONS.lookupPath.schema.default('/v4/products/:vbid'),
  usersSuffix: OPTIONS.usersSuffix.schema.prefault(OPTIONS.usersSuffix.fallback),
  pageParam: OPTIONS.pageParam.schema.default(OPTIONS.pageParam.fallback),
  perPageParam: OPTIONS.perPageParam.schema.default(OPTIONS.perPageParam.fallback),
  untilParam: OPTIONS.untilParam.schema.default(OPTIONS.untilParam.fallback),
  currencyParam: OPTIONS.currencyParam.schema.default(OPTIONS.currencyParam.fallback),
} satisfies Record<keyof ClientOptions, z.ZodType>);

/** The settings of a client: rows of the option table that commands read from the environment. */
export type ClientSettings = ReturnType<typeof checkOptions>;

/** @throws CatchwordError USAGE naming every invalid option, without the values of secrets */
export function checkOptions(options: ClientOptions) {
  const { reference, timeoutMs, connections, ...same } = parseInput('createClient', SCHEMA, options);
  const { accessToken, tokenStore } = same;
  const renamed = { userReference: reference, requestTimeoutMs: timeoutMs, concurrency: connections };
  return { ...same, ...renamed, accessToken, tokenStore };
}

/** Options whose name differs from the setting in the option table. */
const RENAMED: Readonly<Record<string, string>> = {
  userReference: 'reference',
  requestTimeoutMs: 'timeoutMs',
  concurrency: 'connections',
};

const OPTION_NAMES = new Map(Object.entries(OPTIONS).map(([name, { env }]) => [env, RENAMED[name] ?? name]));

/** Names the option of an error about a setting, instead of the environment variable that commands read. */
export function withOptionName(error: unknown): unknown {
  if (!(error instanceof CatchwordError) || error.setting === undefined) return error;
  return error.with({ setting: OPTION_NAMES.get(error.setting) ?? error.setting });
}
