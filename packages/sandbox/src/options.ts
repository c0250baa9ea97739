import { type Clock, systemClock } from '@catchword/base/clock';
import type { RateLimit } from './http/rate-limit.ts';

/** Orders of the list. `id`: order of creation. Deltas are always in order of update, oldest first. */
export const LIST_ORDERS = ['id', 'updated-asc', 'updated-desc'] as const;

/** The options of a sandbox, with their defaults. @rule 5-2 */
export const SANDBOX_DEFAULTS = {
  /** Products at the start, 0 to 20 million. */
  items: 10_000,
  /** The same seed gives the same catalog, the same faults and the same choice of changes. */
  seed: 1,
  /** 0: any free port. */
  port: 0,
  /** Wait before every reply of the interface. */
  latencyMs: 0,
  /** Null: unlimited. */
  rateLimit: null as RateLimit | null,
  /** Changes a second; 0: none. */
  churnPerSecond: 0,
  /** Whether products have about 2 KB instead of 110 bytes. */
  details: false,
  order: 'id' as (typeof LIST_ORDERS)[number],
  /** Larger pages are cut to this size; the envelope says so. */
  maxPerPage: 1000,
  /** See `parseFaults`; empty: none. */
  faults: '',
  apiKey: 'SANDBOXKEY',
  /** A second valid key. It owns none of the products, and may create its own. */
  otherApiKey: 'OTHERKEY',
  accessToken: 'sandboxtoken',
  apiKeyHeader: 'X-Service-API-Key',
  accessTokenHeader: 'X-Service-Access-Token',
  /** Path of the book operations. The interface gives it without a version (section 9, rule 1). */
  booksPath: '/vital_books',
  packagesPath: '/v4/packages',
  /** How long deltas and point lookups return a withdrawn product, with `distributable: false`. */
  withdrawnForMs: 10 * 86_400_000,
  /** Duration of the fault `slow-body`. */
  slowBodyMs: 5000,
  /** Number of the main key's users at the start. */
  users: 1000,
  /** Duration of a file's ingestion: interface, section 6. */
  ingestionMs: 2000,
  /** Wait before the second call of a `callback_url`. It doubles before each further call. */
  callbackRetryMs: 1000,
  /** Whether a `callback_url` may be a private address. */
  allowPrivateCallbacks: false,
  /** Whether requests without the documented `Accept` and `Content-Type` are rejected. */
  strict: false,
  /** Path of the journal, which outlives the sandbox; null: none. */
  db: null as string | null,
  clock: systemClock as Clock,
};

export type SandboxOptions = Readonly<typeof SANDBOX_DEFAULTS>;
