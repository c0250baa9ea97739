import { expect } from 'vitest';
import { createNumbering } from '../../src/sandbox/catalog/product-numbers.ts';
import type { Sandbox } from '../../src/sandbox/sandbox-server.ts';
import { get, itWith, sandboxFor } from './client.ts';
import { callerHeaders, control, exchange } from './exchange.ts';

const it = itWith({ items: 10 });

const vbid = (index: number) => createNumbering(1).vbid(index);

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

async function send(sandbox: Sandbox, operation: `${Method} /${string}`, body?: unknown, key = 'SANDBOXKEY') {
  const text = body === undefined ? null : JSON.stringify(body);
  const answer = await exchange(sandbox, operation, text, callerHeaders(null, key));
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

const OTHER = { ...SHELF, sku: 'SHELF-2' };

// @rule 4.5-4, 4.5-6
it('the sandbox creates and reads a package with all fields', async ({ sandbox }) => {
  const created = await send(sandbox, 'POST /v4/packages', SHELF);
  expect(created).toMatchObject({ status: 200, json: SHELF });
  expect(created.json.created_on).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(created.json.updated_on).toBe(created.json.created_on);
  expect(await send(sandbox, 'GET /v4/packages/SHELF-1')).toEqual(created);
});

it('the sandbox generates a SKU, and returns null for omitted fields', async ({ sandbox }) => {
  const skus = new Set<unknown>();
  for (const name of ['a', 'b', 'c']) {
    const { json } = await send(sandbox, 'POST /v4/packages', { name });
    expect(json).toMatchObject({ name, description: null, list_price: null, online_license: null, tags: [] });
    skus.add(json.sku);
    expect((await send(sandbox, `GET /v4/packages/${String(json.sku)}`)).json).toEqual(json);
  }
  expect(skus.size).toBe(3);
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

// @rule 4.5-5
it('the sandbox appends products once each in an update, and replaces other fields', async ({ sandbox }) => {
  await send(sandbox, 'POST /v4/packages', SHELF);
  const change = { name: 'Second year', products: [vbid(2), vbid(0), vbid(2)], tags: [], online_license: null };
  const updated = await send(sandbox, 'PUT /v4/packages/SHELF-1', change);
  const products = [vbid(0), vbid(1), vbid(2)];
  expect(updated).toMatchObject({ status: 200, json: { ...SHELF, ...change, products } });
  expect((await send(sandbox, 'GET /v4/packages/SHELF-1')).json).toEqual(updated.json);
  expect(await send(sandbox, 'PUT /v4/packages/SHELF-1', { sku: 'OTHER' })).toMatchObject({
    status: 422,
    json: { errors: ['sku: cannot be changed'] },
  });
});

// @rule 4.5-7, 4.5-11
it('4.5: the sandbox deletes a package, but not the assets in it', async ({ sandbox }) => {
  await send(sandbox, 'POST /v4/packages', SHELF);
  expect((await send(sandbox, 'DELETE /v4/packages/SHELF-1/assets')).status).toBe(200);
  expect((await send(sandbox, 'GET /v4/packages/SHELF-1')).status).toBe(404);
  expect((await send(sandbox, 'DELETE /v4/packages/SHELF-1/assets')).status).toBe(404);
  for (const index of [0, 1]) expect((await get(sandbox, `/v4/products/${vbid(index)}`)).status).toBe(200);
  // Its SKU is free again.
  expect((await send(sandbox, 'POST /v4/packages', SHELF)).status).toBe(200);
});

it('the sandbox takes the books that a DELETE lists out of the package, and keeps the package', async ({ sandbox }) => {
  await send(sandbox, 'POST /v4/packages', SHELF);
  const remove = (products: unknown) => send(sandbox, 'DELETE /v4/packages/SHELF-1/assets', { products });
  expect(await remove([vbid(1), vbid(5)])).toEqual({ status: 200, json: { removed_count: 1 } });
  expect(await remove([vbid(1)])).toEqual({ status: 200, json: { removed_count: 0 } });
  expect(await remove('all')).toMatchObject({ status: 422 });
  expect((await send(sandbox, 'GET /v4/packages/SHELF-1')).json).toMatchObject({ products: [vbid(0)] });
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

it('the sandbox accepts a package of tens of thousands of products', async ({ sandbox }) => {
  const products = new Array(40_000).fill(vbid(0));
  const { status, json } = await send(sandbox, 'POST /v4/packages', { name: 'a', products });
  expect([status, json.products]).toEqual([200, [vbid(0)]]);
});

it('the sandbox rejects packages of another key, and unknown ones', async ({ sandbox }) => {
  await send(sandbox, 'POST /v4/packages', SHELF);
  const operations = [
    'GET /v4/packages/SHELF-1',
    'PUT /v4/packages/SHELF-1',
    'DELETE /v4/packages/SHELF-1/assets',
  ] as const;
  for (const operation of operations) {
    const body = operation.startsWith('PUT') ? { name: 'mine' } : undefined;
    expect((await send(sandbox, operation, body, 'OTHERKEY')).status).toBe(403);
    const unknown = operation.replace('SHELF-1', 'SHELF-2') as typeof operation;
    expect(await send(sandbox, unknown, body)).toMatchObject({
      status: 404,
      json: { errors: ['Package SHELF-2 not found'] },
    });
  }
  expect((await send(sandbox, 'GET /v4/packages/SHELF-1')).json).toMatchObject(SHELF);
});

// @rule 1-3, 4.5-10
it.for([
  [{}, ['name']],
  [[], ['body']],
  [SHELF, ['sku']],
  [{ ...SHELF, sku: vbid(3) }, ['sku']],
  [{ ...OTHER, products: [vbid(0), vbid(10), '9780000000019'] }, ['products/1', 'products/2']],
  [{ ...OTHER, list_price: 'a lot', tags: 'science' }, ['list_price', 'tags']],
  [{ ...OTHER, download_license: { expiration_date: 'soon' } }, ['download_license/expiration_date']],
  [{ ...OTHER, download_license: { type: 'forever' } }, ['download_license/type']],
] as const)('the sandbox names each invalid field of %j with 422', async ([body, fields], { sandbox }) => {
  await send(sandbox, 'POST /v4/packages', SHELF);
  const { status, json } = await send(sandbox, 'POST /v4/packages', body);
  const named = (json.errors as string[]).map((error) => error.split(':')[0]);
  expect([status, named]).toEqual([422, fields]);
  expect((await send(sandbox, 'GET /v4/packages/SHELF-2')).status).toBe(404);
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
