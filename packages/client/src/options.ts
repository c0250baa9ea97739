import { CatchwordError } from '@catchword/base/errors';
import { OPTIONS } from '@catchword/settings/option-table';
import * as z from 'zod';
import { parseInput } from './input/parse-input.ts';
import { type OptionsOf, only } from './input/request-fields.ts';

const TIME = 'must be milliseconds, a whole number from 1 to 3600000';
const CONNECTIONS = 'must be a whole number from 1 to 256';

const SHAPE = {
  /** Address of the service, http or https; may have a path, but not a user name or password. */
  baseUrl: OPTIONS.baseUrl.schema,
  apiKey: OPTIONS.apiKey.schema,
  /** Required for licenses and the catalog (interface, section 5), unless `reference` is given. */
  accessToken: OPTIONS.accessToken.schema.optional(),
  /** Reference of the user who owns the token; lets the client fetch and renew the token. */
  reference: OPTIONS.userReference.schema.optional(),
  /** File that stores a renewed access token, mode 0600. Default: in memory only. */
  tokenStore: OPTIONS.tokenStore.schema.optional(),
  /** Default `X-Service-API-Key`. */
  apiKeyHeader: OPTIONS.apiKeyHeader.schema.default(OPTIONS.apiKeyHeader.fallback),
  /** Default `X-Service-Access-Token`. */
  accessTokenHeader: OPTIONS.accessTokenHeader.schema.default(OPTIONS.accessTokenHeader.fallback),
  /** Limit of one request, body included, in milliseconds; default 60,000. */
  timeoutMs: z.int(TIME).min(1, TIME).max(3_600_000, TIME).default(60_000),
  /** Requests of this client: `N/s`, `N/min` or `off`; default `50/min`. */
  rateLimit: OPTIONS.rateLimit.schema.prefault(OPTIONS.rateLimit.fallback),
  /** Proxies for https and for http, and the hosts that need none: as HTTPS_PROXY, HTTP_PROXY and NO_PROXY of commands. */
  httpsProxy: OPTIONS.httpsProxy.schema.optional(),
  httpProxy: OPTIONS.httpProxy.schema.optional(),
  noProxy: OPTIONS.noProxy.schema.optional(),
  /** Maximum number of open connections, 1 to 256; default 8. */
  connections: z.int(CONNECTIONS).min(1, CONNECTIONS).max(256, CONNECTIONS).default(8),
  /** Default `/vital_books`. */
  booksPath: OPTIONS.booksPath.schema.default(OPTIONS.booksPath.fallback),
  /** Default `/v4/packages`. */
  packagesPath: OPTIONS.packagesPath.schema.default(OPTIONS.packagesPath.fallback),
  /** Path of one product, with `:vbid`. Default `/v4/products/:vbid`. */
  lookupPath: OPTIONS.lookupPath.schema.default('/v4/products/:vbid'),
  /** Suffix of `/v3/users` and `/v3/users/reset_access`: default `.xml`; `off` for none. */
  usersSuffix: OPTIONS.usersSuffix.schema.prefault(OPTIONS.usersSuffix.fallback),
  /** Names of catalog parameters that the interface does not show: `page`, `per_page`, `until`, `currency` by default. */
  pageParam: OPTIONS.pageParam.schema.default(OPTIONS.pageParam.fallback),
  perPageParam: OPTIONS.perPageParam.schema.default(OPTIONS.perPageParam.fallback),
  untilParam: OPTIONS.untilParam.schema.default(OPTIONS.untilParam.fallback),
  currencyParam: OPTIONS.currencyParam.schema.default(OPTIONS.currencyParam.fallback),
};
const SCHEMA = only(SHAPE);

export type ClientOptions = OptionsOf<typeof SHAPE> & { readonly baseUrl: string; readonly apiKey: string };

/** The settings of a client: rows of the option table that commands read from the environment. */
export type ClientSettings = ReturnType<typeof checkOptions>;

/** @throws CatchwordError USAGE naming every invalid option, without the values of secrets */
export function checkOptions(options: ClientOptions) {
  const { reference, timeoutMs, connections, ...same } = parseInput('createClient', SCHEMA, options);
  return { ...same, userReference: reference, requestTimeoutMs: timeoutMs, concurrency: connections };
}

/** Options whose name differs from the setting in the option table. */
const RENAMED: Readonly<Record<string, string>> = {
  userReference: 'reference',
  requestTimeoutMs: 'timeoutMs',
  concurrency: 'connections',
};

const OPTION_NAMES = new Map(Object.entries(OPTIONS).map(([name, { env }]) => [env, RENAMED[name] ?? name]));

/** Rethrows an error; one about a setting names the option, instead of the environment variable that commands read. */
export function rethrowWithOption(error: unknown): never {
  if (!(error instanceof CatchwordError) || error.setting === undefined) throw error;
  throw error.with({ setting: OPTION_NAMES.get(error.setting) ?? error.setting });
}
