import { z } from 'zod';
import type { SourceConfig } from '../config.ts';
import { OPTIONS } from '../option-table.ts';
import { inputError, PARSING } from './input/input-error.ts';
import { only } from './input/request-fields.ts';
import { inOptionNames } from './option-names.ts';

/** What a client needs to know. The same rows of the option table that commands read from the environment. */
export type ClientSettings = Pick<
  SourceConfig,
  | ('baseUrl' | 'apiKey' | 'accessToken' | 'apiKeyHeader' | 'accessTokenHeader' | 'userReference' | 'tokenStore')
  | ('requestTimeoutMs' | 'concurrency' | 'rateLimit' | 'usersSuffix' | 'booksPath' | 'packagesPath' | 'lookupPath')
  | ('pageParam' | 'perPageParam' | 'untilParam' | 'currencyParam' | 'includeDetails' | 'currency')
>;

export interface ClientOptions {
  /** Address of the service, http or https; may have a path, but no user name or password. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Needed for licenses and the catalog (interface, section 5). */
  readonly accessToken?: string | undefined;
  /** The reference of the user whose token it is: fetches the token, and a new one when it is no longer valid. */
  readonly reference?: string | undefined;
  /** File that keeps a new access token, mode 0600. Default: it is kept in memory alone. */
  readonly tokenStore?: string | undefined;
  /** Default `X-Service-API-Key`. */
  readonly apiKeyHeader?: string | undefined;
  /** Default `X-Service-Access-Token`. */
  readonly accessTokenHeader?: string | undefined;
  /** One request as a whole, body included, in milliseconds; default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Requests of this client: `N/s`, `N/min` or `off`; default `50/min`. */
  readonly rateLimit?: string | undefined;
  /** Kept open at most, 1 to 256; default 8. */
  readonly connections?: number | undefined;
  /** Default `/vital_books`. */
  readonly booksPath?: string | undefined;
  /** Default `/v4/packages`. */
  readonly packagesPath?: string | undefined;
  /** Of one product; holds `:vbid`. Default `/v4/products/:vbid`. */
  readonly lookupPath?: string | undefined;
  /** Behind `/v3/users` and `/v3/users/reset_access`: default `.xml`; `off` for none. */
  readonly usersSuffix?: string | undefined;
  /** Names of the catalog's parameters, not shown by the interface: `page`, `per_page`, `until`, `currency` by default. */
  readonly pageParam?: string | undefined;
  readonly perPageParam?: string | undefined;
  readonly untilParam?: string | undefined;
  readonly currencyParam?: string | undefined;
}

const NEEDS_TIME = 'milliseconds, a whole number from 1 to 3600000, are needed';
const NEEDS_CONNECTIONS = 'a whole number from 1 to 256 is needed';

const SHAPE = {
  baseUrl: OPTIONS.baseUrl.schema,
  apiKey: OPTIONS.apiKey.schema,
  accessToken: OPTIONS.accessToken.schema.optional(),
  reference: OPTIONS.userReference.schema.optional(),
  tokenStore: OPTIONS.tokenStore.schema.optional(),
  apiKeyHeader: OPTIONS.apiKeyHeader.schema.default(OPTIONS.apiKeyHeader.fallback),
  accessTokenHeader: OPTIONS.accessTokenHeader.schema.default(OPTIONS.accessTokenHeader.fallback),
  timeoutMs: z.int(NEEDS_TIME).min(1, NEEDS_TIME).max(3_600_000, NEEDS_TIME).default(60_000),
  rateLimit: OPTIONS.rateLimit.schema.prefault(OPTIONS.rateLimit.fallback),
  connections: z.int(NEEDS_CONNECTIONS).min(1, NEEDS_CONNECTIONS).max(256, NEEDS_CONNECTIONS).default(8),
  booksPath: OPTIONS.booksPath.schema.default(OPTIONS.booksPath.fallback),
  packagesPath: OPTIONS.packagesPath.schema.default(OPTIONS.packagesPath.fallback),
  lookupPath: OPTIONS.lookupPath.schema.default('/v4/products/:vbid'),
  usersSuffix: OPTIONS.usersSuffix.schema.prefault(OPTIONS.usersSuffix.fallback),
  pageParam: OPTIONS.pageParam.schema.default(OPTIONS.pageParam.fallback),
  perPageParam: OPTIONS.perPageParam.schema.default(OPTIONS.perPageParam.fallback),
  untilParam: OPTIONS.untilParam.schema.default(OPTIONS.untilParam.fallback),
  currencyParam: OPTIONS.currencyParam.schema.default(OPTIONS.currencyParam.fallback),
} satisfies Record<keyof ClientOptions, z.ZodType>;

const SCHEMA = only(SHAPE);

/** @throws CatchwordError USAGE naming every wrong option; the value of a secret is not repeated */
export function checkOptions(options: ClientOptions): ClientSettings {
  const parsed = SCHEMA.safeParse(options, PARSING);
  if (!parsed.success) {
    throw inOptionNames(inputError('createClient', parsed.error.issues, { '': Object.keys(SHAPE) }));
  }
  const { reference, timeoutMs, connections, ...same } = parsed.data;
  return {
    ...same,
    accessToken: same.accessToken,
    userReference: reference,
    tokenStore: same.tokenStore,
    requestTimeoutMs: timeoutMs,
    concurrency: connections,
    includeDetails: [],
    currency: [],
  };
}
