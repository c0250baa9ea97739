// @module-tag service

import { CREDENTIALS, itWith, sandboxFor } from '@catchword/testing/sandbox-for';
import { request } from 'undici';
import { expect } from 'vitest';
import { callerHeaders, control, exchange } from './exchange.ts';

const it = itWith({ items: 1 });

const ASSET = JSON.stringify({ imprint_id: 1, title: 'Tides' });

it('the sandbox sends Retry-After with a scripted reply', async ({ sandbox }) => {
  await control(sandbox, 'answer', { operation: 'GET /v4/products', status: 503, retry_after: 30 });
  const response = await request(`${sandbox.url}/v4/products`, { headers: CREDENTIALS });
  await response.body.dump();
  expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '30']);
});

it.each([
  [{ operation: 'PUT /v4/asset', status: 500 }, 'operation: must be one of GET /v4/products, '],
  [{ operation: 'GET /v4/products', status: 302 }, 'status: must be 200, or 400 to 599'],
  [{ operation: 'GET /v4/products', status: 500, times: -1 }, 'times: must be at least 0'],
])('the sandbox rejects the script %j', async (body, why) => {
  const answer = await exchange(await sandboxFor({ items: 1 }), 'POST /_sandbox/answer', JSON.stringify(body));
  expect(answer.status).toBe(422);
  expect(answer.text).toContain(why);
});

// @rule 4.1-5, 4.4-4
it('4.1, 4.4: a strict sandbox requires the documented headers', async () => {
  const sandbox = await sandboxFor({ items: 1, strict: true });
  const put = (accept: string) => exchange(sandbox, 'PUT /v4/assets/TIDES', ASSET, { ...callerHeaders(null), accept });
  for (const accept of ['text/html', '', 'text/*']) {
    expect([accept, await put(accept)]).toMatchObject([
      accept,
      { status: 406, text: '{"errors":["Accept: must include application/json"]}' },
    ]);
  }
  for (const accept of ['*/*', 'Application/*', 'text/html, application/json;q=0.9', 'text/*, */*;q=0.1']) {
    expect([accept, (await put(accept)).status]).toEqual([accept, 200]);
  }
  expect((await exchange(sandbox, 'PUT /v4/assets/TIDES', ASSET, callerHeaders(null))).status).toBe(406);
  const read = (headers: Record<string, string>) => exchange(sandbox, 'GET /v4/products', null, headers);
  expect((await read(CREDENTIALS)).status).toBe(415);
  expect((await read({ ...CREDENTIALS, 'content-type': 'application/json; charset=utf-8' })).status).toBe(200);
});

it('the sandbox does not require the documented headers unless it is strict', async ({ sandbox }) => {
  const response = await request(`${sandbox.url}/v4/products`, { headers: CREDENTIALS });
  await response.body.dump();
  expect(response.statusCode).toBe(200);
});
