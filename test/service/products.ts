import { type Ask, like, type Row, row, TIME } from './row.ts';

/* The list of products (2.5, 4.4). */

const price = (currency: string, amount: number) => ({ currency, type: 'digital_list_price', amount });
const TWO: readonly Ask[] = [
  ['PUT /v4/assets/L-1', { imprint_id: 3, title: 'Tides', e_isbn: '9780306406157' }],
  ['PUT /v4/assets/L-2', { imprint_id: 3, title: 'Currents', prices: [price('USD', 30.5), price('EUR', 28)] }],
];
const NO_ISBN = { print_isbn_canonical: null, eisbn_canonical: null };
const FIRST = {
  vbid: 'L-1',
  title: 'Tides',
  identifiers: { ...NO_ISBN, eisbn_canonical: '9780306406157' },
  created: TIME,
};
const SECOND = { vbid: 'L-2', title: 'Currents', identifiers: NO_ISBN };
const priced = (...prices: readonly object[]) => ({ ...SECOND, variants: [{ sku: 'L-2', prices }] });
const DOLLARS = { type: 'digital_list_price', value: 30.5, currency: 'USD' };
const EUROS = { type: 'digital_list_price', value: 28, currency: 'EUR' };

/** A page with these items, and what differs from a full one. */
const page = (items: readonly object[], num_items = items.length, at = 1, per_page = 1000) => {
  return { num_items, page: at, per_page, total_pages: Math.ceil(num_items / per_page), items };
};
const list = (more = '', perPage = 1000): Ask => [`GET /v4/products?page=1&per_page=${perPage}${more}`];
const BOTH = { products: [{ vbid: 'L-1', title: 'Tides' }, { vbid: 'L-2' }], rejected: [] };
const START = '2020-01-01T00%3A00%3A00.000Z';

/** A query that the client does not send. */
function invalid(query: string): Row {
  const errors = [like('no', new RegExp(`^${query.split('=')[0]}: `))];
  const title = `4.4-5..7, 4.4-9, 7-3: the query ${query} is rejected with 422`;
  return row(title, [[`GET /v4/products?${query}`]], { errors }, { status: 422, call: null });
}

function rejected(what: string, caller: Pick<Row, 'key' | 'token'>, error: string): Row {
  const fails = { code: 'SOURCE_AUTH', exitCode: 2 };
  const title = `4.4-2..3, 5-1, 5-3: ${what} that is not valid is rejected with 403`;
  return row(title, [list()], { errors: [error] }, { ...caller, status: 403, fails });
}

export const PRODUCTS = [
  row(
    '2.5-1..3, 4.4-1..4, 4.4-7, 4.4-9, 4.4-11..13, 4.4-15, 8-2, 9-1, 9-4: a full load reads pages of 1,000 lean items',
    [...TWO, list()],
    page([FIRST, priced(DOLLARS, EUROS)]),
    { makes: { value: { page: 1, perPage: 1000, totalPages: 1, numItems: 2, ...BOTH } } },
  ),
  row('4.4-7, 4.4-9, 4.4-12: a page has as many items as asked for', [...TWO, list('', 1)], page([FIRST], 2, 1, 1), {
    makes: { value: { perPage: 1, totalPages: 2, products: [{ vbid: 'L-1' }] } },
  }),
  row('4.4-12: a page beyond the end is empty', [...TWO, ['GET /v4/products?page=3&per_page=1']], page([], 2, 3, 1), {
    call: null,
  }),
  row(
    '4.4-6, 4.4-10: details and currencies are given on request',
    [...TWO, list('&include_details=subjects%2Cmetadata&currency=EUR')],
    page([FIRST, { ...priced(EUROS), subjects: [], metadata: { imprint_name: like('Quill', /./) } }]),
    { makes: { value: { products: [{}, { product: { metadata: { imprint_name: 'Quill' } } }] } } },
  ),
  row('4.4-5, 4.4-14: a delta lists changes since a time', [...TWO, list(`&from=${START}`)], page([FIRST, SECOND]), {
    makes: { value: BOTH },
  }),
  row('4.4-8: a list may end at a time', [...TWO, list(`&until=${START}`)], page([]), {
    makes: { value: { numItems: 0, products: [] } },
  }),
  row('2.5-2: a product is looked up by its vbid', [...TWO, ['GET /v4/products/L-1']], FIRST, {
    makes: { vbid: 'L-1', title: 'Tides' },
  }),
  row(
    '2.5-2: an unknown product is answered with 404, which is not an error',
    [['GET /v4/products/a%20b']],
    { errors: ['Product a b not found'] },
    { status: 404, makes: null },
  ),
  rejected('a key', { key: 'WRONG' }, 'API key is not valid'),
  rejected('a token', { token: 'wrong' }, 'Access token is not valid'),
  ...['page=0', 'page=x', 'per_page=0', 'per_page=1001', 'per_page=', 'from=yesterday', 'from=2026-13-01'].map(invalid),
  ...['from=2026-02-30', 'until=1', 'include_details=everything', 'currency=euro'].map(invalid),
];
