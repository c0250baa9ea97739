import { type Ask, like, type Row, TIME } from './row.ts';

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
  download_license: { type: 'numdays' as const, num_days: 180 },
  online_license: { type: 'perpetual' as const },
};

const BOOK = { imprint_id: 3, title: 'Tides' };
const BOOKS: readonly Ask[] = ['L-1', 'L-2', 'L-3'].map((vbid): Ask => [`PUT /v4/assets/${vbid}`, BOOK]);
const MADE: readonly Ask[] = [...BOOKS, ['POST /v4/packages', SHELF]];
const GET = 'GET /v4/packages/SHELF-1';
const CHANGE = { name: 'Second year', products: ['L-3', 'L-1'], tags: [], online_license: null };
const NOT_OWNER = { errors: ['The API key does not own this package'] };
const FORBIDDEN = { code: 'SERVICE_FORBIDDEN', status: 403, hint: /permission/ };

/** A request that the sandbox rejects, naming these members; the interface does not show the shape. */
function invalid(body: object, ...members: readonly string[]): Row {
  return {
    rules: '1-3, 4.5-10',
    says: `a package is rejected with 422 for its ${members.join(' and ')}: ${JSON.stringify(body).slice(0, 60)}`,
    given: MADE,
    asks: ['POST /v4/packages', body],
    status: 422,
    reply: { errors: members.map((member) => like(`${member}: no`, new RegExp(`^${member}: `))) },
  };
}

const OTHER = { ...SHELF, sku: 'SHELF-2' };

export const PACKAGES: readonly Row[] = [
  {
    rules: '1-3, 4.5-4, 9-4',
    says: 'a package is created with all fields',
    given: BOOKS,
    asks: ['POST /v4/packages', SHELF],
    reply: { ...SHELF, created_on: TIME, updated_on: TIME },
    call: ({ packages }) => packages.create(SHELF),
    makes: { ...SHELF, list_price: '49.5', library_id: '7' },
  },
  {
    rules: '4.5-4',
    says: 'a package without a SKU gets one, and null for what is omitted',
    asks: ['POST /v4/packages', { name: 'a' }],
    reply: { sku: like('P-7', /./), name: 'a', description: null, list_price: null, online_license: null, tags: [] },
    call: ({ packages }) => packages.create({ name: 'a' }),
    makes: { sku: 'P-7', name: 'a' },
  },
  {
    rules: '4.5-6, 4.5-10',
    says: 'a package is read',
    given: MADE,
    asks: [GET],
    reply: { ...SHELF, created_on: TIME },
    call: ({ packages }) => packages.read('SHELF-1'),
    makes: { sku: 'SHELF-1', products: ['L-1', 'L-2'], download_license: { type: 'numdays', num_days: 180 } },
  },
  {
    rules: '4.5-5',
    says: 'an update appends products once each, and replaces other fields',
    given: MADE,
    asks: ['PUT /v4/packages/SHELF-1', CHANGE],
    reply: { ...SHELF, ...CHANGE, products: ['L-1', 'L-2', 'L-3'] },
    call: ({ packages }) => packages.update('SHELF-1', CHANGE, { unchecked: true }),
    makes: { name: 'Second year', products: ['L-1', 'L-2', 'L-3'] },
  },
  {
    rules: '4.5-5, 7-3',
    says: 'a SKU cannot be changed',
    given: MADE,
    asks: ['PUT /v4/packages/SHELF-1', { sku: 'OTHER' }],
    status: 422,
    reply: { errors: ['sku: cannot be changed'] },
    call: ({ packages }) => packages.update('SHELF-1', { sku: 'OTHER' }),
    fails: { code: 'SERVICE_INVALID', message: /sku: cannot be changed/ },
  },
  {
    rules: '4.5-7, 4.5-11',
    says: 'a package is deleted',
    given: MADE,
    asks: ['DELETE /v4/packages/SHELF-1/assets'],
    reply: SHELF,
    call: ({ packages }) => packages.delete('SHELF-1'),
    makes: SHELF,
  },
  {
    rules: '4.5-7',
    says: 'a deleted package is unknown',
    given: [...MADE, ['DELETE /v4/packages/SHELF-1/assets']],
    asks: [GET],
    status: 404,
    reply: { errors: ['Package SHELF-1 not found'] },
    call: ({ packages }) => packages.read('SHELF-1'),
    fails: { code: 'NOT_FOUND', status: 404, message: /package SHELF-1/ },
  },
  {
    rules: '4.5-11',
    says: 'the books of a deleted package stay',
    given: [...MADE, ['DELETE /v4/packages/SHELF-1/assets']],
    asks: ['GET /v4/products/L-1'],
    reply: { vbid: 'L-1' },
    call: ({ catalog }) => catalog.product('L-1'),
    makes: { vbid: 'L-1' },
  },
  {
    rules: '4.5-7',
    says: 'the books that a delete lists are taken out of the package',
    given: MADE,
    asks: ['DELETE /v4/packages/SHELF-1/assets', { products: ['L-2', 'L-3'] }],
    reply: { removed_count: 1 },
    call: ({ packages }) => packages.delete('SHELF-1', { fields: { products: ['L-2', 'L-3'] } }),
    makes: { removed_count: 1 },
  },
  {
    rules: '4.5-6, 7-2',
    says: 'a read of a package of another key is answered with 403',
    given: MADE,
    asks: [GET],
    key: 'OTHERKEY',
    status: 403,
    reply: NOT_OWNER,
    call: ({ packages }) => packages.read('SHELF-1'),
    fails: FORBIDDEN,
  },
  {
    rules: '4.5-5, 7-2',
    says: 'an update of a package of another key is answered with 403',
    given: MADE,
    asks: ['PUT /v4/packages/SHELF-1', { name: 'mine' }],
    key: 'OTHERKEY',
    status: 403,
    reply: NOT_OWNER,
    call: ({ packages }) => packages.update('SHELF-1', { name: 'mine' }),
    fails: FORBIDDEN,
  },
  {
    rules: '4.5-7, 7-2',
    says: 'a deletion of a package of another key is answered with 403',
    given: MADE,
    asks: ['DELETE /v4/packages/SHELF-1/assets'],
    key: 'OTHERKEY',
    status: 403,
    reply: NOT_OWNER,
    call: ({ packages }) => packages.delete('SHELF-1'),
    fails: FORBIDDEN,
  },
  invalid({}, 'name'),
  invalid([], 'body'),
  invalid(SHELF, 'sku'),
  invalid({ ...SHELF, sku: 'L-3' }, 'sku'),
  invalid({ ...OTHER, products: ['L-1', 'none', '9780000000019'] }, 'products/1', 'products/2'),
  invalid({ ...OTHER, list_price: 'a lot', tags: 'science' }, 'list_price', 'tags'),
  invalid({ ...OTHER, download_license: { expiration_date: 'soon' } }, 'download_license/expiration_date'),
  invalid({ ...OTHER, download_license: { type: 'forever' } }, 'download_license/type'),
];
