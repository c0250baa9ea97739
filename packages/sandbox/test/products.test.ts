// @module-tag service
import { gunzipSync } from 'node:zlib';
import { CREDENTIALS, get, getJson, getPage, type Item, itWith, sandboxFor } from '@catchword/testing/sandbox-for';
import { expect } from 'vitest';

const it = itWith({ items: 1 });

// @rule 2.5-1..3, 4.4-1, 4.4-7, 4.4-9, 4.4-11..13, 4.4-15, 8-2
it('GET /v4/products returns pages of lean products', async () => {
  const sandbox = await sandboxFor({ items: 2500 });
  const first = await getPage(sandbox);
  expect(first).toMatchObject({ num_items: 2500, page: 1, per_page: 1000, total_pages: 3 });
  expect(first.items).toHaveLength(1000);
  for (const item of first.items) {
    expect(Object.keys(item)).toEqual(['vbid', 'identifiers']);
    expect(Object.keys(item.identifiers)).toEqual(['print_isbn_canonical', 'eisbn_canonical']);
    expect(item.vbid).toMatch(/^978\d{10}$/);
  }
  expect((await getPage(sandbox, '?page=3')).items).toHaveLength(500);
  const beyond = { num_items: 2500, page: 4, per_page: 1000, total_pages: 3, items: [] };
  expect(await getPage(sandbox, '?page=4')).toEqual(beyond);
  const window = await getPage(sandbox, '?page=2&per_page=900&whatever=1');
  expect(window).toMatchObject({ page: 2, per_page: 900, total_pages: 3 });
  expect(window.items.slice(0, 100)).toEqual(first.items.slice(900));
});

it('the list of products is the same for the same seed', async () => {
  const [a, b, c] = await Promise.all([1, 1, 2].map((seed) => sandboxFor({ items: 10, seed, details: true })));
  if (!a || !b || !c) throw new Error('three sandboxes were started');
  expect((await get(a, '/v4/products')).bytes).toEqual((await get(b, '/v4/products')).bytes);
  expect((await getPage(a)).items).not.toEqual((await getPage(c)).items);
});

it('GET /v4/products compresses on request', async () => {
  const sandbox = await sandboxFor({ items: 100 });
  const plain = await get(sandbox, '/v4/products');
  const zipped = await get(sandbox, '/v4/products', { ...CREDENTIALS, 'accept-encoding': 'br, gzip;q=0.5' });
  const refused = await get(sandbox, '/v4/products', { ...CREDENTIALS, 'accept-encoding': 'gzip;q=0, identity' });
  expect(plain.headers['content-type']).toBe('application/json');
  expect(plain.headers['content-encoding']).toBeUndefined();
  expect(plain.headers['content-length']).toBe(String(plain.bytes.length));
  expect(zipped.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(zipped.bytes)).toEqual(plain.bytes);
  expect(refused.bytes).toEqual(plain.bytes);
});

// @rule 4.4-5, 4.4-8, 4.4-14
it('GET /v4/products lists what changed since a time, with withdrawn products marked', async () => {
  const sandbox = await sandboxFor({ items: 1000 });
  const before = new Map((await getPage(sandbox)).items.map((item) => [item.vbid, item]));
  const from = `?from=${new Date(Date.now() - 60_000).toISOString()}`;
  expect((await getPage(sandbox, from)).items).toEqual([]);

  sandbox.catalog.mutate({ create: 2, update: 30, remove: 4 });
  const delta = await getPage(sandbox, from);
  expect(delta).toMatchObject({ num_items: 36, total_pages: 1 });
  const withdrawn = delta.items.filter((item) => item.distributable === false);
  const living = delta.items.filter((item) => item.distributable === undefined);
  expect(withdrawn).toHaveLength(4);
  expect(living.filter((item) => !before.has(item.vbid))).toHaveLength(2);
  for (const item of living) expect(item).not.toEqual(before.get(item.vbid));

  const now = await getPage(sandbox);
  expect(now.num_items).toBe(998);
  const listed = new Set(now.items.map((item) => item.vbid));
  expect(withdrawn.some((item) => listed.has(item.vbid))).toBe(false);
  expect((await getPage(sandbox, '?until=2020-01-01')).num_items).toBe(0);
  expect((await getPage(sandbox, '?from=2020-01-01T00:00:00')).num_items).toBe(1002);
});

// @rule 4.4-6, 4.4-10
it('GET /v4/products returns products of 2 KB, with the requested groups and currencies', async () => {
  const sandbox = await sandboxFor({ items: 1000, details: true });
  const plain = await get(sandbox, '/v4/products');
  expect(plain.bytes.length / 1000).toBeGreaterThan(1800);
  expect(plain.bytes.length / 1000).toBeLessThan(2400);
  const { items } = JSON.parse(plain.bytes.toString()) as { items: Item[] };
  expect(new Set(items.map(({ title }) => title)).size).toBeGreaterThan(500);
  expect(items.some(({ subjects, metadata }) => subjects !== undefined || metadata !== undefined)).toBe(false);
  const kinds = (of: (item: Item) => unknown) => new Set(items.map((item) => typeof of(item)));
  expect(kinds(({ edition }) => edition)).toEqual(new Set(['number', 'string']));
  expect(kinds(({ identifiers }) => identifiers.fpid)).toEqual(new Set(['number', 'string']));
  expect(kinds(({ identifiers }) => identifiers.print_isbn_canonical)).toContain('number');

  const rich = await getPage(sandbox, '?per_page=5&include_details=subjects,metadata&currency=EUR');
  for (const item of rich.items) {
    expect(item).toMatchObject({ subjects: [{ schema: 'bisac' }, {}], metadata: { page_count: expect.any(Number) } });
    const variants = item.variants as { prices: { currency: string }[] }[];
    for (const { prices } of variants) expect(prices.map(({ currency }) => currency)).toEqual(['EUR']);
  }
});

it('GET /v4/products/:vbid returns one product, and a withdrawn one for a while', async () => {
  const sandbox = await sandboxFor({ items: 3 });
  const { items } = await getPage(sandbox);
  const [first] = items;
  expect(await getJson(sandbox, `/v4/products/${first?.vbid}`)).toEqual(first);
  sandbox.catalog.mutate({ remove: 3 });
  expect(await getJson(sandbox, `/v4/products/${first?.vbid}`)).toEqual({ ...first, distributable: false });
  for (const vbid of ['9780000000000', 'L-999-70031', '%ZZ']) {
    const unknown = await get(sandbox, `/v4/products/${vbid}`);
    expect(unknown.status).toBe(404);
    expect(JSON.parse(unknown.bytes.toString())).toEqual({ errors: [`Product ${vbid} not found`] });
  }
});
