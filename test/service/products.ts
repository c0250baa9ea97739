import { type Ask, like, type Row, TIME } from './row.ts';

/* The list of products (2.5, 4.4). */

const PRICES = [
  { currency: 'USD', type: 'digital_list_price', amount: '30.50' },
  { currency: 'EUR', type: 'digital_list_price', amount: 28 },
];
const TWO: readonly Ask[] = [
  ['PUT /v4/assets/L-1', { imprint_id: 3, title: 'Tides', e_isbn: '9780306406157' }],
  ['PUT /v4/assets/L-2', { imprint_id: 3, title: 'Currents', prices: PRICES }],
];
const FIRST = {
  vbid: 'L-1',
  title: 'Tides',
  identifiers: { print_isbn_canonical: null, eisbn_canonical: '9780306406157' },
  created: TIME,
};
const SECOND = { vbid: 'L-2', title: 'Currents', identifiers: { print_isbn_canonical: null, eisbn_canonical: null } };
const priced = (...prices: readonly object[]) => ({ ...SECOND, variants: [{ sku: 'L-2', prices }] });
const DOLLARS = { type: 'digital_list_price', value: 30.5, currency: 'USD' };
const EUROS = { type: 'digital_list_price', value: 28, currency: 'EUR' };

const page = (items: readonly object[], more: object = {}) => ({
  num_items: items.length,
  page: 1,
  per_page: 1000,
  total_pages: 1,
  items,
  ...more,
});
const ALL = 'GET /v4/products?page=1&per_page=1000';
const NO_CHANGE = page([], { total_pages: 0 });
/** What the client sends when it is asked for all products. */
const FULL: Ask = [ALL];

/** A query that the client does not send. */
const invalid = (query: string): Row => ({
  rules: '4.4-5..7, 4.4-9, 7-3',
  says: `the query ${query} is rejected with 422`,
  asks: [`GET /v4/products?${query}`],
  status: 422,
  reply: { errors: [like('no', new RegExp(`^${query.split('=')[0]}: `))] },
});

const rejection = (says: string, caller: Pick<Row, 'key' | 'token'>, text: string): Row => ({
  rules: '4.4-2..3, 5-1, 5-3',
  says,
  ...caller,
  asks: FULL,
  status: 403,
  reply: { errors: [text] },
  call: ({ catalog }) => catalog.products().next(),
  fails: { code: 'SOURCE_AUTH', status: 403, exitCode: 2 },
});

export const PRODUCTS: readonly Row[] = [
  {
    rules: '2.5-1..3, 4.4-1..4, 4.4-7, 4.4-9, 4.4-11..13, 4.4-15, 8-2, 9-1, 9-4',
    says: 'a full load reads pages of 1,000 items, without details',
    given: TWO,
    asks: FULL,
    reply: page([FIRST, priced(DOLLARS, EUROS)]),
    call: ({ catalog }) => catalog.products().next(),
    makes: {
      value: { page: 1, perPage: 1000, totalPages: 1, numItems: 2, products: [{ vbid: 'L-1' }, { vbid: 'L-2' }] },
    },
  },
  {
    rules: '4.4-7, 4.4-9, 4.4-12',
    says: 'a page has as many items as asked for, and says how many pages there are',
    given: TWO,
    asks: ['GET /v4/products?page=1&per_page=1'],
    reply: page([FIRST], { num_items: 2, per_page: 1, total_pages: 2 }),
    call: ({ catalog }) => catalog.products({ perPage: 1 }).next(),
    makes: { value: { perPage: 1, totalPages: 2, products: [{ vbid: 'L-1', title: 'Tides' }] } },
  },
  {
    rules: '4.4-12',
    says: 'a page beyond the last one is empty',
    given: TWO,
    asks: ['GET /v4/products?page=3&per_page=1'],
    reply: page([], { num_items: 2, page: 3, per_page: 1, total_pages: 2 }),
  },
  {
    rules: '4.4-6, 4.4-10',
    says: 'details and currencies are given on request',
    given: TWO,
    asks: [`${ALL}&include_details=subjects%2Cmetadata&currency=EUR`],
    reply: page([FIRST, { ...priced(EUROS), subjects: [], metadata: { imprint_name: like('Quill', /./) } }]),
    call: ({ catalog }) => catalog.products({ includeDetails: ['subjects', 'metadata'], currency: ['EUR'] }).next(),
    makes: { value: { products: [{}, { product: { metadata: { imprint_name: 'Quill' } } }] } },
  },
  {
    rules: '4.4-5, 4.4-14',
    says: 'a delta lists what changed since a time',
    given: TWO,
    asks: [`${ALL}&from=2020-01-01T00%3A00%3A00.000Z`],
    reply: page([FIRST, SECOND]),
    call: ({ catalog }) => catalog.products({ from: '2020-01-01' }).next(),
    makes: { value: { numItems: 2, products: [{ vbid: 'L-1' }, { vbid: 'L-2' }] } },
  },
  {
    rules: '4.4-8',
    says: 'a list may end at a time',
    given: TWO,
    asks: [`${ALL}&until=2020-01-01T00%3A00%3A00.000Z`],
    reply: NO_CHANGE,
    call: ({ catalog }) => catalog.products({ until: new Date(Date.UTC(2020, 0, 1)) }).next(),
    makes: { value: { numItems: 0, products: [] } },
  },
  {
    rules: '2.5-2',
    says: 'a product is looked up by its vbid',
    given: TWO,
    asks: ['GET /v4/products/L-1'],
    reply: FIRST,
    call: ({ catalog }) => catalog.product('L-1'),
    makes: { vbid: 'L-1', title: 'Tides' },
  },
  {
    rules: '2.5-2',
    says: 'a product that does not exist is answered with 404, which is not an error',
    asks: ['GET /v4/products/a%20b'],
    status: 404,
    reply: { errors: [like('Product a b not found', /^Product a b not found$/)] },
    call: ({ catalog }) => catalog.product('a b'),
  },
  rejection('a key that is not valid is rejected with 403', { key: 'WRONG' }, 'API key is not valid'),
  rejection('a token that is not valid is rejected with 403', { token: 'wrong' }, 'Access token is not valid'),
  ...['page=0', 'page=x', 'per_page=0', 'per_page=1001', 'per_page='].map(invalid),
  ...['from=yesterday', 'from=2026-13-01', 'from=2026-02-30', 'until=1'].map(invalid),
  ...['include_details=everything', 'currency=euro'].map(invalid),
];
