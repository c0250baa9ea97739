// @module-tag service
import { gunzipSync } from 'node:zlib';
import { systemClock } from '@catchword/base/clock';
import { parseFaults } from '@catchword/sandbox/http/faults';
import { createRateLimiter } from '@catchword/sandbox/http/rate-limit';
import { CREDENTIALS, get, getPage, sandboxFor } from '@catchword/testing/sandbox-for';
import { request } from 'undici';
import { expect, it } from 'vitest';

const kindsOf = (spec: string, seed = 1) => Array.from({ length: 2000 }, (_, at) => parseFaults(spec, seed)(at + 1));

it('a fault specification strikes with its probability, and repeatably', () => {
  const often = kindsOf('5xx:0.5,html:1');
  expect(often).toEqual(kindsOf('5xx:0.5,html:1'));
  expect(often).not.toEqual(kindsOf('5xx:0.5,html:1', 2));
  expect(often.filter((kind) => kind === '5xx').length).toBeGreaterThan(900);
  expect(often).not.toContain(null);
  const seldom = kindsOf('reset').filter((kind) => kind === 'reset').length;
  expect(seldom).toBeGreaterThan(60);
  expect(seldom).toBeLessThan(140);
  expect(kindsOf('')).toEqual(kindsOf('429:0'));
});

it('a fault specification strikes the named request', () => {
  expect(kindsOf('429@3, truncated-gzip@4').slice(0, 5)).toEqual([null, null, '429', 'truncated-gzip', null]);
});

it('a fault specification is rejected if it is invalid', () => {
  for (const spec of ['4xx', 'reset:2', 'reset@0', 'reset@1.5', 'reset:', ',', 'html,,reset', 'reset:1.2.3']) {
    expect(() => parseFaults(spec, 1), spec).toThrow(expect.objectContaining({ code: 'USAGE' }));
  }
  expect(() => parseFaults('html,4xx:1', 1)).toThrow(/"4xx:1"/);
});

const faulty = (faults: string, more = {}) => sandboxFor({ items: 3000, faults, ...more });
const GZIP = { ...CREDENTIALS, 'accept-encoding': 'gzip' };

it('the faults 5xx, 429 and html replace the page once', async () => {
  const sandbox = await faulty('5xx@1,429@2,html@3');
  const failed = await get(sandbox, '/v4/products');
  expect(failed.status).toBeGreaterThanOrEqual(500);
  expect(JSON.parse(failed.bytes.toString())).toEqual({ errors: [expect.any(String)] });
  const limited = await get(sandbox, '/v4/products');
  expect([limited.status, limited.headers['retry-after']]).toEqual([429, '1']);
  const html = await get(sandbox, '/v4/products');
  expect([html.status, html.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  expect((await getPage(sandbox)).items).toHaveLength(1000);
  expect(sandbox.requests.map(({ status }) => status)).toEqual([failed.status, 429, 200, 200]);
});

it('the fault reset breaks the connection in mid-body', async () => {
  const sandbox = await faulty('reset@1');
  const response = await request(`${sandbox.url}/v4/products`, { headers: CREDENTIALS });
  expect(response.statusCode).toBe(200);
  await expect(response.body.text()).rejects.toThrow();
  expect((await getPage(sandbox)).items).toHaveLength(1000);
});

it('the faults truncated-gzip and truncated-json look whole to HTTP', async () => {
  const sandbox = await faulty('truncated-gzip@1,truncated-json@2,truncated-gzip@3');
  const gzip = await get(sandbox, '/v4/products', GZIP);
  expect(() => gunzipSync(gzip.bytes)).toThrow(/unexpected end/);
  const json = await get(sandbox, '/v4/products', GZIP);
  const text = gunzipSync(json.bytes).toString();
  expect(text).toMatch(/^\{"num_items":3000/);
  expect(() => JSON.parse(text)).toThrow(SyntaxError);
  const plain = await get(sandbox, '/v4/products');
  expect(plain.headers['content-length']).toBe(String(plain.bytes.length));
  expect(() => JSON.parse(plain.bytes.toString())).toThrow(SyntaxError);
});

it('the fault wrong-page returns another page and says so, short-page has fewer items than it says', async () => {
  const sandbox = await faulty('wrong-page@1,wrong-page@2,short-page@3');
  expect((await getPage(sandbox, '?page=1')).page).toBe(2);
  expect((await getPage(sandbox, '?page=3')).page).toBe(2);
  const short = await getPage(sandbox, '?page=2');
  expect(short).toMatchObject({ num_items: 3000, page: 2, per_page: 1000 });
  expect(short.items).toHaveLength(900);
});

it('the fault slow-body sends the same bytes, in pieces', async () => {
  const sandbox = await faulty('slow-body@1', { slowBodyMs: 40 });
  const slow = await get(sandbox, '/v4/products');
  expect(slow.bytes).toEqual((await get(sandbox, '/v4/products')).bytes);
});

it('a fault does not prevent the sandbox from stopping', async () => {
  const sandbox = await faulty('slow-body@1', { slowBodyMs: 3_600_000 });
  const response = await request(`${sandbox.url}/v4/products`, { headers: CREDENTIALS });
  await sandbox.stop();
  await expect(response.body.text()).rejects.toThrow();
});

it('the rate limit admits as many requests as it allows in any window', () => {
  const admit = createRateLimiter({ maxRequests: 2, windowMs: 60_000 });
  expect([0, 10_000].map(admit)).toEqual([null, null]);
  expect(admit(20_500)).toBe(40);
  expect([60_000, 70_000].map(admit)).toEqual([null, null]);
});

it('the rate limit extends the wait after a request that comes too early', () => {
  const admit = createRateLimiter({ maxRequests: 1, windowMs: 60_000 });
  expect(admit(0)).toBeNull();
  expect(admit(50_000)).toBe(10);
  expect(admit(59_999)).toBe(60);
  expect(admit(61_000)).toBe(60);
  expect(admit(121_000)).toBeNull();
});

it('the rate limit replies with 429 and Retry-After, and logs the request', async () => {
  const clock = { ...systemClock, now: () => Date.UTC(2030, 0, 1) };
  const sandbox = await sandboxFor({ items: 1, rateLimit: { maxRequests: 2, windowMs: 60_000 }, clock });
  const statuses: number[] = [];
  for (let n = 0; n < 2; n++) statuses.push((await get(sandbox, '/v4/products')).status);
  const refused = await get(sandbox, '/v4/products?page=1');
  expect(statuses).toEqual([200, 200]);
  expect(refused.status).toBe(429);
  expect(refused.headers['retry-after']).toBe('60');
  expect(sandbox.requests[2]).toMatchObject({ path: '/v4/products?page=1', status: 429 });
});
