import { type Clock, systemClock } from '../clock.ts';
import type { ListOrder } from './catalog/catalog.ts';
import type { RateLimit } from './http/rate-limit.ts';

/** The key that the service knows but that has no catalog. */
export const KEY_WITHOUT_CATALOG = 'NOCATALOG';

export interface SandboxOptions {
  /** Products at the start, 0 to 20 million. */
  readonly items: number;
  /** The same seed gives the same catalog, the same faults and the same choice of what changes. */
  readonly seed: number;
  /** 0: any free port. */
  readonly port: number;
  /** Every answer of the interface waits this long. */
  readonly latencyMs: number;
  /** Null: none. */
  readonly rateLimit: RateLimit | null;
  /** Changes a second; 0: none. */
  readonly churnPerSecond: number;
  /** Products of about 2 KB in place of 110 bytes. */
  readonly details: boolean;
  /** Of the listing. `id`: order of creation. Deltas are always ordered by update, oldest first. */
  readonly order: ListOrder;
  /** The largest page it answers, whatever it is asked for; as the envelope says. */
  readonly maxPerPage: number;
  /** See `parseFaults`; empty: none. */
  readonly faults: string;
  readonly apiKey: string;
  /** A second key that the service knows: it owns none of the products, and may create its own. */
  readonly otherApiKey: string;
  readonly accessToken: string;
  readonly apiKeyHeader: string;
  readonly accessTokenHeader: string;
  /** How long a withdrawn product is told of, with `distributable: false`, in deltas and by point lookup. */
  readonly withdrawnForMs: number;
  /** Whether the listing tells of withdrawn products too. */
  readonly withdrawnInListing: boolean;
  /** How long the fault `slow-body` takes. */
  readonly slowBodyMs: number;
  /** Users of the main key at the start. */
  readonly users: number;
  /** How long the ingestion of a file takes: interface, section 6. */
  readonly ingestionMs: number;
  /** Wait before the second call of a `callback_url`; twice as long before each further one. */
  readonly callbackRetryMs: number;
  /** Whether a `callback_url` may be an address in the own network. */
  readonly allowPrivateCallbacks: boolean;
  /** Whether requests without the `Accept` and `Content-Type` that the interface names are refused. */
  readonly strict: boolean;
  /** The journal that keeps what was written; null: nothing outlives the sandbox. */
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
  withdrawnInListing: false,
  slowBodyMs: 5000,
  users: 1000,
  ingestionMs: 2000,
  callbackRetryMs: 1000,
  allowPrivateCallbacks: false,
  strict: false,
  db: null,
  clock: systemClock,
};
