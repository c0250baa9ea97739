import { expect } from 'vitest';
import { isIsbn } from '../../src/base/isbn.ts';
import { NEW, put, send } from './asset-requests.ts';
import { firstItem, getPage, itWith, sandboxFor } from './client.ts';

const it = itWith({ items: 0 });

const ECHOED = {
  author_first_name: 'Mei',
  author_last_name: 'Okonkwo',
  print_drm_limit: -1,
  copyright_date: '2015',
  description: 'About tides.',
  e_isbn: '9780306406157',
  fulfillment_only: true,
  language: 'en',
  login_url: 'https://login.example.org/',
  off_sale_date: null,
  on_sale_date: '2016-01-01',
  print_isbn: '0306406152',
  publication_date: '2015-12-31T00:00:00Z',
  related_products: { next_edition: '9780306406157', previous_edition: '9791090636071' },
  sales_rights: { exclusive_rights: ['US', 'CA'], non_exclusive_rights: ['ROW'], not_for_sale: null },
  sampleable: true,
  title: 'Tides',
  subtitle: 'A Global Perspective',
};

const EVERY_FIELD = {
  ...ECHOED,
  copy_drm_limit: '2',
  cs_plus_discount_code: 'CS20',
  edition: '127',
  fro: 'true',
  imprint_id: '3',
  kind: 'book',
  parent_isbn: '0-306-40615-2',
  prices: [
    { currency: 'USD', type: 'digital_list_price', amount: '30.50', tax_inclusive: 'false' },
    { currency: 'EUR', type: 'digital_list_price', amount: 29 },
    { currency: 'USD', type: 'digital_rental_price', amount: 12.25, duration: '180' },
  ],
  variants: [{ channel_ids: [{ sku: 'L-1R180', channel_id_inclusive_access: 'ia-77' }] }],
};

// @rule 2.1-21, 2.1-33, 2.2-1..2, 4.1-2, 4.1-7, 4.1-9
it('4.1 rule 1: the sandbox creates with imprint_id and title, then updates without', async () => {
  const sandbox = await sandboxFor({ items: 3 });
  const refused = await put(sandbox, 'L-999-70031', { subtitle: 'x' });
  expect([refused.status, refused.errors]).toEqual([
    422,
    ['imprint_id: is required to create an asset', 'title: is required to create an asset'],
  ]);
  const created = await put(sandbox, 'L-999-70031', NEW);
  expect(created).toMatchObject({ status: 200, body: { vbid: 'L-999-70031', title: 'Tides', imprint: { id: 3 } } });
  const updated = await put(sandbox, 'L-999-70031', { subtitle: 'x' });
  expect(updated).toMatchObject({ status: 200, body: { title: 'Tides', subtitle: 'x', id: created.body.id } });
});

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

// @rule 4.1-4, 4.1-8, 4.1-11, 5-5, 7-2
it('4.1 rule 3, 5 rule 1: the sandbox rejects a key that is not the owner with 403', async () => {
  const sandbox = await sandboxFor({ items: 1 });
  const { vbid } = await firstItem(sandbox);
  const refused = await put(sandbox, vbid, { title: 'Mine' }, 'OTHERKEY');
  expect([refused.status, refused.errors]).toEqual([403, [expect.stringContaining(vbid)]]);
  expect((await put(sandbox, 'L-1', NEW, 'OTHERKEY')).status).toBe(200);
  expect((await put(sandbox, 'L-1', { title: 'Mine' })).status).toBe(403);
  expect((await put(sandbox, vbid, { title: 'Mine' })).status).toBe(200);
  expect((await put(sandbox, 'L-2', NEW, 'NOSUCHKEY')).status).toBe(403);
});

// @rule 4.1-6
it('the sandbox rejects invalid identifiers, and bodies that are not objects', async ({ sandbox }) => {
  expect(await put(sandbox, 'a%2Fb', NEW)).toMatchObject({ status: 422, errors: [expect.stringMatching(/^vbid: /)] });
  for (const body of ['', '{', '[]', 'null', '7', '"x"']) {
    expect([body, await put(sandbox, 'L-1', body)]).toMatchObject([body, { status: 422 }]);
  }
});

// @rule 2.1-4..5, 2.1-7, 2.1-9, 2.1-11, 2.1-14..15, 2.1-18..19, 2.1-23..24, 2.1-28..32, 2.1-34, 2.1.2-6, 2.2-5, 2.2-7..8, 2.2-11, 2.2-13, 2.2-15, 4.1-6
it('2.1: the sandbox accepts every field, with numbers and booleans in quotes or not', async ({ sandbox }) => {
  const reply = await put(sandbox, 'L-1', EVERY_FIELD);
  expect(reply.errors).toEqual([]);
  expect(reply.body).toMatchObject({
    ...ECHOED,
    copy_drm_limit: 2,
    edition: 127,
    fro: true,
    parent_id: '0-306-40615-2',
  });
});

// @rule 2.1-7..9, 2.1-14..15, 2.1-18, 2.1-21..26, 2.1-29, 2.1-33, 2.1-35, 2.1-38..39, 7-3, 8-3..5
it.for([
  ['copy_drm_limit', 1],
  ['copy_drm_limit', -2],
  ['print_drm_limit', '0'],
  ['print_drm_limit', 2.5],
  ['copyright_date', '15'],
  ['copyright_date', 2015],
  ['e_isbn', '9780306406158'],
  ['edition', 128],
  ['edition', '-1'],
  ['fro', 'yes'],
  ['imprint_id', 'x'],
  ['kind', { value: 'book' }],
  ['language', 'the English language'],
  ['login_url', 'javascript:alert(1)'],
  ['off_sale_date', 'tomorrow'],
  ['on_sale_date', '2016-02-30'],
  ['publication_date', 2016],
  ['title', ''],
  ['prices', {}],
  ['url', 'ftp://example.org/book.pdf'],
  ['callback_url', 'example.org'],
] as const)('7: a 422 names the invalid field: %s %j', async ([name, value], { sandbox }) => {
  const reply = await put(sandbox, 'L-1', { ...NEW, [name]: value });
  expect([reply.status, reply.errors]).toEqual([422, [expect.stringMatching(new RegExp(`^${name}: must `))]]);
});

// @rule 2.1-30, 2.1.2-1..3, 7-3
it('7: a 422 has one message for each invalid field, and nothing changes', async ({ sandbox }) => {
  await put(sandbox, 'L-1', NEW);
  const wrong = {
    title: 'Other',
    edition: 'x',
    related_products: { next_edition: '1' },
    prices: [{ currency: 'USD', type: 't', amount: 1 }, { amount: 'free' }],
  };
  const reply = await put(sandbox, 'L-1', wrong);
  expect(reply.errors.map((message) => message.split(':')[0])).toEqual([
    'edition',
    'related_products/next_edition',
    'prices/1/currency',
    'prices/1/type',
    'prices/1/amount',
  ]);
  expect((await send(sandbox, 'GET', '/vital_books/L-1')).body.title).toBe('Tides');
});

// @rule 2.1-1..2, 2.1-6, 2.1-10, 2.1-12, 2.1-16..17, 2.1-37, 2.2-8, 2.2-12, 2.2-15, 3-1, 8-6
it('2.1: the sandbox ignores internal and unknown fields, and returns the defaults of the internal ones', async ({
  sandbox,
}) => {
  const internal = {
    block_search: true,
    custom: true,
    epub_page_labels: true,
    floe: true,
    vcs_authored: true,
    discount_codes: ['X'],
    asset_status: { vbk: 'done' },
    lifetime_print_limit: 5,
  };
  const reply = await put(sandbox, 'L-1', { ...NEW, ...internal, no_such_field: 1 });
  expect(reply.body).toMatchObject({
    block_search: false,
    custom: false,
    epub_page_labels: false,
    floe: false,
    vcs_authored: false,
    discount_codes: [],
    asset_status: { vbk: 'none' },
    lifetime_print_limit: 100,
  });
  expect(reply.body).not.toHaveProperty('no_such_field');
});

// @rule 2.1-3, 2.2-7
it('2.1: author_name is the concatenation if it is omitted and both others are sent', async ({ sandbox }) => {
  const both = { author_first_name: 'Mei', author_last_name: 'Okonkwo' };
  expect((await put(sandbox, 'L-1', { ...NEW, ...both })).body.author_name).toBe('Mei Okonkwo');
  expect((await put(sandbox, 'L-1', { author_last_name: 'Suzuki' })).body.author_name).toBe('Mei Okonkwo');
  expect((await put(sandbox, 'L-1', { ...both, author_name: 'M. O.' })).body.author_name).toBe('M. O.');
  const alone = { author_first_name: '', author_last_name: 'Voltaire' };
  expect((await put(sandbox, 'L-1', alone)).body.author_name).toBe('Voltaire');
});

it('4.1: the sandbox generates a vbid if the path has an empty one', async ({ sandbox }) => {
  const { status, body } = await put(sandbox, '', NEW);
  expect([status, isIsbn(body.vbid)]).toEqual([200, true]);
});

// @rule 2.1-35..36, 2.1.3-1..2, 2.2-20, 2.2-22..25, 2.2-27
it('2.1.2: the sandbox makes a variant of the prices, and a rental for each duration', async ({ sandbox }) => {
  const { variants } = (await put(sandbox, 'L-1', EVERY_FIELD)).body;
  expect(variants).toMatchObject([
    {
      sku: 'L-1',
      duration: 'perpetual',
      online_duration: 'perpetual',
      channel_ids: [],
      prices: [
        { price: 30.5, currency: 'USD', type: 'digital_list_price', company_id: '_all' },
        { price: 29, currency: 'EUR', type: 'digital_list_price', company_id: '_all' },
      ],
    },
    {
      sku: 'L-1R180',
      duration: '180',
      channel_ids: [{ channel: 'inclusive_access', identifier: 'ia-77' }],
      prices: [{ price: 12.25, currency: 'USD', type: 'digital_rental_price' }],
    },
  ]);
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
  expect(await put(sandbox, 'L-1', { ...EVERY_FIELD, ...more })).toMatchObject({ status: 422, errors });
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

// @rule 2.1-13, 2.1-22, 2.2-3, 2.2-6, 2.2-9, 2.2-14, 2.2-16, 2.2-18..19, 4.1-7
it('2.2: the sandbox returns kind as an object, the discount of the code, and the imprint with its publisher', async ({
  sandbox,
}) => {
  expect((await put(sandbox, 'L-1', EVERY_FIELD)).body).toMatchObject({
    kind: { id: expect.any(Number), value: 'book' },
    cs_plus_discount: '20',
    imprint: { id: 3, name: expect.any(String), resource_url: expect.stringMatching(/^https:.*3$/) },
    publisher: { id: 3, name: expect.any(String), city: expect.any(String) },
    book_format: { name: null, value: null, dash2epub: false },
    build: { available: false, source: 'sandbox', status: 'none' },
    asset_status: { vbk: 'none', distribution: 'distributed' },
    isbn: '9780306406157',
    isbn_canonical: '9780306406157',
    created: expect.stringMatching(/^\d{4}-.*Z$/),
  });
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

// @rule 4.5-1..3, 9-2
it('4.5, 9 rule 1: /vital_books creates, reads and updates', async () => {
  const sandbox = await sandboxFor({ items: 1 });
  const created = await send(sandbox, 'POST', '/vital_books', NEW);
  const { vbid } = created.body;
  expect([created.status, isIsbn(vbid)]).toEqual([200, true]);
  const path = `/vital_books/${vbid}`;
  expect((await send(sandbox, 'PUT', path, { edition: 2 })).status).toBe(200);
  expect(await send(sandbox, 'GET', path)).toMatchObject({ status: 200, body: { vbid, title: 'Tides', edition: 2 } });
  for (const method of ['GET', 'PUT'] as const) {
    const unknown = await send(sandbox, method, '/vital_books/nothing', method === 'PUT' ? NEW : undefined);
    expect([unknown.status, unknown.errors]).toEqual([404, ['Book not found']]);
  }
  expect((await send(sandbox, 'PUT', path, { edition: 3 }, 'OTHERKEY')).status).toBe(403);
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
