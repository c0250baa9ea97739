/* The request fields of an asset (2.1), with the values that the interface allows and does not allow. */

export interface Field {
  readonly rules: string;
  /** Fields of the same form. */
  readonly names: string;
  /** What the error of the client says that the field must be. */
  readonly must: string;
  readonly taken: readonly unknown[];
  /** The client does not send these, and the service answers 422. */
  readonly refused: readonly unknown[];
  /** Values that only the service judges. */
  readonly byService?: readonly unknown[];
  /** Values that only the client refuses: the interface does not show them. */
  readonly byClient?: readonly unknown[];
  /** A number that may be in quotes, which the answer does not have. */
  readonly isNumber?: true;
  /** The answer has it in another form. */
  readonly isElsewhere?: true;
}

type More = Pick<Field, 'byService' | 'byClient' | 'isNumber' | 'isElsewhere'>;
type Values = readonly unknown[];
const field = (rules: string, names: string, must: string, taken: Values, refused: Values, more: More = {}): Field => {
  return { rules, names, must, taken, refused, ...more };
};

const PRICE = { currency: 'USD', type: 'digital_list_price', amount: '19.90' };
const RENTAL = { ...PRICE, type: 'digital_rental_price' };
const prices = (...all: readonly object[]): Values => all.map((more) => [PRICE, { ...PRICE, ...more }]);
const eachOf = (name: string, ...values: Values) => values.map((value) => ({ [name]: value }));
const channel = (...ids: Values) => [{ channel_ids: ids }];
const ID = { sku: 'L-1', channel_id_inclusive_access: 'ia-1' };
const ISBN = '9781402894626';
const KEYS = ['e_isbn_10', 'e_isbn_13', 'print_isbn_10', 'print_isbn_13', 'vbid10_alias', 'vbid13_alias'];

const DRM: Values = [-2, 0, 1, '0', '1', 2.5, 'many', '', true, null, [2]];
const NO_YEARS = ['15', '20155', '2015-01-01', ' 2015', '٢٠١٥', 2015];
const NO_DATES = ['2023-02-29', '2026-13-01', '2026-04-31', '01/02/2026', '2026-1-2', 'tomorrow', 20260101];
const NO_TEXTS: Values = [5, true, {}, ['a'], null];
const NO_URLS = ['file:///a', 'ftp://user:secret@files.example', 'a.epub', 'javascript:alert(1)', 'mailto:a', 5];
const URLS = ['https://files.example/a.epub', 'http://a.example', 'HTTPS://a.example/ä'];
const WRONG_ISBNS = ['9780306406158', 'tides'];

export const FIELDS: readonly Field[] = [
  field(
    '2.1-7..8, 2.1.2-6, 2.2-11, 8-3',
    'copy_drm_limit print_drm_limit',
    '-1 (unlimited)',
    [-1, '-1', 2, '2', 9],
    DRM,
    { isNumber: true },
  ),
  field(
    '2.1-15, 2.1.2-6, 8-4',
    'edition',
    '0 to 127',
    [0, 127, '0', '127'],
    [-1, '-1', 128, '128', 1.5, '1e1', '0x10'],
    { isNumber: true },
  ),
  field('2.1-21', 'imprint_id', 'whole number', [12, '12'], ['twelve', 1.5, null, 2 ** 60], {
    isNumber: true,
    isElsewhere: true,
    byService: [0, -1, '0'],
  }),
  field('2.1-9, 2.2-13, 8-5', 'copyright_date', 'four digits', ['2015', '0999'], NO_YEARS),
  field(
    '2.1-25..26, 2.1-29',
    'on_sale_date off_sale_date publication_date',
    'ISO 8601 date',
    ['2026-01-31', '2024-02-29', null],
    NO_DATES,
    { byClient: ['2026-01-01T00:00:00Z', '2030-01-01T10:00'] },
  ),
  field(
    '2.1-18..19, 2.1-32, 2.1.2-6, 2.2-8',
    'fro fulfillment_only sampleable',
    'true or false',
    [true, false, 'true', 'false'],
    ['yes', 1, 0, 'TRUE', '', null],
  ),
  field(
    '2.1-3..5, 2.1-11, 2.1-34, 2.2-7',
    'author_name author_first_name author_last_name description subtitle',
    'text',
    ['a text', 'Ünïcode & <marks>', ''],
    NO_TEXTS,
  ),
  field('2.1-33', 'title', 'must', ['a'], [...NO_TEXTS, '']),
  field('2.1-13', 'cs_plus_discount_code', 'text', ['CS20'], NO_TEXTS, { isElsewhere: true }),
  field('2.1-22', 'kind', 'text', ['book'], NO_TEXTS, { isElsewhere: true }),
  field('2.1-14, 2.1-28', 'e_isbn print_isbn', 'text', [ISBN, '0-306-40615-2', '978-0-306-40615-7'], NO_TEXTS, {
    byService: WRONG_ISBNS,
  }),
  field('2.1-27', 'parent_isbn', 'text', ['0-306-40615-2', ISBN], NO_TEXTS, {
    byService: WRONG_ISBNS,
    isElsewhere: true,
  }),
  field('2.1-23', 'language', 'language code', ['en', 'eng', 'pt-BR', 'zh-Hant'], ['', 'e', 'the English language', 5]),
  field('2.1-24, 2.1-38..39, 4.1-10', 'login_url callback_url url', 'http', URLS, NO_URLS, { isElsewhere: true }),
  field(
    '2.1-20, 2.1.1-1, 2.1.1-4..5',
    'identifiers',
    '',
    [null, ...KEYS.flatMap((key) => eachOf(key, ['0306406152'], [], null))],
    KEYS.flatMap((key) => eachOf(key, '0306406152', [306406152])),
    { byService: [{ e_isbn_13: [ISBN, '12'] }], byClient: [{ print_isbn13: ['x'] }], isElsewhere: true },
  ),
  field(
    '2.1-30',
    'related_products',
    '',
    [{}, { next_edition: ISBN }, { previous_edition: ISBN }],
    [ISBN, { previous_edition: 5 }, []],
    { byService: [{ next_edition: '1' }], byClient: [{ next_edtion: ISBN }] },
  ),
  field(
    '2.1-31',
    'sales_rights',
    'two-letter',
    [
      { exclusive_rights: ['US', 'CA'], non_exclusive_rights: ['ROW'] },
      { exclusive_rights: ['WORLD'], not_for_sale: ['DE'] },
    ],
    [{ non_exclusive_rights: 'US' }, { exclusive_rights: null }, { not_for_sale: 'US' }],
    { byClient: [{ exclusive_rights: ['USA'] }, { exclusive_rights: ['us'] }] },
  ),
  field(
    '2.1-35, 2.1.2-1..6',
    'prices',
    '',
    prices({ amount: 0 }, { ...RENTAL, duration: 180 }, ...eachOf('tax_inclusive', true, false, 'true', 'false')),
    [
      PRICE,
      ...prices(RENTAL, ...eachOf('currency', 'dollars', undefined, null, 5), { type: '' }, { duration: 0 }),
      ...prices(...eachOf('amount', '19,90', 'free', -1, '-1', undefined)),
      ...prices(...eachOf('tax_inclusive', 'yes', '', 1, null, {})),
    ],
    { byClient: prices({ territory: 'US' }), isElsewhere: true },
  ),
  field(
    '2.1-36, 2.1.3-1..3, 8-7',
    'variants',
    '',
    [channel(ID)],
    [
      {},
      'a',
      [5],
      [{ channel_id_inclusive_access: 'x' }],
      [{ channel_ids: {} }],
      channel({ channel_id_inclusive_access: 'x' }),
      channel({ sku: 'L-1' }),
      channel(ID, { ...ID, channel_id_retail: 'x' }),
    ],
    {
      byService: [channel({ ...ID, sku: 'TYPO' }), channel({ ...ID, sku: 'L-1R90' })],
      byClient: [[{ channel_ids: [], duration: 'perpetual' }], [{}]],
      isElsewhere: true,
    },
  ),
];
