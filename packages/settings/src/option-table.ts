import type { z } from 'zod';
import * as form from './setting-forms.ts';

export interface Option<S extends z.ZodType = z.ZodType, F extends string | undefined = string | undefined> {
  /** Name of the environment variable. */
  readonly env: string;
  readonly fallback: F;
  readonly schema: S;
  readonly help: string;
  /** The value is never printed, and may come from the file that `<env>_FILE` names. */
  readonly secret: boolean;
}

function option<S extends z.ZodType, F extends string | undefined>(env: string, fallback: F, schema: S) {
  return { means: (help: string): Option<S, F> => ({ env, fallback, schema, help, secret: false }) };
}

function secret<S extends z.ZodType>(env: string, schema: S) {
  return { means: (help: string): Option<S, undefined> => ({ env, fallback: undefined, schema, help, secret: true }) };
}

/** Every setting, by subject: name, default, form, meaning. */
export const OPTION_GROUPS = {
  'The service': {
    baseUrl: option('CATCHWORD_BASE_URL', undefined, form.baseUrl).means('address of the service'),
    apiKey: secret('CATCHWORD_API_KEY', form.apiKey).means('API key'),
    accessToken: secret('CATCHWORD_ACCESS_TOKEN', form.headerValue).means('access token'),
    userReference: option('CATCHWORD_USER_REFERENCE', undefined, form.reference).means(
      "reference of the token's user; lets catchword renew the token",
    ),
    tokenStore: option('CATCHWORD_TOKEN_STORE', undefined, form.path).means(
      'file that keeps a renewed access token; read first',
    ),
    userPassword: secret('CATCHWORD_USER_PASSWORD', form.anything).means('password of the user to create'),
    apiKeyHeader: option('CATCHWORD_API_KEY_HEADER', 'X-Service-API-Key', form.headerName).means(
      'header of the API key',
    ),
    accessTokenHeader: option('CATCHWORD_ACCESS_TOKEN_HEADER', 'X-Service-Access-Token', form.headerName).means(
      'header of the access token',
    ),
    usersSuffix: option('CATCHWORD_V3_SUFFIX', '.xml', form.suffix).means('suffix of the /v3/users paths; off: none'),
    booksPath: option('CATCHWORD_BOOKS_PATH', '/vital_books', form.servicePath).means('path of the book operations'),
    packagesPath: option('CATCHWORD_PACKAGES_PATH', '/v4/packages', form.servicePath).means(
      'path of the package operations',
    ),
    lookupPath: option('CATCHWORD_LOOKUP_PATH', undefined, form.lookupPath).means(
      'path that reads one product; at most 200 a run',
    ),
    pageParam: option('CATCHWORD_PAGE_PARAM', 'page', form.text).means('name of the page parameter'),
    perPageParam: option('CATCHWORD_PER_PAGE_PARAM', 'per_page', form.text).means('name of the page size parameter'),
    untilParam: option('CATCHWORD_UNTIL_PARAM', 'until', form.text).means(
      'name of the parameter that ends a time range',
    ),
    currencyParam: option('CATCHWORD_CURRENCY_PARAM', 'currency', form.text).means('name of the currency parameter'),
  },
  Pace: {
    rateLimit: option('CATCHWORD_RATE_LIMIT', '50/min', form.rate).means(
      'requests to the service, shared by all processes of a mirror, and with REDIS_URL by fetchers and commands; off: a ' +
        'limit is learned when the service refuses a request',
    ),
    concurrency: option('CATCHWORD_CONCURRENCY', '8', form.whole(1, 256)).means(
      'pages in flight per process; fewer while the service refuses so many',
    ),
    requestTimeoutMs: option('CATCHWORD_REQUEST_TIMEOUT', '60s', form.duration).means(
      'limit of a whole request, body included',
    ),
  },
  'The mirror': {
    db: option('CATCHWORD_DB', 'data/catalog.db', form.path).means('the mirror, an SQLite file'),
    dbMode: option('CATCHWORD_DB_MODE', undefined, form.fileMode).means(
      "mode of the mirror's files; a new one is 0600",
    ),
    minFreeBytes: option('CATCHWORD_MIN_FREE', '100MB', form.bytes).means(
      "free space on the mirror's disk below which runs read no page; off: they read until the disk is full",
    ),
    perPage: option('CATCHWORD_PER_PAGE', '1000', form.whole(1, 1000)).means('products per page'),
    includeDetails: option('CATCHWORD_INCLUDE_DETAILS', '', form.list).means(
      'groups of details to include; after a change, the next run reads every product again',
    ),
    currency: option('CATCHWORD_CURRENCY', '', form.list).means('currencies of prices, as ISO 4217 codes'),
    ignoreFields: option('CATCHWORD_IGNORE_FIELDS', '', form.pointers).means(
      'fields whose changes are ignored; * stands for every element of an array, or every member of an object',
    ),
    volatileFields: option('CATCHWORD_VOLATILE_FIELDS', '', form.pointers).means(
      'fields that differ from answer to answer although nothing was modified, such as signed links; ignored, too',
    ),
    untoldFields: option('CATCHWORD_UNTOLD_FIELDS', '', form.pointers).means(
      'fields whose changes the service does not show in deltas, so that a full run does not expect them there',
    ),
    withdrawnAs: option('CATCHWORD_WITHDRAWN_AS', 'updated', form.oneOf('updated', 'removed')).means(
      'how a change to `distributable: false` is recorded',
    ),
    deletedField: option('CATCHWORD_DELETED_FIELD', undefined, form.text).means(
      'member of an item by which the service says that the product does not exist any more: `deleted` counts if it is true, 1, y, yes or a date since 2000; for another value name that, as in `status=deleted`',
    ),
  },
  Runs: {
    fullCron: option('CATCHWORD_FULL_CRON', '0 2 * * *', form.text).means(
      'schedule of full loads, as a cron expression; off: never',
    ),
    deltaCron: option('CATCHWORD_DELTA_CRON', '0 * * * *', form.text).means('schedule of delta loads; off: never'),
    timezone: option('CATCHWORD_TIMEZONE', 'UTC', form.timeZone).means('time zone of both schedules'),
    deltaOverlapMs: option('CATCHWORD_DELTA_OVERLAP', '5m', form.duration).means(
      'how late deltas may be: how far back a delta asks, and how long a run waits before it removes products',
    ),
    seam: option('CATCHWORD_SEAM', '10', form.seam).means(
      'products that neighbouring windows share; off: plain pages, and no run is sealed',
    ),
    maxPasses: option('CATCHWORD_MAX_PASSES', '2', form.whole(1, 10)).means(
      'maximum full passes when a run is not sealed',
    ),
    removalLimit: option('CATCHWORD_REMOVAL_LIMIT', '1%', form.removalLimit).means(
      'more unexpected removals than this are held for approval; a share counts as at least 100 products',
    ),
    lossLimit: option('CATCHWORD_LOSS_LIMIT', '5%', form.lossLimit).means(
      'a run that empties, with the runs of 24 hours, a field of more products than this is unusual; a share counts as at least 100 products',
    ),
    removalConfirmations: option('CATCHWORD_REMOVAL_CONFIRMATIONS', '2', form.whole(1, 1000)).means(
      'full runs in a row that must miss a product before an open run removes it',
    ),
    runMaxAgeMs: option('CATCHWORD_RUN_MAX_AGE', '24h', form.duration).means(
      'age at which an unfinished run is abandoned',
    ),
    runRetentionMs: option('CATCHWORD_RUN_RETENTION', '90d', form.duration).means(
      'how long runs are kept; the newest 100 of each kind, held and unusual ones, and those that a kept change or decision names stay',
    ),
  },
  Delivery: {
    logRetentionMs: option('CATCHWORD_LOG_RETENTION', '30d', form.duration).means(
      'how long the change log keeps superseded records',
    ),
    logCap: option('CATCHWORD_LOG_CAP', '10000000', form.whole(1000, Number.MAX_SAFE_INTEGER)).means(
      'a sink that is more records behind than this, and beyond the retention, is disabled',
    ),
    contractSecret: secret('CATCHWORD_CONTRACT_SECRET', form.text).means(
      'what {secret} stands for in the address of `sink contract`; also signs the requests of a webhook',
    ),
  },
  HTTP: {
    httpHost: option('CATCHWORD_HTTP_HOST', '127.0.0.1', form.text).means(
      'address to listen on; beyond loopback a token is required',
    ),
    httpPort: option('CATCHWORD_HTTP_PORT', '8080', form.port).means(
      '0: any free port; off: the daemon does not serve HTTP',
    ),
    metricsPort: option('CATCHWORD_METRICS_PORT', 'off', form.port).means(
      'port at which each role answers /healthz, and /metrics with the figures of its own process; off: none',
    ),
    httpToken: secret('CATCHWORD_HTTP_TOKEN', form.headerValue).means('bearer token required from HTTP clients'),
    httpOrigins: option('CATCHWORD_HTTP_ORIGINS', '', form.origins).means(
      'sites whose pages may read /api/changes/stream from a browser (CORS)',
    ),
    readyMaxAgeMs: option('CATCHWORD_READY_MAX_AGE', '26h', form.duration).means(
      '/readyz answers 503 when the mirror is older',
    ),
  },
  Notifications: {
    behindLimitMs: option('CATCHWORD_BEHIND_LIMIT', '30m', form.duration).means(
      'how long a change may wait for a sink; a sink that is further behind for a third of that is a problem',
    ),
    heartbeatUrl: secret('CATCHWORD_HEARTBEAT_URL', form.heartbeatUrl).means(
      'called after each complete run; with /start when a run starts, and /fail when it fails',
    ),
  },
  Proxies: {
    httpsProxy: secret('HTTPS_PROXY', form.proxyUrl).means(
      'proxy for https addresses of the service, webhooks, channels and heartbeats; unset: HTTP_PROXY',
    ),
    httpProxy: secret('HTTP_PROXY', form.proxyUrl).means('proxy for http addresses'),
    noProxy: option('NO_PROXY', undefined, form.text).means(
      'hosts that need no proxy, with their subdomains, such as shop.example,books.example:8443; *: all',
    ),
  },
  Processes: {
    redisUrl: secret('REDIS_URL', form.redisUrl).means('Redis for BullMQ; unset: everything runs in one process'),
    name: option('CATCHWORD_NAME', undefined, form.processName).means(
      'name of this catalog in the names of its pm2 processes',
    ),
    logLevel: option(
      'LOG_LEVEL',
      'info',
      form.oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    ).means('lines below this level are not logged'),
    logOutput: option('LOG_OUTPUT', 'stderr', form.oneOf('stderr', 'split')).means(
      'where services log; split: errors to stderr, everything else to stdout',
    ),
    noColour: option('NO_COLOR', undefined, form.anything).means('any value turns colours off'),
  },
};

/** The same in one table. */
export const OPTIONS = {
  ...OPTION_GROUPS['The service'],
  ...OPTION_GROUPS.Pace,
  ...OPTION_GROUPS['The mirror'],
  ...OPTION_GROUPS.Runs,
  ...OPTION_GROUPS.Delivery,
  ...OPTION_GROUPS.HTTP,
  ...OPTION_GROUPS.Notifications,
  ...OPTION_GROUPS.Proxies,
  ...OPTION_GROUPS.Processes,
};

type ValueOf<O> =
  O extends Option<infer S, infer F> ? (F extends string ? z.output<S> : z.output<S> | undefined) : never;

/** The value of each setting; undefined if it is not set and has no default. */
export type Values = { readonly [K in keyof typeof OPTIONS]: ValueOf<(typeof OPTIONS)[K]> };
