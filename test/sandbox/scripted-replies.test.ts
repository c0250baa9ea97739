// @module-tag service
import { request } from 'undici';
import { expect } from 'vitest';
import { CREDENTIALS, itWith, sandboxFor } from './client.ts';
import { callerHeaders, control, errorOf, exchange } from './exchange.ts';

const it = itWith({ items: 1 });

const ASSET = JSON.stringify({ imprint_id: 1, title: 'Tides' });

// @rule 7-4
it('7: an operation replies with the scripted failure as often as asked, and changes nothing', async ({ sandbox }) => {
  await control(sandbox, 'answer', { operation: 'PUT /v4/assets/:vbid', status: 500, times: 2 });
  const put = () => exchange(sandbox, 'PUT /v4/assets/TIDES', ASSET);
  const failed = { status: 500, text: '{"errors":["Internal Server Error"]}' };
  expect([await put(), await put()]).toMatchObject([failed, failed]);
  expect((await exchange(sandbox, 'GET /vital_books/TIDES')).status).toBe(404);
  expect((await put()).status).toBe(200);
});

it('7: the sandbox replies with any custom code and status, in the format of the operation', async ({ sandbox }) => {
  const arrange = (operation: string, rest: object) => control(sandbox, 'answer', { operation, code: 601, ...rest });
  await arrange('GET /v3/licenses.xml', { status: 401, message: 'a < b' });
  expect(errorOf(await exchange(sandbox, 'GET /v3/licenses.xml'))).toEqual([401, '601']);
  await arrange('GET /v3/licenses.xml', { status: 200 });
  expect(errorOf(await exchange(sandbox, 'GET /v3/licenses.xml'))).toEqual([200, '601']);
  expect(errorOf(await exchange(sandbox, 'GET /v3/licenses.xml'))).toBeNull();
  await arrange('GET /v3/licenses.xml', { status: 200 });
  const { text } = await exchange(sandbox, 'GET /v3/licenses.xml');
  expect(text).toContain('<error-text>The access token is not valid any longer for the user<');
  await arrange('GET /v4/products', { status: 200, message: 'Token' });
  expect(await exchange(sandbox, 'GET /v4/products')).toMatchObject({
    status: 200,
    text: '{"errors":["Token (601)"]}',
  });
});

it.for([
  ['POST /v3/users', 'POST /v3/users.xml'],
  ['POST /v3/users.xml', 'POST /v3/users'],
  ['GET /v3/users/:id', 'GET /v3/users.xml/user-0000001'],
] as const)('the operation %s is the same as its other form, %s', async ([operation, called], { sandbox }) => {
  await control(sandbox, 'answer', { operation, status: 503 });
  expect((await exchange(sandbox, called)).status).toBe(503);
  expect((await exchange(sandbox, called)).status).not.toBe(503);
});

it('the sandbox removes a scripted reply with 0 times', async ({ sandbox }) => {
  const arrange = (times: number) => control(sandbox, 'answer', { operation: 'GET /v4/products', status: 500, times });
  await arrange(1000);
  expect((await exchange(sandbox, 'GET /v4/products')).status).toBe(500);
  await arrange(0);
  expect((await exchange(sandbox, 'GET /v4/products')).status).toBe(200);
});

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
