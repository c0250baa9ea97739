// @module-tag service
import { expect } from 'vitest';
import { isIsbn } from '../../src/base/isbn.ts';
import { NEW, put, send } from './asset-requests.ts';
import { firstItem, getPage, itWith, sandboxFor } from './client.ts';

const it = itWith({ items: 0 });

const PRICES = [12.25, 30.5].map((amount) => ({ currency: 'USD', type: 'digital_list_price', amount }));

// @rule 1-1, 4.1-3
it('4.1: the sandbox generates an EAN without a vbid, the same for the same seed, never one that is taken', async () => {
  const [a, b] = await Promise.all([sandboxFor({ items: 5, seed: 8 }), sandboxFor({ items: 5, seed: 8 })]);
  const first = await send(a, 'PUT', '/v4/assets', NEW);
  expect(first.body.vbid).toMatch(/^978\d{10}$/);
  expect(isIsbn(first.body.vbid)).toBe(true);
  const second = await send(a, 'PUT', '/v4/assets', NEW);
  // The second sandbox has an asset with that number already.
  await put(b, second.body.vbid, NEW);
  const [third, fourth] = [await send(b, 'PUT', '/v4/assets', NEW), await send(b, 'PUT', '/v4/assets', NEW)];
  const generated = new Set([third.body.vbid, fourth.body.vbid]);
  expect(generated.size).toBe(2);
  expect(generated.has(second.body.vbid)).toBe(false);
  a.catalog.mutate({ create: 50 });
  b.catalog.mutate({ create: 50 });
  for (const sandbox of [a, b]) {
    const { items } = await getPage(sandbox);
    expect(new Set(items.map(({ vbid }) => vbid)).size).toBe(items.length);
  }
  expect((await getPage(b)).num_items).toBe(58);
});

it('4.1 rule 3: the sandbox lets another key create assets of its own, and an unknown key none', async ({
  sandbox,
}) => {
  expect((await put(sandbox, 'L-1', NEW, 'OTHERKEY')).status).toBe(200);
  expect((await put(sandbox, 'L-1', { title: 'Mine' })).status).toBe(403);
  expect((await put(sandbox, 'L-2', NEW, 'NOSUCHKEY')).status).toBe(403);
});

// @rule 4.1-6
it('the sandbox rejects invalid identifiers, and bodies that are not objects', async ({ sandbox }) => {
  expect(await put(sandbox, 'a%2Fb', NEW)).toMatchObject({ status: 422, errors: [expect.stringMatching(/^vbid: /)] });
  for (const body of ['', '{', '[]', 'null', '7', '"x"']) {
    expect([body, await put(sandbox, 'L-1', body)]).toMatchObject([body, { status: 422 }]);
  }
});

it('7: a 422 changes nothing', async ({ sandbox }) => {
  await put(sandbox, 'L-1', NEW);
  expect((await put(sandbox, 'L-1', { title: 'Other', edition: 'x' })).status).toBe(422);
  expect((await send(sandbox, 'GET', '/vital_books/L-1')).body.title).toBe('Tides');
});

it('2.1: author_name stays if one name alone is sent, and may be the last name', async ({ sandbox }) => {
  await put(sandbox, 'L-1', { ...NEW, author_name: 'Mei Okonkwo' });
  expect((await put(sandbox, 'L-1', { author_last_name: 'Suzuki' })).body.author_name).toBe('Mei Okonkwo');
  const alone = { author_first_name: '', author_last_name: 'Voltaire' };
  expect((await put(sandbox, 'L-1', alone)).body.author_name).toBe('Voltaire');
});

it('4.1: the sandbox generates a vbid if the path has an empty one', async ({ sandbox }) => {
  const { status, body } = await put(sandbox, '', NEW);
  expect([status, isIsbn(body.vbid)]).toEqual([200, true]);
});

const NO_DURATION = 'prices/0/duration: is required for a rental price';
const CHANNEL = 'variants/0/channel_ids/0';
const NO_CHANNEL = `${CHANNEL}/channel_id_inclusive_access: is required`;
const OTHER_CHANNEL = `${CHANNEL}/channel_id_retail: only channel_id_inclusive_access is supported`;
const NO_SKU = `${CHANNEL}/sku: must be the vbid, or vbid, R and the days of one of the rentals`;

function inChannel(id: object) {
  return { variants: [{ channel_ids: [id] }] };
}

// @rule 2.1.2-4, 2.1.3-3, 8-7
it.for<[object, string[]]>([
  [{ prices: [{ currency: 'USD', type: 'digital_rental_price', amount: '5.00' }] }, [NO_DURATION]],
  [
    { prices: [{ type: 'rental' }] },
    ['prices/0/currency: must be an ISO 4217 code', 'prices/0/amount: must be a decimal number', NO_DURATION],
  ],
  [inChannel({ sku: 'L-1', channel_id_retail: 'x' }), [NO_CHANNEL, OTHER_CHANNEL]],
  [inChannel({ sku: 5, channel_id_retail: 'x' }), [`${CHANNEL}/sku: must be a text`, NO_CHANNEL, OTHER_CHANNEL]],
  [inChannel({ sku: 'L-1' }), [NO_CHANNEL]],
  [inChannel({ sku: 'TYPO', channel_id_inclusive_access: 'x' }), [NO_SKU]],
  [inChannel({ sku: 'L-1R90', channel_id_inclusive_access: 'x' }), [NO_SKU]],
  [
    { variants: [{ channel_id_inclusive_access: 'x' }] },
    ['variants/0/channel_id_inclusive_access: must be in an element of channel_ids'],
  ],
])('2.1.2, 2.1.3, 8: the sandbox rejects %j, and names each invalid member', async ([more, errors], { sandbox }) => {
  expect(
    await put(sandbox, 'L-1', { ...NEW, prices: [{ ...PRICES[0], type: 'rental', duration: 180 }], ...more }),
  ).toMatchObject({ status: 422, errors });
});

it('2.1.2: the sandbox lists rentals by duration, shortest first', async ({ sandbox }) => {
  const prices = [180, 90, 180].map((duration) => ({
    currency: 'USD',
    type: 'digital_rental_price',
    amount: 1,
    duration,
  }));
  const { body } = await put(sandbox, 'L-1', { ...NEW, prices });
  expect(body.variants.map(({ sku, prices: own }) => [sku, own.length])).toEqual([
    ['L-1', 0],
    ['L-1R90', 1],
    ['L-1R180', 2],
  ]);
});

it('2.1.3: the sandbox rejects a SKU of an asset without an identifier', async ({ sandbox }) => {
  const book = { ...NEW, ...inChannel({ sku: 'L-1', channel_id_inclusive_access: 'x' }) };
  expect((await send(sandbox, 'POST', '/vital_books', book)).errors).toEqual([NO_SKU]);
});

it('2.1.3: the sandbox accepts the SKUs that the asset has, or gets with the request', async () => {
  const sandbox = await sandboxFor({ items: 1 });
  const { vbid } = await firstItem(sandbox);
  const set = (sku: string) => [{ channel_ids: [{ sku, channel_id_inclusive_access: 'ia' }] }];
  const rental = { currency: 'USD', type: 'digital_rental_price', amount: 1, duration: 90 };
  const statuses = [
    await put(sandbox, vbid, { variants: set(`${vbid}R180`) }),
    await put(sandbox, vbid, { variants: set(`${vbid}R90`) }),
    await put(sandbox, 'L-1', { ...NEW, prices: [rental] }),
    await put(sandbox, 'L-1', { variants: set('L-1R90') }),
    await put(sandbox, 'L-1', { variants: set('L-1R90'), prices: [] }),
  ].map(({ status }) => status);
  expect(statuses).toEqual([200, 422, 200, 200, 422]);
});

it.for([
  ['CS20', '20'],
  ['CS100', '100'],
  ['CS150', '10'],
  ['CSPLUS', '10'],
] as const)('2.1: the discount code %s gives %s percent', async ([code, percent], { sandbox }) => {
  const { body } = await put(sandbox, 'L-1', { ...NEW, cs_plus_discount_code: code });
  expect(body.cs_plus_discount).toBe(percent);
});

// @rule 2.2-3, 4.5-3
it('4.5: the sandbox reads generated products', async () => {
  const sandbox = await sandboxFor({ items: 20, details: true });
  for (const item of (await getPage(sandbox, '?include_details=metadata')).items) {
    const { body } = await send(sandbox, 'GET', `/vital_books/${item.vbid}`);
    expect(body).toMatchObject({ title: item.title, kind: { value: item.kind }, isbn: item.vbid });
    expect(body.publisher).toMatchObject({ name: item.publisher });
    expect(body.variants.map(({ sku }) => sku)).toEqual([item.vbid, `${item.vbid}R180`]);
  }
});

it('7: the sandbox lists a hundred errors of a request, and says how many more there are', async ({ sandbox }) => {
  const { status, errors } = await put(sandbox, 'L-1', { ...NEW, prices: new Array(1000).fill({}) });
  expect([status, errors.length]).toEqual([422, 101]);
  expect([errors[0], errors.at(-1)]).toEqual(['prices/0/currency: must be an ISO 4217 code', '… and 2900 more']);
});

// @rule 2.2-2, 2.2-21, 2.2-26
it('2.2: each id is a different whole number, and a variant has the time of its update', async ({ sandbox }) => {
  const answers = [
    await put(sandbox, 'L-1', { ...NEW, prices: PRICES }),
    await put(sandbox, 'L-2', { ...NEW, prices: PRICES }),
  ];
  const ids = answers.map(({ body }) => body.id);
  const products = answers.map(({ body }) => (body.variants[0] as unknown as { product_id: unknown }).product_id);
  for (const id of [...ids, ...products]) expect(Number.isSafeInteger(id)).toBe(true);
  expect(new Set(ids).size).toBe(2);
  expect(new Set(products).size).toBe(2);
  for (const { body } of answers) {
    expect(body.variants[0]).toMatchObject({
      updated: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
  }
});
