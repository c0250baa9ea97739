import type { Catalog } from '@catchword/sandbox/catalog/changing-catalog';
import { EVERYTHING } from '@catchword/sandbox/catalog/product-states';
import { SANDBOX_DEFAULTS, type SandboxOptions } from '@catchword/sandbox/options';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';

export const CREDENTIALS = {
  [SANDBOX_DEFAULTS.apiKeyHeader]: SANDBOX_DEFAULTS.apiKey,
  [SANDBOX_DEFAULTS.accessTokenHeader]: SANDBOX_DEFAULTS.accessToken,
};

export interface Item {
  readonly vbid: string;
  readonly identifiers: Readonly<Record<string, unknown>>;
  readonly distributable?: boolean;
  readonly [member: string]: unknown;
}

export interface PageBody {
  readonly num_items: number;
  readonly page: number;
  readonly per_page: number;
  readonly total_pages: number;
  readonly items: Item[];
}

/** Starts a sandbox that stops with the test. */
export async function sandboxFor(options: Partial<SandboxOptions>): Promise<Sandbox> {
  const sandbox = await startSandbox(options);
  onTestFinished(() => sandbox.stop());
  return sandbox;
}

/** How many products are withdrawn, and not yet gone. */
export function withdrawnIn(catalog: Pick<Catalog, 'list'>): number {
  return catalog.list(EVERYTHING, 0, Number.POSITIVE_INFINITY).products.filter(({ withdrawn }) => withdrawn).length;
}

/** Returns `it` whose tests can take a `sandbox` of their own with these options. */
export function itWith(options: Partial<SandboxOptions>) {
  return it.extend<{ readonly sandbox: Sandbox }>({
    sandbox: async ({ task: _task }, use) => {
      const sandbox = await startSandbox(options);
      await use(sandbox);
      await sandbox.stop();
    },
  });
}

export async function get(sandbox: Sandbox, path: string, headers: Record<string, string> = CREDENTIALS) {
  const response = await request(sandbox.url + path, { headers });
  return {
    status: response.statusCode,
    headers: response.headers,
    bytes: Buffer.from(await response.body.arrayBuffer()),
  };
}

export async function getJson<T>(sandbox: Sandbox, path: string): Promise<T> {
  return JSON.parse((await get(sandbox, path)).bytes.toString()) as T;
}

export function getPage(sandbox: Sandbox, query = ''): Promise<PageBody> {
  return getJson<PageBody>(sandbox, `/v4/products${query}`);
}

/** The first product of the list. */
export async function firstItem(sandbox: Sandbox): Promise<Item> {
  const [item] = (await getPage(sandbox, '?per_page=1')).items;
  if (item === undefined) throw new Error('the list is empty');
  return item;
}

/** The products that the sandbox holds now. */
export async function truth(sandbox: Sandbox, query = ''): Promise<Item[]> {
  const { bytes } = await get(sandbox, `/_sandbox/truth${query}`, {});
  const lines = bytes.toString().split('\n');
  expect(lines.pop()).toBe('');
  return lines.map((line) => JSON.parse(line) as Item);
}
