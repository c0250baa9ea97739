import { CatchwordError } from '@catchword/base/errors';
import { explainMissing } from '@catchword/base/missing-package';
import * as z from 'zod';
import { MAX_PRODUCTS } from './catalog/product-numbers.ts';
import { LIST_ORDERS, SANDBOX_DEFAULTS } from './options.ts';

/*
 * The sandbox for tests of users: `import { startSandbox } from 'catchword/sandbox'`. What is exported here is described
 * apart from the sandbox's own types, so that its declarations name no other file.
 */

const VALUES = z
  .looseObject({
    items: z.int().min(0).max(MAX_PRODUCTS),
    seed: z
      .int()
      .min(0)
      .max(2 ** 32 - 1),
    port: z.int().min(0).max(65_535),
    order: z.enum(LIST_ORDERS),
    users: z.int().min(0).max(10_000_000),
    latencyMs: z.int().min(0).max(3_600_000),
    rateLimit: z.object({ maxRequests: z.int().min(1), windowMs: z.int().min(1) }).nullable(),
    churnPerSecond: z.number().min(0),
  })
  .partial();

/** What a sandbox is started with. Each is optional. */
export interface SandboxOptions {
  /** Products at the start, 0 to 20 million. Default: 10,000. */
  readonly items?: number;
  /** 0 to 2³² - 1; the same seed gives the same catalog. Default: 1. */
  readonly seed?: number;
  /** On 127.0.0.1. Default: any free one. */
  readonly port?: number;
  /** False: products have only `vbid` and identifiers. Default: true, as of `catchword sandbox`. */
  readonly details?: boolean;
  /** Order of the list: of creation, or of the last change. Default: `id`. */
  readonly order?: 'id' | 'updated-asc' | 'updated-desc';
  /** Users of the main key, 0 to 10 million. Default: 1,000. */
  readonly users?: number;
  /** Wait before each reply, at most an hour; milliseconds. Default: 0. */
  readonly latencyMs?: number;
  /** Answers more requests with 429. Default: null, no limit. */
  readonly rateLimit?: { readonly maxRequests: number; readonly windowMs: number } | null;
  /** Changes of the catalog a second. Default: 0. */
  readonly churnPerSecond?: number;
  /** Faults, such as `5xx:0.1,reset@3`: see docs/sandbox.md. */
  readonly faults?: string;
  /** Whether requests without the documented `Accept` and `Content-Type` are rejected. Default: false. */
  readonly strict?: boolean;
  /** Path of a file that keeps what is written across restarts. Default: null, none. */
  readonly db?: string | null;
}

/** A user, by one of two names. */
export type SandboxUser = { readonly reference: string } | { readonly guid: string };

/** A license that a user gets. `expiration`: `never`, or a date as RFC 1123 or ISO 8601 write it. */
export type SandboxLicense = SandboxUser & {
  readonly sku: string;
  readonly type?: 'online' | 'downloadable' | 'download';
  readonly expiration?: string;
};

/** What an operation answers instead. */
export interface SandboxAnswer {
  /** Method and path as `/openapi.json` has them, such as `PUT /v4/assets/:vbid`. */
  readonly operation: string;
  /** 200, or 400 to 599. */
  readonly status: number;
  /** Code of the error, 100 to 999. */
  readonly code?: number;
  readonly message?: string;
  /** Seconds of `Retry-After`. */
  readonly retryAfter?: number;
  /** How many requests; 0: none any more. Default: 1. */
  readonly times?: number;
}

/** A product as the catalog has it: `vbid`, and what the interface says of products. */
export interface SandboxProduct {
  readonly vbid: string;
  readonly [member: string]: unknown;
}

/** A running sandbox. Its controls throw CatchwordError USAGE, with the sandbox's words, if it rejects them. */
export interface Sandbox {
  /** Without a slash at its end. */
  readonly url: string;
  readonly port: number;
  /** The main key, and the token of its user `sandbox-reader`. */
  readonly apiKey: string;
  readonly accessToken: string;
  /** Creates, updates and removes so many products. The same `seed` chooses the same ones. */
  mutate(changes: { create?: number; update?: number; remove?: number; seed?: number }): Promise<void>;
  /** The products on sale, as a load reads them. */
  products(): Promise<SandboxProduct[]>;
  /** Creates a user of the main key. @returns its guid and its access token */
  createUser(user?: {
    reference?: string;
    email?: string;
    guid?: string;
    accessToken?: string;
  }): Promise<{ readonly guid: string; readonly accessToken: string }>;
  grant(license: SandboxLicense): Promise<void>;
  /** Replaces the user's access token; the old one is answered with 601. */
  expire(user: SandboxUser): Promise<void>;
  /** Revokes the main key. */
  renewKey(apiKey: string): Promise<void>;
  answer(answer: SandboxAnswer): Promise<void>;
  /** Ends it, and breaks all connections. May be called twice. */
  close(): Promise<void>;
}

/**
 * Starts a server on 127.0.0.1 that behaves like the service.
 * @throws CatchwordError USAGE for options that cannot be; CONFIG_INVALID if the port or the file cannot be
 *   used; PACKAGE_MISSING if an optional package is missing
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(SANDBOX_DEFAULTS, name));
  if (unknown !== undefined) throw new CatchwordError('USAGE', `the sandbox has no option ${unknown}`);
  const { error } = VALUES.safeParse(options);
  const wrong = error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
  if (wrong !== undefined) throw new CatchwordError('USAGE', `an option of the sandbox is not valid: ${wrong}`);
  // An option that is undefined has its default.
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  // Imported only now: it may need a package that is not installed.
  const server = await import('./sandbox-server.ts').catch((error: unknown) => {
    throw explainMissing(error);
  });
  const sandbox = await server.startSandbox({ details: true, ...given });

  async function control(name: string, body?: object): Promise<Response> {
    const post = body && { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${sandbox.url}/_sandbox/${name}`, post);
    if (response.ok) return response;
    throw new CatchwordError('USAGE', `the sandbox rejects ${name}: ${await response.text()}`);
  }

  return {
    url: sandbox.url,
    port: sandbox.port,
    get apiKey() {
      return sandbox.apiKey();
    },
    get accessToken() {
      return sandbox.readerTokens().accessToken;
    },
    mutate: async (changes) => void (await control('mutate', changes)),
    products: async () => {
      const lines = (await (await control('truth')).text()).split('\n');
      return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as SandboxProduct);
    },
    createUser: async ({ accessToken, ...user } = {}) => {
      const made = await control('user', { ...user, access_token: accessToken });
      return (await made.json()) as { guid: string; accessToken: string };
    },
    grant: async (license) => void (await control('grant', license)),
    expire: async (user) => void (await control('expire', user)),
    renewKey: async (apiKey) => void (await control('key', { api_key: apiKey })),
    answer: async ({ retryAfter, ...answer }) => void (await control('answer', { ...answer, retry_after: retryAfter })),
    close: () => sandbox.stop(),
  };
}
