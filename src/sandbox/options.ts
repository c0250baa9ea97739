import { type Clock, systemClock } from '../clock.ts';
import type { ListOrder } from './catalog/catalog.ts';
import type { RateLimit } from './http/rate-limit.ts';

export interface SandboxOptions {
  /** Products at the start, 0 to 20 million. */
  readonly items: number;
  /** The same seed gives the same catalog, the same faults and the same choice of changes. */
  readonly seed: number;
  /** 0: any free port. */
  readonly port: number;
  /** Wait before every reply of the interface. */
  readonly latencyMs: number;
  /** Null: unlimited. */
  readonly rateLimit: RateLimit | null;
  /** Changes a second; 0: none. */
  readonly churnPerSecond: number;
  /** Whether products have about 2 KB instead of 110 bytes. */
  readonly details: boolean;
  /** Order of the list. `id`: order of creation. Deltas are always in order of update, oldest first. */
  readonly order: ListOrder;
  /** Larger pages are cut to this size; the envelope says so. */
  readonly maxPerPage: number;
  /** See `parseFaults`; empty: none. */
  readonly faults: string;
  readonly apiKey: string;
  /** A second valid key. It owns none of the products, and may create its own. */
  readonly otherApiKey: string;
  readonly accessToken: string;
  readonly apiKeyHeader: string;
  readonly accessTokenHeader: string;
  /** How long deltas and point lookups return a withdrawn product, with `distributable: false`. */
  readonly withdrawnForMs: number;
  /** Duration of the fault `slow-body`. */
  readonly slowBodyMs: number;
  /** Number of the main key's users at the start. */
  readonly users: number;
  /** Duration of a file's ingestion: interface, section 6. */
  readonly ingestionMs: number;
  /** Wait before the second call of a `callback_url`. It doubles before each further call. */
  readonly callbackRetryMs: number;
  /** Whether a `callback_url` may be a private address. */
  readonly allowPrivateCallbacks: boolean;
  /** Whether requests without the documented `Accept` and `Content-Type` are rejected. */
  readonly strict: boolean;
  /** Path of the journal, which outlives the sandbox; null: none. */
  readonly db: string | null;
  readonly clock: Clock;
}

export const SANDBOX_DEFAULTS: SandboxOptions = {
  items: 10_000,
  seed: 1,
  port: 0,
  latencyMs: 0,
  rateLimit: null,
  churnPerSecond: 0,
  details: false,
  order: 'id',
  maxPerPage: 1000,
  faults: '',
  apiKey: 'SANDBOXKEY',
  otherApiKey: 'OTHERKEY',
  accessToken: 'sandboxtoken',
  apiKeyHeader: 'X-Service-API-Key',
  accessTokenHeader: 'X-Service-Access-Token',
  withdrawnForMs: 10 * 86_400_000,
  slowBodyMs: 5000,
  users: 1000,
  ingestionMs: 2000,
  callbackRetryMs: 1000,
  allowPrivateCallbacks: false,
  strict: false,
  db: null,
  clock: systemClock,
};
