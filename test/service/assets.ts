import { type Ask, like, NUMBER, type Row, TIME } from './row.ts';

/* Assets (2.1, 2.2, 4.1) and books (4.5). */

export const NEW = { imprint_id: 3, title: 'Tides' };
const PRICE = { currency: 'USD', type: 'digital_list_price', amount: '30.50', tax_inclusive: false };
const RENTAL = { currency: 'USD', type: 'digital_rental_price', amount: 12.25, duration: 180 };
const CHANNEL = { sku: 'L-1R180', channel_id_inclusive_access: 'ia-77' };

/** Fields that the reply repeats. */
const ECHOED = {
  author_name: 'M. O.',
  author_first_name: 'Mei',
  author_last_name: 'Okonkwo',
  copy_drm_limit: 2,
  print_drm_limit: -1,
  copyright_date: '2015',
  description: 'About tides.',
  e_isbn: '978-0-306-40615-7',
  edition: 127,
  fro: true,
  fulfillment_only: true,
  language: 'en',
  login_url: 'https://login.example.org/',
  off_sale_date: null,
  on_sale_date: '2016-01-01',
  print_isbn: '0306406152',
  publication_date: '2015-12-31',
  related_products: { next_edition: '9780306406157', previous_edition: '9791090636071' },
  sales_rights: { exclusive_rights: ['US', 'CA'], non_exclusive_rights: ['ROW'], not_for_sale: null },
  sampleable: true,
  subtitle: 'A Global Perspective',
  title: 'Tides',
};

const EVERY_FIELD = {
  ...ECHOED,
  cs_plus_discount_code: 'CS20',
  identifiers: { vbid13_alias: ['9780198526636'] },
  imprint_id: 3,
  kind: 'book',
  parent_isbn: '0-306-40615-2',
  prices: [PRICE, { ...PRICE, currency: 'EUR', amount: 29 }, RENTAL],
  variants: [{ channel_ids: [CHANNEL] }],
};

const VARIANT = { product_id: NUMBER, updated: TIME };

/** Every field of section 2.2. */
const ANSWER = {
  ...ECHOED,
  vbid: 'L-1',
  id: NUMBER,
  isbn: '978-0-306-40615-7',
  isbn_canonical: '9780306406157',
  parent_id: '0-306-40615-2',
  created: TIME,
  block_search: false,
  custom: false,
  epub_page_labels: false,
  floe: false,
  vcs_authored: false,
  asset_status: { vbk: 'none', distribution: 'distributed' },
  book_format: { name: null, value: null, dash2epub: false },
  build: { available: false, source: 'sandbox', status: 'none' },
  cs_plus_discount: '20',
  discount_codes: [],
  identifiers: { vbid13_alias: ['9780198526636'], vbid10_alias: ['0198526636'], print_isbn_13: ['9780306406157'] },
  imprint: { id: 3, name: like('Quill', /./), resource_url: like('https://a.example/imprints/3', /^https:.*3$/) },
  kind: { id: NUMBER, value: 'book' },
  lifetime_print_limit: 100,
  publisher: { id: NUMBER, name: like('Quill', /./), city: like('Springfield', /./) },
  variants: [
    {
      ...VARIANT,
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
      ...VARIANT,
      sku: 'L-1R180',
      duration: '180',
      online_duration: '180',
      channel_ids: [{ channel: 'inclusive_access', identifier: 'ia-77' }],
      prices: [{ price: 12.25, currency: 'USD', type: 'digital_rental_price', company_id: '_all' }],
    },
  ],
};

/** What the client returns for it: amounts are decimals as texts, and null is undefined. */
const READ = {
  vbid: 'L-1',
  id: 71,
  isbn: '978-0-306-40615-7',
  isbn_canonical: '9780306406157',
  parent_id: '0-306-40615-2',
  created: TIME.value,
  author_name: 'M. O.',
  block_search: false,
  asset_status: { vbk: 'none', distribution: 'distributed' },
  book_format: { dash2epub: false },
  build: { available: false, source: 'sandbox', status: 'none' },
  copy_drm_limit: 2,
  print_drm_limit: -1,
  copyright_date: '2015',
  cs_plus_discount: '20',
  discount_codes: [],
  edition: 127,
  fro: true,
  identifiers: { vbid13_alias: ['9780198526636'], vbid10_alias: ['0198526636'], print_isbn_13: ['9780306406157'] },
  imprint: { id: 3, name: 'Quill', resource_url: 'https://a.example/imprints/3' },
  kind: { id: 71, value: 'book' },
  language: 'en',
  lifetime_print_limit: 100,
  publisher: { id: 71, name: 'Quill', city: 'Springfield' },
  related_products: ECHOED.related_products,
  sales_rights: { exclusive_rights: ['US', 'CA'], non_exclusive_rights: ['ROW'] },
  subtitle: 'A Global Perspective',
  variants: [
    {
      product_id: 71,
      sku: 'L-1',
      duration: 'perpetual',
      prices: [{ price: '30.5' }, { price: '29', currency: 'EUR' }],
    },
    {
      sku: 'L-1R180',
      duration: '180',
      online_duration: '180',
      channel_ids: [{ channel: 'inclusive_access', identifier: 'ia-77' }],
      updated: TIME.value,
      prices: [{ price: '12.25', currency: 'USD', type: 'digital_rental_price', company_id: '_all' }],
    },
  ],
};

const L1 = 'PUT /v4/assets/L-1';
const CREATED: Ask = [L1, NEW];
const INTERNAL = {
  asset_status: { vbk: 'done' },
  block_search: true,
  custom: true,
  discount_codes: ['X'],
  epub_page_labels: true,
  floe: true,
  vcs_authored: true,
};

const NOT_OWNER = { errors: ['The caller is not the content owner of L-1'] };
const FORBIDDEN = {
  code: 'SERVICE_FORBIDDEN',
  status: 403,
  exitCode: 1,
  retryable: false,
  message: /L-1.*not the content owner/,
  hint: /^Check apiKey\. Content owners only/,
};
const NO_BOOK = { code: 'NOT_FOUND', status: 404, exitCode: 1, message: /book none.*Book not found/ };

const E = { ten: '0306406152', thirteen: '9780306406157' };
const OTHER = { ten: '0198526636', thirteen: '9780198526636' };
const TWO = { e_isbn_10: [E.ten], e_isbn_13: [OTHER.thirteen, '9791090636071'] };

/** An update of `identifiers`, after another one. */
function patch(rules: string, says: string, before: object | null, sent: object | null, identifiers: object): Row {
  return {
    rules,
    says,
    given: before === null ? [CREATED] : [CREATED, [L1, { identifiers: before }]],
    asks: [L1, { identifiers: sent }],
    reply: { vbid: 'L-1', identifiers },
    call: ({ assets }) => assets.update('L-1', { identifiers: sent }),
    makes: { identifiers },
  };
}

export const ASSETS: readonly Row[] = [
  {
    rules:
      '2.1-3..5, 2.1-7..9, 2.1-11, 2.1-13..15, 2.1-18..24, 2.1-26..36, 2.1.2-1..6, 2.1.3-1..3, 2.2-1..27, 4.1-2, 4.1-4..7, 4.1-9, 9-1, 9-4',
    says: 'every field of the request comes back, in the form of the answer',
    asks: [L1, EVERY_FIELD],
    reply: ANSWER,
    call: ({ assets }) => assets.put('L-1', EVERY_FIELD, { create: true }),
    makes: READ,
  },
  {
    rules: '1-1, 1-4, 4.1-3',
    says: 'the service assigns an EAN if there is no vbid',
    asks: ['PUT /v4/assets', NEW],
    reply: { vbid: like('9781402894626', /^978\d{10}$/), title: 'Tides' },
    call: ({ assets }) => assets.create(NEW),
    makes: { vbid: '9781402894626' },
  },
  {
    rules: '2.1-21, 2.1-33, 4.1-9',
    says: 'an update needs neither imprint_id nor title',
    given: [CREATED],
    asks: [L1, { subtitle: 'x' }],
    reply: { vbid: 'L-1', title: 'Tides', subtitle: 'x', imprint: { id: 3 } },
    call: ({ assets }) => assets.update('L-1', { subtitle: 'x' }),
    makes: { title: 'Tides', subtitle: 'x' },
  },
  {
    rules: '2.1-21, 2.1-33, 4.1-9, 7-3',
    says: 'a creation without imprint_id and title is rejected with 422, which names both',
    asks: [L1, { subtitle: 'x' }],
    status: 422,
    reply: { errors: ['imprint_id: is required to create an asset', 'title: is required to create an asset'] },
    call: ({ assets }) => assets.update('L-1', { subtitle: 'x' }),
    fails: { code: 'SERVICE_INVALID', exitCode: 1, message: /imprint_id: is required.*title: is required/ },
  },
  {
    rules: '2.1-30, 2.1.2-1..3, 4.1-6, 7-3',
    says: 'a 422 has a message for each field that is invalid',
    given: [CREATED],
    asks: [L1, { edition: 'x', related_products: { next_edition: '1' }, prices: [{ amount: 'free' }] }],
    status: 422,
    reply: {
      errors: [
        'edition: must be 0 to 127',
        'related_products/next_edition: must be an ISBN with the right check digit',
        'prices/0/currency: must be an ISO 4217 code',
        like('prices/0/type: must be a text', /^prices\/0\/type: /),
        'prices/0/amount: must be a decimal number',
      ],
    },
    call: ({ assets }) =>
      assets.update(
        'L-1',
        { edition: 'x', related_products: { next_edition: '1' }, prices: [{ amount: 'free' }] },
        { unchecked: true },
      ),
    fails: {
      code: 'SERVICE_INVALID',
      status: 422,
      retryable: false,
      message: /edition: .*\/amount: must be a decimal/,
    },
  },
  {
    rules: '4.1-8, 4.1-11, 5-5, 7-2',
    says: 'a key that does not own the asset is rejected with 403',
    given: [CREATED],
    asks: [L1, { title: 'Mine' }],
    key: 'OTHERKEY',
    status: 403,
    reply: NOT_OWNER,
    call: ({ assets }) => assets.update('L-1', { title: 'Mine' }),
    fails: FORBIDDEN,
  },
  {
    rules: '2.1-1..2, 2.1-6, 2.1-10, 2.1-12, 2.1-16..17, 2.1-37, 2.2-8, 2.2-12, 2.2-15, 3-1, 8-6',
    says: 'internal fields have no effect, and come back as the service sets them',
    asks: [L1, { ...NEW, ...INTERNAL }],
    reply: {
      vbid: 'L-1',
      ...Object.fromEntries(Object.keys(INTERNAL).map((name) => [name, false])),
      asset_status: { vbk: 'none' },
      discount_codes: [],
      lifetime_print_limit: 100,
    },
    call: ({ assets }) => assets.put('L-1', { ...NEW, ...INTERNAL }, { create: true, allowInternal: true }),
    makes: { block_search: false, custom: false, floe: false, asset_status: { vbk: 'none' }, discount_codes: [] },
  },
  {
    rules: '2.1-3, 2.2-7',
    says: 'author_name is made of the two names if it is omitted',
    asks: [L1, { ...NEW, author_first_name: 'Mei', author_last_name: 'Okonkwo' }],
    reply: { vbid: 'L-1', author_name: 'Mei Okonkwo' },
    call: ({ assets }) => assets.put('L-1', { ...NEW, author_first_name: 'Mei', author_last_name: 'Okonkwo' }),
    makes: { author_name: 'Mei Okonkwo' },
  },
  ...[
    ['L-1', { e_isbn: '0-306-40615-2' }, '0-306-40615-2', '0306406152'] as const,
    ['978-0-19-852663-6', {}, '978-0-19-852663-6', '9780198526636'] as const,
  ].map(
    ([vbid, more, isbn, canonical]): Row => ({
      rules: '2.2-3..4',
      says: `isbn_canonical of ${vbid} is the ISBN without dashes`,
      asks: [`PUT /v4/assets/${vbid}`, { ...NEW, ...more }],
      reply: { vbid, isbn, isbn_canonical: canonical },
      call: ({ assets }) => assets.put(vbid, { ...NEW, ...more }),
      makes: { vbid, isbn, isbn_canonical: canonical },
    }),
  ),
  patch(
    '2.1.1-2',
    'identifiers are added to those that the asset has',
    { e_isbn_13: [E.thirteen] },
    { e_isbn_13: [OTHER.thirteen, E.thirteen] },
    { e_isbn_13: [E.thirteen, OTHER.thirteen], print_isbn_13: [] },
  ),
  ...[
    ['e_isbn_13', 'e_isbn_10'],
    ['print_isbn_13', 'print_isbn_10'],
    ['vbid13_alias', 'vbid10_alias'],
  ].flatMap(([long = '', short = '']) => {
    const both = { [long]: [E.thirteen], [short]: [E.ten] };
    return [
      patch('2.1.1-1, 2.1.1-3', `${short} is derived`, null, { [long]: ['978-0-306-40615-7'] }, both),
      patch('2.1.1-1, 2.1.1-3', `${long} is derived`, null, { [short]: [E.ten] }, both),
    ];
  }),
  patch(
    '2.1.1-3',
    'an ISBN with prefix 979 has no form of ten digits',
    null,
    { e_isbn_13: ['9791090636071'] },
    { e_isbn_13: ['9791090636071'], e_isbn_10: [] },
  ),
  patch(
    '2.1.1-4',
    'an empty array changes nothing',
    { e_isbn_13: [E.thirteen] },
    { e_isbn_13: [], e_isbn_10: [] },
    { e_isbn_13: [E.thirteen], e_isbn_10: [E.ten] },
  ),
  patch(
    '2.1.1-5',
    'null clears a list, which is derived from the other length',
    TWO,
    { e_isbn_13: null },
    { e_isbn_13: [E.thirteen, OTHER.thirteen], e_isbn_10: [E.ten, OTHER.ten] },
  ),
  patch('2.1.1-5', 'null for all clears all', TWO, null, { e_isbn_13: [], e_isbn_10: [] }),
  {
    rules: '4.5-1, 9-2',
    says: 'a book is created, and its identifier returned',
    asks: ['POST /vital_books', NEW],
    reply: { vbid: like('9781402894626', /^978\d{10}$/), title: 'Tides' },
    call: ({ books }) => books.create(NEW),
    makes: { vbid: '9781402894626', title: 'Tides' },
  },
  {
    rules: '4.5-2, 9-2',
    says: 'a book is updated',
    given: [CREATED],
    asks: ['PUT /vital_books/L-1', { edition: 2 }],
    reply: { vbid: 'L-1', title: 'Tides', edition: 2 },
    call: ({ books }) => books.update('L-1', { edition: 2 }),
    makes: { vbid: 'L-1', edition: 2 },
  },
  {
    rules: '4.5-3, 9-2',
    says: 'a book is read',
    given: [CREATED],
    asks: ['GET /vital_books/L-1'],
    reply: { vbid: 'L-1', title: 'Tides', kind: { value: 'book' } },
    call: ({ books }) => books.read('L-1'),
    makes: { vbid: 'L-1', title: 'Tides', kind: { value: 'book' } },
  },
  {
    rules: '4.5-3',
    says: 'a read of a book that does not exist is answered with 404',
    asks: ['GET /vital_books/none'],
    status: 404,
    reply: { errors: ['Book not found'] },
    call: ({ books }) => books.read('none'),
    fails: NO_BOOK,
  },
  {
    rules: '4.5-2',
    says: 'an update of a book that does not exist is answered with 404',
    asks: ['PUT /vital_books/none', NEW],
    status: 404,
    reply: { errors: ['Book not found'] },
    call: ({ books }) => books.update('none', NEW),
    fails: NO_BOOK,
  },
  {
    rules: '4.5-2, 7-2',
    says: 'an update of a book of another key is answered with 403',
    given: [CREATED],
    asks: ['PUT /vital_books/L-1', { edition: 3 }],
    key: 'OTHERKEY',
    status: 403,
    reply: NOT_OWNER,
    call: ({ books }) => books.update('L-1', { edition: 3 }),
    fails: FORBIDDEN,
  },
];
