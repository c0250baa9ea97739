// @module-tag service

import { createClient } from 'catchword-client/client';
import { expect, it, onTestFinished } from 'vitest';
import { failure, KEY, serve, TOKEN } from './connection.ts';
import { talk } from './support.ts';

const DATE = 'Fri, 20 Nov 2026 02:00:00 GMT';

function page(number: number, total: number, vbids: readonly string[]) {
  const items = vbids.map((vbid) => ({ vbid, title: `Title ${vbid}` }));
  return { num_items: total * 2, page: number, per_page: 2, total_pages: total, items };
}

// @rule 2.5-1, 4.4-1..4, 4.4-6..7, 4.4-9..12, 9-4
it('4.4 rule 1: the client reads pages up to total_pages, with both headers and the parameters', async () => {
  const { client, asked } = await talk(({ url }) => {
    const number = Number(new URL(url, 'http://a').searchParams.get('page'));
    return { headers: { date: DATE }, body: page(number, 3, [`${number}a`, `${number}b`]) };
  });
  const pages = [];
  const options = { perPage: 2, includeDetails: ['subjects', 'metadata'], currency: ['USD', 'EUR'] };
  for await (const one of client.catalog.products(options)) pages.push(one);
  expect(pages.map(({ products }) => products.map(({ vbid }) => vbid).join())).toEqual(['1a,1b', '2a,2b', '3a,3b']);
  expect(pages[0]).toMatchObject({ page: 1, totalPages: 3, numItems: 6, perPage: 2, sourceTime: Date.parse(DATE) });
  expect(pages[0]?.products[0]).toMatchObject({
    title: 'Title 1a',
    product: { vbid: '1a', title: 'Title 1a' },
    body: '{"vbid":"1a","title":"Title 1a"}',
  });
  expect(pages[0]?.products[0]).not.toHaveProperty('withdrawn');
  expect(asked[0]?.url).toBe('/v4/products?page=1&per_page=2&include_details=subjects%2Cmetadata&currency=USD%2CEUR');
  expect(asked[0]?.headers).toMatchObject({
    'x-service-api-key': KEY,
    'x-service-access-token': TOKEN,
    'content-type': 'application/json',
  });
  expect(asked).toHaveLength(3);
});

// @rule 4.4-9, 4.4-12..13, 4.4-15, 8-2
it('4.4, 8: a page has 1,000 items by default', async () => {
  const { client, asked } = await talk(() => ({
    body: { num_items: 0, page: 1, per_page: 1000, total_pages: 0, items: [] },
  }));
  for await (const { products } of client.catalog.products()) expect(products).toEqual([]);
  expect(asked.map(({ url }) => url)).toEqual(['/v4/products?page=1&per_page=1000']);
});

// @rule 4.4-5, 4.4-14
it('4.4 rule 3: from reads what changed since a time', async () => {
  const { client, asked } = await talk(() => ({ body: page(1, 1, ['a']) }));
  await client.catalog.products({ from: '2026-11-20T02:00:00+01:00', perPage: 2 }).next();
  await client.catalog.products({ from: new Date(Date.UTC(2026, 0, 1)), perPage: 2 }).next();
  expect(asked.map(({ url }) => new URL(url, 'http://a').searchParams.get('from'))).toEqual([
    '2026-11-20T01:00:00.000Z',
    '2026-01-01T00:00:00.000Z',
  ]);
});

// @rule 4.4-8
it('4.4: until reads what changed up to a time, by the configured parameter', async () => {
  const { client, asked } = await talk(() => ({ body: page(1, 1, ['a']) }), { untilParam: 'before' });
  await client.catalog.products({ from: '2026-11-20', until: '2026-11-20T02:00:00Z', perPage: 2 }).next();
  expect(asked[0]?.url).toBe(
    '/v4/products?page=1&per_page=2&from=2026-11-20T00%3A00%3A00.000Z&before=2026-11-20T02%3A00%3A00.000Z',
  );
});

it('the client returns an item that is not UTF-8 as rejected, with the other items', async () => {
  const body = Buffer.from(
    JSON.stringify({ ...page(1, 1, ['a', 'b']), num_items: 2 }).replace('Title a', 'Caf\xe9'),
    'latin1',
  );
  const { url } = await serve(() => ({ headers: { 'content-type': 'application/json' }, body }));
  const client = createClient({ baseUrl: url, apiKey: KEY, accessToken: TOKEN, rateLimit: 'off' });
  onTestFinished(() => client.close());
  const { value } = await client.catalog.products({ perPage: 2 }).next();
  expect(value).toMatchObject({
    products: [{ vbid: 'b' }],
    rejected: [{ position: 0, reason: 'invalid UTF-8: byte 0xe9 after 24 characters' }],
  });
  // A lookup has no other items.
  expect(await failure(client.catalog.product('a'))).toMatchObject({ code: 'SOURCE_BODY' });
});
