// @module-tag service
import { join } from 'node:path';
import { systemClock } from '@catchword/base/clock';
import { SANDBOX_DEFAULTS } from '@catchword/sandbox/options';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import {
  CREDENTIALS,
  firstItem,
  get,
  getJson,
  getPage,
  type Item,
  itWith,
  sandboxFor,
  truth,
  withdrawnIn,
} from '@catchword/testing/sandbox-for';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { request } from 'undici';
import { expect } from 'vitest';
import { NEW, put } from './asset-requests.ts';
import { callerHeaders, control } from './exchange.ts';

const it = itWith({ items: 1 });

async function mutate(sandbox: Sandbox, body: string) {
  const response = await request(`${sandbox.url}/_sandbox/mutate`, { method: 'POST', body });
  return { status: response.statusCode, body: await response.body.json() };
}

async function everyPage(sandbox: Sandbox): Promise<Item[]> {
  const items: Item[] = [];
  for (let page = 1; ; page++) {
    const body = await getPage(sandbox, `?page=${page}`);
    items.push(...body.items);
    if (page >= body.total_pages) return items;
  }
}

it('POST /_sandbox/mutate changes the catalog and replies with the counts', async () => {
  const sandbox = await sandboxFor({ items: 100 });
  expect(await mutate(sandbox, '{"create":3,"update":2,"remove":1,"seed":9}')).toEqual({
    status: 200,
    body: { created: 3, updated: 2, removed: 1, living: 102 },
  });
  expect((await getPage(sandbox)).num_items).toBe(102);
});

it('POST /_sandbox/mutate accepts a body with a byte order mark', async ({ sandbox }) => {
  expect(await mutate(sandbox, '\ufeff{"create":1}')).toMatchObject({ status: 200, body: { created: 1 } });
});

it('POST /_sandbox/mutate rejects too many products and too long a body', async ({ sandbox }) => {
  expect((await mutate(sandbox, '{"create":99999999}')).status).toBe(422);
  expect((await mutate(sandbox, ' '.repeat(100_000))).status).toBe(413);
});

const EXPIRATION = 'expiration: must be never, an RFC 1123 date or an ISO 8601 date';

it.each([
  ['mutate', '[]', 'body: must be an object'],
  ['mutate', '{', 'body: is not JSON'],
  ...['', ' \n', '\ufeff'].map((empty) => ['mutate', empty, 'body: is empty']),
  ['mutate', '{"delete":1}', 'delete: is unknown; use create, update, remove, seed'],
  ['mutate', '{"create":-1}', 'create: must be at least 0'],
  ['answer', '{"operation":"x","status":500,"times":1000001}', 'times: must be at most 1000000'],
  ['fail', '{"guid":"","code":100}', 'guid: must not be empty'],
  ['grant', '{"reference":"user-0000001"}', 'sku: is required'],
  ['grant', '{"reference":7,"sku":"x"}', 'reference: must be a text'],
  ['grant', '{"sku":"x","type":"paper"}', 'type: must be one of online, downloadable, download'],
  ['grant', '{"sku":"x","expiration":"soon"}', EXPIRATION],
  ['grant', '{"sku":"x","expiration":"2026-13-01"}', EXPIRATION],
  ['grant', '{"sku":"a\\u0000"}', 'sku: holds a character that XML cannot hold'],
  ['key', '{"api_key":""}', 'api_key: must be 1 to 255 printable characters without spaces'],
  ['key', '{"api_key":"OTHERKEY"}', 'api_key: is already in use'],
  ['user', '{"access_token":"sandboxtoken"}', 'access_token: is already in use'],
])('POST /_sandbox/%s describes the problem of %s', async (path, body, why) => {
  const { url } = await sandboxFor({ items: 1 });
  const response = await request(`${url}/_sandbox/${path}`, { method: 'POST', body });
  expect([response.statusCode, await response.body.json()]).toEqual([422, { errors: [why] }]);
});

it.each(['id', 'updated-asc', 'updated-desc'] as const)(
  'GET /_sandbox/truth has the products of the pages, in order %s',
  async (order) => {
    const sandbox = await sandboxFor({ items: 3500, order });
    sandbox.catalog.mutate({ create: 20, update: 500, remove: 700 });
    await put(sandbox, 'L-1', NEW);
    const lines = await truth(sandbox);
    expect(lines).toHaveLength(2821);
    expect(lines).toEqual(await everyPage(sandbox));
  },
);

it('GET /_sandbox/truth accepts include_details', async () => {
  const sandbox = await sandboxFor({ items: 2 });
  for (const item of await truth(sandbox, '?include_details=metadata')) expect(item).toHaveProperty('metadata');
  expect((await get(sandbox, '/_sandbox/truth?include_details=x', {})).status).toBe(422);
});

it('GET /_sandbox/truth shows one moment, even if it is read slowly', { tags: ['slow'] }, async () => {
  const sandbox = await sandboxFor({ items: 50_000, details: true });
  const before = await firstItem(sandbox);
  const response = await request(`${sandbox.url}/_sandbox/truth`);
  sandbox.catalog.mutate({ update: 10_000, remove: 40_000 });
  const lines = (await response.body.text()).trimEnd().split('\n');
  expect(lines).toHaveLength(50_000);
  expect(JSON.parse(lines[0] ?? '')).toEqual(before);
});

it('GET /_sandbox/requests logs only requests of the interface', async ({ sandbox }) => {
  const startedAt = Date.now();
  await getPage(sandbox, '?page=2');
  await get(sandbox, '/v4/products', {});
  await truth(sandbox);
  const log = await getJson<{ at: number; path: string; status: number }[]>(sandbox, '/_sandbox/requests');
  expect(log).toEqual([
    { at: expect.any(Number), path: '/v4/products?page=2', status: 200 },
    { at: expect.any(Number), path: '/v4/products', status: 401 },
  ]);
  expect(log[0]?.at).toBeGreaterThanOrEqual(startedAt);
  expect(sandbox.requests).toEqual(log);
});

it('the sandbox waits before each reply, and survives a client that leaves meanwhile', async () => {
  const waits: number[] = [];
  const clock = {
    ...systemClock,
    sleep: async (ms: number) => {
      waits.push(ms);
    },
  };
  const sandbox = await sandboxFor({ items: 1, latencyMs: 60_000, clock });
  expect((await getPage(sandbox)).num_items).toBe(1);
  expect(waits).toEqual([60_000]);

  const slow = await sandboxFor({ items: 1000, latencyMs: 100 });
  const leaving = new AbortController();
  const left = request(`${slow.url}/v4/products`, { signal: leaving.signal });
  await expect.poll(() => slow.requests.length).toBe(1);
  leaving.abort();
  await expect(left).rejects.toThrow();
  await expect.poll(() => slow.requests[0]?.status).toBe(401);
  expect((await getPage(slow)).num_items).toBe(1000);
});

it('the sandbox reports a port that is in use', async () => {
  const first = await sandboxFor({ items: 1 });
  await expect(sandboxFor({ items: 1, port: first.port })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    hint: expect.stringContaining('--port'),
  });
});

it('the sandbox can be stopped twice, and does not answer afterwards', async () => {
  const sandbox = await sandboxFor({ items: 1, churnPerSecond: 50 });
  await getPage(sandbox);
  await Promise.all([sandbox.stop(), sandbox.stop()]);
  await expect(getPage(sandbox)).rejects.toThrow();
});

it('the sandbox churns without being asked', async () => {
  const sandbox = await sandboxFor({ items: 1000, churnPerSecond: 1000 });
  await expect.poll(() => withdrawnIn(sandbox.catalog)).toBeGreaterThan(0);
});

const PATH = '/v4/products?per_page=1';

async function statusWith(sandbox: Sandbox, key: string, token?: string): Promise<number> {
  return (await get(sandbox, PATH, callerHeaders(token, key))).status;
}

it('POST /_sandbox/key revokes the main key and accepts the new one for the same catalog', async () => {
  const sandbox = await sandboxFor({ items: 3 });
  const before = await get(sandbox, PATH);
  await control(sandbox, 'key', { api_key: 'RENEWED' });
  expect(sandbox.apiKey()).toBe('RENEWED');
  expect(await statusWith(sandbox, 'SANDBOXKEY')).toBe(403);
  expect(await statusWith(sandbox, 'OTHERKEY', 'othersandboxtoken')).toBe(200);
  const after = await get(sandbox, PATH, { ...CREDENTIALS, [SANDBOX_DEFAULTS.apiKeyHeader]: 'RENEWED' });
  expect(after.bytes).toEqual(before.bytes);
});

it('the sandbox keeps a renewed key after a restart', async () => {
  const db = join(temporaryDirectory(), 'sandbox.journal');
  const first = await sandboxFor({ items: 3, db });
  await control(first, 'key', { api_key: 'RENEWED' });
  await first.stop();
  const second = await sandboxFor({ items: 3, db });
  expect([await statusWith(second, 'SANDBOXKEY'), await statusWith(second, 'RENEWED')]).toEqual([403, 200]);
});

it('controls refuse pages of other sites, also by a name that leads to this machine', async () => {
  const { url } = await sandboxFor({ items: 3 });
  const { host } = new URL(url);
  const statusOf = async (headers: Readonly<Record<string, string>>, method: 'GET' | 'POST' = 'POST') => {
    const path = method === 'POST' ? 'mutate' : 'truth';
    const body = method === 'POST' ? '{"remove":1}' : null;
    const { statusCode, body: answer } = await request(`${url}/_sandbox/${path}`, { method, headers, body });
    await answer.dump();
    return statusCode;
  };
  expect(await statusOf({ origin: 'https://shop.example' })).toBe(403);
  expect(await statusOf({ origin: 'null' })).toBe(403);
  expect(await statusOf({ origin: 'http://127.0.0.1:1' })).toBe(403);
  expect(await statusOf({ host: 'rebound.example' })).toBe(403);
  expect(await statusOf({ host: 'rebound.example' }, 'GET')).toBe(403);
  expect(await statusOf({ origin: `http://${host}` })).toBe(200);
  expect(await statusOf({ host: `localhost:${new URL(url).port}` }, 'GET')).toBe(200);
});
