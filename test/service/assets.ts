import { type Ask, like, NUMBER, type Row, row, TIME, withSamples } from './row.ts';

/* Assets (2.1, 2.2, 4.1) and books (4.5). */

export const NEW = { imprint_id: 3, title: 'Tides' };
const L1 = 'PUT /v4/assets/L-1';
const CREATED: Ask = [L1, NEW];

/** Fields that the answer repeats. */
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
  off_sale_date: '2099-01-01',
  on_sale_date: '2016-01-01',
  print_isbn: '0306406152',
  publication_date: '2015-12-31',
  related_products: { next_edition: '9780306406157', previous_edition: '9791090636071' },
  sales_rights: { exclusive_rights: ['US', 'CA'], non_exclusive_rights: ['ROW'], not_for_sale: ['DE'] },
  sampleable: true,
  subtitle: 'A Global Perspective',
  title: 'Tides',
};

const PRICE = { currency: 'USD', type: 'digital_list_price', amount: '30.50', tax_inclusive: false };
const RENTAL = { currency: 'USD', type: 'digital_rental_price', amount: 12.25, duration: 180 };

const EVERY_FIELD = {
  ...ECHOED,
  cs_plus_discount_code: 'CS20',
  identifiers: { vbid13_alias: ['9780198526636'] },
  imprint_id: 3,
  kind: 'book',
  parent_isbn: '0-306-40615-2',
  prices: [PRICE, { ...PRICE, currency: 'EUR', amount: 29 }, RENTAL],
  variants: [{ channel_ids: [{ sku: 'L-1R180', channel_id_inclusive_access: 'ia-77' }] }],
};

const NOT_SET = { block_search: false, custom: false, epub_page_labels: false, floe: false, vcs_authored: false };

/** The answer, whose variants have prices with these amounts. */
const answerWith = (...amounts: readonly unknown[]) => ({
  ...ECHOED,
  vbid: 'L-1',
  id: NUMBER,
  isbn: '978-0-306-40615-7',
  isbn_canonical: '9780306406157',
  parent_id: '0-306-40615-2',
  created: TIME,
  ...NOT_SET,
  asset_status: { vbk: 'processing', distribution: 'distributed' },
  book_format: { name: 'ePub', value: 'epub', dash2epub: false },
  build: { available: false, source: 'sandbox', status: 'processing' },
  cs_plus_discount: '20',
  discount_codes: [],
  identifiers: { vbid13_alias: ['9780198526636'], vbid10_alias: ['0198526636'], print_isbn_13: ['9780306406157'] },
  imprint: { id: 3, name: like('Quill', /./), resource_url: like('https://a.example/imprints/3', /^https:.*3$/) },
  kind: { id: NUMBER, value: 'book' },
  lifetime_print_limit: 100,
  publisher: { id: NUMBER, name: like('Quill', /./), city: like('Springfield', /./) },
  variants: [
    {
      product_id: NUMBER,
      sku: 'L-1',
      duration: 'perpetual',
      online_duration: 'perpetual',
      channel_ids: [],
      updated: TIME,
      prices: [
        { price: amounts[0], currency: 'USD', type: 'digital_list_price', company_id: '_all' },
        { price: amounts[1], currency: 'EUR', type: 'digital_list_price', company_id: '_all' },
      ],
    },
    {
      product_id: NUMBER,
      sku: 'L-1R180',
      duration: '180',
      online_duration: '180',
      updated: TIME,
      channel_ids: [{ channel: 'inclusive_access', identifier: 'ia-77' }],
      prices: [{ price: amounts[2], currency: 'USD', type: 'digital_rental_price', company_id: '_all' }],
    },
  ],
});

const INTERNAL = {
  block_search: true,
  custom: true,
  epub_page_labels: true,
  floe: true,
  vcs_authored: true,
  asset_status: { vbk: 'done' },
  discount_codes: ['X'],
};
const SET_BY_SERVICE = {
  ...NOT_SET,
  asset_status: { vbk: 'none' },
  discount_codes: [],
};

const MANY_WRONG = { edition: 'x', related_products: { next_edition: '1' }, prices: [{ amount: 'free' }] };
const EAN = like('9781402894626', /^978\d{10}$/);

const FOREIGN = {
  status: 403,
  key: 'OTHERKEY',
  fails: { code: 'SERVICE_FORBIDDEN', hint: /^Check apiKey\. Content owners/ },
};
const NOT_OWNER = { errors: ['The caller is not the content owner of L-1'] };
const NO_BOOK = { status: 404, fails: { code: 'NOT_FOUND', exitCode: 1, message: /book none/ } };

const E = { ten: '0306406152', thirteen: '9780306406157' };
const OTHER = { ten: '0198526636', thirteen: '9780198526636' };
const TWO = { e_isbn_10: [E.ten], e_isbn_13: [OTHER.thirteen, '9791090636071'] };

/** An update of the identifiers, after another one. */
function patch(title: string, before: object, identifiers: object | null, after: object): Row {
  const asks: readonly Ask[] = [CREATED, [L1, { identifiers: before }], [L1, { identifiers }]];
  return row(title, asks, { vbid: 'L-1', identifiers: after }, { makes: { identifiers: after } });
}

/** A new asset with more fields, and members of the answer. */
function created(title: string, more: object, answer: object, vbid = 'L-1'): Row {
  return row(title, [[`PUT /v4/assets/${vbid}`, { ...NEW, ...more }]], { vbid, ...answer }, { makes: answer });
}

const PAIRS = [
  ['e_isbn_13', 'e_isbn_10'],
  ['print_isbn_13', 'print_isbn_10'],
  ['vbid13_alias', 'vbid10_alias'],
] as const;

export const ASSETS: readonly Row[] = [
  row(
    '1-2, 2.1-3..5, 2.1-7..9, 2.1-11, 2.1-13..15, 2.1-18..36, 2.1-39, 2.1.2-1..6, 2.1.3-1..3, 2.2-1..27, 4.1-2, 4.1-4..7, 4.1-9..10, 9-1, 9-4: every field comes back, in the form of the answer',
    [[L1, { ...EVERY_FIELD, url: 'https://files.example.org/tides.epub' }]],
    answerWith(30.5, 29, 12.25),
    { makes: withSamples(answerWith('30.5', '29', '12.25'), ({ value }) => value) },
  ),
  row(
    '1-1, 1-4, 4.1-3: the service assigns an EAN',
    [['PUT /v4/assets', NEW]],
    { vbid: EAN, title: 'Tides' },
    { makes: { vbid: EAN.value } },
  ),
  row('2.1-21, 2.1-33, 4.1-9: an update needs neither imprint_id nor title', [CREATED, [L1, { subtitle: 'x' }]], {
    vbid: 'L-1',
    title: 'Tides',
    subtitle: 'x',
    imprint: { id: 3 },
  }),
  row(
    '2.1-21, 2.1-33, 4.1-9, 7-3: a creation needs imprint_id and title',
    [[L1, { subtitle: 'x' }]],
    { errors: ['imprint_id: is required to create an asset', 'title: is required to create an asset'] },
    { status: 422 },
  ),
  row(
    '2.1-30, 2.1.2-1..3, 4.1-6, 7-3: a 422 has a message for each invalid field',
    [CREATED, [L1, MANY_WRONG]],
    {
      errors: [
        'edition: must be 0 to 127',
        'related_products/next_edition: must be an ISBN with the right check digit',
        'prices/0/currency: must be an ISO 4217 code',
        like('prices/0/type: must', /^prices\/0\/type: /),
        'prices/0/amount: must be a decimal number',
      ],
    },
    { status: 422 },
  ),
  row(
    '4.1-8, 4.1-11, 5-5, 7-2: a key that does not own the asset',
    [CREATED, [L1, { title: 'M' }]],
    NOT_OWNER,
    FOREIGN,
  ),
  created(
    '2.1-1..2, 2.1-6, 2.1-10, 2.1-12, 2.1-16..17, 2.1-37, 2.2-8, 2.2-12, 2.2-15, 3-1, 8-6: internal fields have no effect',
    INTERNAL,
    { ...SET_BY_SERVICE, lifetime_print_limit: 100 },
  ),
  created(
    '2.1-3, 2.2-7: author_name is made of the two names if it is omitted',
    { author_first_name: 'Mei', author_last_name: 'Okonkwo' },
    { author_name: 'Mei Okonkwo' },
  ),
  created(
    '2.2-3..4: an ISBN may have dashes',
    { e_isbn: '0-306-40615-2' },
    { isbn: '0-306-40615-2', isbn_canonical: '0306406152' },
  ),
  created('2.2-3..4: a vbid may be the ISBN', {}, { isbn_canonical: OTHER.thirteen }, '978-0-19-852663-6'),
  patch(
    '2.1.1-2: identifiers are added to those that the asset has',
    { e_isbn_13: [E.thirteen] },
    { e_isbn_13: [OTHER.thirteen, E.thirteen] },
    { e_isbn_13: [E.thirteen, OTHER.thirteen], print_isbn_13: [] },
  ),
  ...PAIRS.flatMap(([long, short]) => {
    const both = { identifiers: { [long]: [E.thirteen], [short]: [E.ten] } };
    return [
      created(`2.1.1-1, 2.1.1-3: ${short} is derived`, { identifiers: { [long]: ['978-0-306-40615-7'] } }, both),
      created(`2.1.1-1, 2.1.1-3: ${long} is derived`, { identifiers: { [short]: [E.ten] } }, both),
    ];
  }),
  created(
    '2.1.1-3: an ISBN with prefix 979 has no form of ten digits',
    { identifiers: { e_isbn_13: ['9791090636071'] } },
    { identifiers: { e_isbn_13: ['9791090636071'], e_isbn_10: [] } },
  ),
  patch(
    '2.1.1-4: an empty array changes nothing',
    { e_isbn_13: [E.thirteen] },
    { e_isbn_13: [], e_isbn_10: [] },
    { e_isbn_13: [E.thirteen], e_isbn_10: [E.ten] },
  ),
  patch(
    '2.1.1-5: null clears a list, which is derived from the other length',
    TWO,
    { e_isbn_13: null },
    { e_isbn_13: [E.thirteen, OTHER.thirteen], e_isbn_10: [E.ten, OTHER.ten] },
  ),
  patch(
    '2.1.1-4..5: an empty array does not keep a list from being derived',
    TWO,
    { e_isbn_13: null, e_isbn_10: [] },
    { e_isbn_10: [E.ten, OTHER.ten] },
  ),
  patch('2.1.1-5: null clears all', TWO, null, { e_isbn_13: [], e_isbn_10: [] }),
  row('4.5-1, 9-2: a book is created', [['POST /vital_books', NEW]], { vbid: EAN, title: 'Tides' }),
  row('4.5-2, 9-2: a book is updated', [CREATED, ['PUT /vital_books/L-1', { edition: 2 }]], {
    vbid: 'L-1',
    edition: 2,
  }),
  row(
    '4.5-3, 9-2: a book is read',
    [CREATED, ['GET /vital_books/L-1']],
    { vbid: 'L-1', title: 'Tides' },
    { makes: { vbid: 'L-1', title: 'Tides' } },
  ),
  row('4.5-3: an unknown book is not read', [['GET /vital_books/none']], { errors: ['Book not found'] }, NO_BOOK),
  row(
    '4.5-2: an unknown book is not updated',
    [['PUT /vital_books/none', NEW]],
    { errors: ['Book not found'] },
    NO_BOOK,
  ),
  row('4.5-2, 7-2: a book of another key', [CREATED, ['PUT /vital_books/L-1', { edition: 3 }]], NOT_OWNER, FOREIGN),
];
