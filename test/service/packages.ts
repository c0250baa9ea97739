import { type Ask, like, row, TIME } from './row.ts';

/* Packages (4.5). */

const SHELF = {
  sku: 'SHELF-1',
  name: 'First year',
  description: 'All of it',
  publisher: 'Quill and Anchor',
  list_price: 49.5,
  library_id: 7,
  products: ['L-1', 'L-2'],
  tags: ['science'],
  download_license: { type: 'numdays', num_days: 180 },
  online_license: { type: 'perpetual' },
};
const OTHER = { ...SHELF, sku: 'SHELF-2' };

const BOOK = { imprint_id: 3, title: 'Tides' };
const BOOKS: readonly Ask[] = ['L-1', 'L-2', 'L-3'].map((vbid): Ask => [`PUT /v4/assets/${vbid}`, BOOK]);
const POST: Ask = ['POST /v4/packages', SHELF];
const MADE: readonly Ask[] = [...BOOKS, POST];
const GET: Ask = ['GET /v4/packages/SHELF-1'];
const put = (body: object): Ask => ['PUT /v4/packages/SHELF-1', body];
const DELETE: Ask = ['DELETE /v4/packages/SHELF-1/assets'];
const without = (...products: readonly string[]): Ask => [DELETE[0], { products }];
const CHANGE = { name: 'Second year', products: ['L-3', 'L-1'], tags: [], online_license: null };

/** A new package that is rejected for these members, and does not exist then. */
function invalid(body: object, ...members: readonly string[]) {
  const errors = members.map((member) => like(`${member}: no`, new RegExp(`^${member}: `)));
  const title = `1-3, 4.5-10: a package is rejected for ${members.join(' and ')}: ${JSON.stringify(body).slice(0, 60)}`;
  return row(
    title,
    [...MADE, ['POST /v4/packages', body]],
    { errors },
    {
      status: 422,
      // The client sends only objects.
      ...(Array.isArray(body) && { call: null }),
    },
  );
}

/** A request for a package of another key. */
function foreign(what: string, ask: Ask) {
  const errors = ['The API key does not own this package'];
  const fails = { code: 'SERVICE_FORBIDDEN', hint: /permission/ };
  const title = `4.5-5..7, 7-2: ${what} of a package of another key is answered with 403`;
  return row(title, [...MADE, ask], { errors }, { status: 403, key: 'OTHERKEY', fails });
}

const UNKNOWN = { errors: ['Package SHELF-1 not found'] };
const MISSING = { status: 404, fails: { code: 'NOT_FOUND', message: /package SHELF-1/ } };

export const PACKAGES = [
  row('1-3, 4.5-4, 9-4: a package is created with all fields', MADE, { ...SHELF, created_on: TIME, updated_on: TIME }),
  row('4.5-4: a package without a SKU gets one, and null for what is omitted', [['POST /v4/packages', { name: 'a' }]], {
    sku: like('P-7', /./),
    name: 'a',
    description: null,
    list_price: null,
    online_license: null,
    tags: [],
  }),
  row('4.5-6, 4.5-10: a package is read', [...MADE, GET], SHELF, {
    makes: { ...SHELF, list_price: '49.5', library_id: '7' },
  }),
  row('4.5-5: an update appends products once each, and replaces other fields', [...MADE, put(CHANGE)], {
    ...SHELF,
    ...CHANGE,
    products: ['L-1', 'L-2', 'L-3'],
  }),
  row(
    '4.5-5, 7-3: a SKU cannot be changed',
    [...MADE, put({ sku: 'OTHER' })],
    { errors: ['sku: cannot be changed'] },
    { status: 422 },
  ),
  row('4.5-7, 4.5-11: a package is deleted', [...MADE, DELETE], SHELF, { makes: SHELF }),
  row('4.5-7: a SKU is free again', [...MADE, DELETE, POST], SHELF),
  ...[GET, put({ name: 'x' }), DELETE].map((ask) =>
    row(
      `4.5-5..7: ${ask[0]} is answered with 404 if the package was deleted`,
      [...MADE, DELETE, ask],
      UNKNOWN,
      MISSING,
    ),
  ),
  row(
    '4.5-11: the books of a deleted package stay',
    [...MADE, DELETE, ['GET /v4/products/L-1']],
    { vbid: 'L-1' },
    { makes: { vbid: 'L-1' } },
  ),
  row(
    '4.5-7: books are taken out of a package',
    [...MADE, without('L-2', 'L-3')],
    { removed_count: 1 },
    { makes: { removed_count: 1 } },
  ),
  row(
    '4.5-7: books are taken out once',
    [...MADE, without('L-2'), without('L-2')],
    { removed_count: 0 },
    { makes: { removed_count: 0 } },
  ),
  row('4.5-7: a package has the other books then', [...MADE, without('L-2'), GET], { products: ['L-1'] }),
  foreign('a read', GET),
  foreign('an update', put({ name: 'mine' })),
  foreign('a deletion', DELETE),
  invalid({}, 'name'),
  invalid([], 'body'),
  invalid(SHELF, 'sku'),
  invalid({ ...SHELF, sku: 'L-3' }, 'sku'),
  invalid({ ...OTHER, products: ['L-1', 'none', '9780000000019'] }, 'products/1', 'products/2'),
  invalid({ ...OTHER, list_price: 'a lot', tags: 'science' }, 'list_price', 'tags'),
  invalid({ ...OTHER, download_license: { expiration_date: 'soon' } }, 'download_license/expiration_date'),
  invalid({ ...OTHER, download_license: { type: 'forever' } }, 'download_license/type'),
];
