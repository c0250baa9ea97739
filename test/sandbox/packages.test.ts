// @module-tag service
import { expect } from 'vitest';
import { createNumbering } from '../../src/sandbox/catalog/product-numbers.ts';
import type { Sandbox } from '../../src/sandbox/sandbox-server.ts';
import { itWith, sandboxFor } from './client.ts';
import { callerHeaders, control, exchange } from './exchange.ts';

const it = itWith({ items: 10 });

const vbid = (index: number) => createNumbering(1).vbid(index);

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

async function send(sandbox: Sandbox, operation: `${Method} /${string}`, body?: unknown) {
  const text = body === undefined ? null : JSON.stringify(body);
  const answer = await exchange(sandbox, operation, text, callerHeaders(null));
  expect(answer.contentType).toBe('application/json');
  return { status: answer.status, json: JSON.parse(answer.text) as Record<string, unknown> };
}

const SHELF = {
  sku: 'SHELF-1',
  name: 'First year',
  description: 'All of it',
  publisher: 'Quill and Anchor',
  list_price: 49.5,
  library_id: 7,
  products: [vbid(0), vbid(1)],
  tags: ['science'],
  download_license: { type: 'numdays', num_days: 180 },
  online_license: { type: 'perpetual' },
};

it('the sandbox generates a different SKU for each package', async ({ sandbox }) => {
  const skus = [];
  for (const name of ['a', 'b']) skus.push((await send(sandbox, 'POST /v4/packages', { name })).json.sku);
  expect(new Set(skus).size).toBe(2);
});

it('the sandbox accepts numbers in quotes, and a license in each form that services document', async ({ sandbox }) => {
  const body = {
    ...SHELF,
    list_price: '49.50',
    library_id: '7',
    download_license: { type: 'numdays', num_days: '180' },
    online_license: { type: 'absdate', expiration_date: '2027-01-01' },
  };
  expect((await send(sandbox, 'POST /v4/packages', body)).json).toMatchObject({
    list_price: 49.5,
    library_id: 7,
    download_license: { type: 'numdays', num_days: 180 },
    online_license: { type: 'absdate', expiration_date: '2027-01-01' },
  });
  const absolute = { type: 'absdate', expiration_date: '2027-01-01T00:00:00Z' };
  for (const license of [{ details: 'a term', duration: '180' }, { type: 'numdays' }, absolute]) {
    const other = { ...SHELF, sku: undefined, online_license: license };
    expect(await send(sandbox, 'POST /v4/packages', other)).toMatchObject({ json: { online_license: license } });
  }
});

it('the sandbox answers only at the path of the options', async () => {
  const sandbox = await sandboxFor({ items: 10, booksPath: '/v4/vital_books', packagesPath: '/packages' });
  expect(await send(sandbox, 'POST /packages', SHELF)).toMatchObject({ status: 200 });
  expect((await send(sandbox, `GET /v4/vital_books/${vbid(0)}`)).status).toBe(200);
  for (const path of ['/v4/packages/SHELF-1', `/vital_books/${vbid(0)}`, `/v3/vital_books/${vbid(0)}`] as const) {
    expect([path, (await send(sandbox, `GET ${path}`)).status]).toEqual([path, 404]);
  }
});

it('the sandbox accepts an asset that was just written, on sale or not', async ({ sandbox }) => {
  const asset = { imprint_id: 1, title: 'A Book of My Own', on_sale_date: '2099-01-01' };
  expect((await send(sandbox, 'PUT /v4/assets/MY-OWN-1', asset)).status).toBe(200);
  const { status, json } = await send(sandbox, 'POST /v4/packages', { name: 'Mine', products: ['MY-OWN-1'] });
  expect([status, json.products]).toEqual([200, ['MY-OWN-1']]);
  await control(sandbox, 'grant', { reference: 'sandbox-reader', sku: 'MY-OWN-1', type: 'online' });
  const { text } = await exchange(sandbox, 'GET /v3/licenses.xml?sku=MY-OWN-1');
  expect(text).toMatch(/name="A Book of My Own" sku="MY-OWN-1" isbn=""/);
});

it('the sandbox accepts a package of tens of thousands of products', { tags: ['slow'] }, async ({ sandbox }) => {
  const products = new Array(40_000).fill(vbid(0));
  const { status, json } = await send(sandbox, 'POST /v4/packages', { name: 'a', products });
  expect([status, json.products]).toEqual([200, [vbid(0)]]);
});

it.for([
  ['{"name":', 'is not JSON'],
  [Buffer.from('{"name":"Caf\xe9","products":[]}', 'latin1'), 'is not UTF-8'],
] as const)('the sandbox rejects the package %s', async ([body, why], { sandbox }) => {
  const { status, text } = await exchange(sandbox, 'POST /v4/packages', body);
  expect([status, text]).toEqual([422, `{"errors":["body: ${why}"]}`]);
});

it('the sandbox describes each problem of a package', async ({ sandbox }) => {
  const license = { type: 'numdays', num_days: 0, details: 5 };
  const wrong = { sku: '..', name: '', list_price: -1, library_id: 1.5, tags: [1], online_license: license };
  const { json } = await send(sandbox, 'POST /v4/packages', { ...wrong, products: 'all' });
  expect(json.errors).toEqual([
    'sku: must not be empty, . or ..',
    'name: must not be empty',
    'list_price: must be a number of at least 0',
    'library_id: must be a whole number',
    expect.stringMatching(/^products: /),
    'tags/0: must be a text',
    'online_license/num_days: must be a whole number of at least 1',
    'online_license/details: must be a text',
  ]);
});

it.for(['[', '{"a":'])('the sandbox does not keep a package with deep JSON of %s', async (open, { sandbox }) => {
  const deep = open.repeat(100_000) + (open === '[' ? ']'.repeat(100_000) : `1${'}'.repeat(100_000)}`);
  const body = `{"sku":"DEEP","name":"Deep","products":[],"more":${deep}}`;
  const answer = await exchange(sandbox, 'POST /v4/packages', body, callerHeaders(null));
  expect(answer).toMatchObject({ status: 500, text: expect.stringContaining('call stack') });
  expect((await send(sandbox, 'GET /v4/packages/DEEP')).status).toBe(404);
  const more = JSON.parse('['.repeat(60) + ']'.repeat(60)) as unknown;
  expect(await send(sandbox, 'POST /v4/packages', { ...SHELF, more })).toMatchObject({ status: 200, json: { more } });
});
