/* The request fields of an asset (2.1), with the values that the interface allows and does not allow. */

export interface Field {
  readonly rules: string;
  /** Fields of the same form. */
  readonly names: string;
  /** A number that may be in quotes, which the answer does not have. */
  readonly isNumber?: true;
  /** The answer has it in another form. */
  readonly isElsewhere?: true;
  readonly taken: readonly unknown[];
  /** The client does not send these, and the service answers 422. */
  readonly refused: readonly unknown[];
  /** What the error of the client says that the field must be. */
  readonly must: string;
  /** Values that only the service judges. */
  readonly byService?: readonly unknown[];
  /** Values that the interface does not show, or that services take by mistake: only the client refuses them. */
  readonly byClient?: readonly unknown[];
}

const PRICE = { currency: 'USD', type: 'digital_list_price', amount: '19.90' };
const RENTAL = { ...PRICE, type: 'digital_rental_price' };
const prices = (...all: readonly object[]): readonly unknown[] => all.map((more) => [PRICE, { ...PRICE, ...more }]);
const channel = (...ids: readonly unknown[]) => [{ channel_ids: ids }];
const ID = { sku: 'L-1', channel_id_inclusive_access: 'ia-1' };
const ISBN = '9781402894626';
const NO_TEXTS = [5, true, {}, ['a']];

export const FIELDS: readonly Field[] = [
  {
    rules: '2.1-7..8, 2.1.2-6, 2.2-11, 8-3',
    names: 'copy_drm_limit print_drm_limit',
    isNumber: true,
    taken: [-1, '-1', 2, '2', 100],
    refused: [-2, 0, 1, '0', '1', 2.5, 'many', '', true, null, [2]],
    must: '-1 (unlimited)',
  },
  {
    rules: '2.1-15, 2.1.2-6, 8-4',
    names: 'edition',
    isNumber: true,
    taken: [0, 127, '0', '127'],
    refused: [-1, '-1', 128, '128', 1.5, 'second', '1e1', '0x10'],
    must: 'from 0 to 127',
  },
  {
    rules: '2.1-9, 2.2-13, 8-5',
    names: 'copyright_date',
    taken: ['2015', '0999'],
    refused: ['15', '20155', '2015-01-01', ' 2015', '٢٠١٥', 2015],
    must: 'four digits',
  },
  {
    rules: '2.1-25..26, 2.1-29',
    names: 'on_sale_date off_sale_date publication_date',
    taken: ['2026-01-31', '2024-02-29', null],
    refused: ['2023-02-29', '2026-13-01', '2026-04-31', '01/02/2026', '2026-1-2', 'tomorrow', 20260101],
    must: 'ISO 8601 date',
    byClient: ['2026-01-01T00:00:00Z'],
  },
  {
    rules: '2.1-18..19, 2.1-32, 2.1.2-6, 2.2-8',
    names: 'fro fulfillment_only sampleable',
    taken: [true, false, 'true', 'false'],
    refused: ['yes', 1, 0, 'TRUE', '', null],
    must: 'true or false',
  },
  {
    rules: '2.1-3..5, 2.1-11, 2.1-34, 2.2-7',
    names: 'author_name author_first_name author_last_name description subtitle',
    taken: ['a text', 'Ünïcode & <marks>', ''],
    refused: [...NO_TEXTS, null],
    must: 'text',
  },
  { rules: '2.1-33', names: 'title', taken: ['a'], refused: [...NO_TEXTS, null, ''], must: 'must' },
  {
    rules: '2.1-13',
    names: 'cs_plus_discount_code',
    isElsewhere: true,
    taken: ['CS20'],
    refused: NO_TEXTS,
    must: 'text',
  },
  { rules: '2.1-22', names: 'kind', isElsewhere: true, taken: ['book'], refused: [...NO_TEXTS, null], must: 'text' },
  {
    rules: '2.1-14, 2.1-28',
    names: 'e_isbn print_isbn',
    taken: [ISBN, '0-306-40615-2', '978-0-306-40615-7'],
    refused: [...NO_TEXTS, null],
    must: 'text',
    byService: ['9780306406158', 'tides'],
  },
  {
    rules: '2.1-27',
    names: 'parent_isbn',
    isElsewhere: true,
    taken: ['0-306-40615-2', ISBN],
    refused: [...NO_TEXTS, null],
    must: 'text',
    byService: ['9780306406158', 'tides'],
  },
  {
    rules: '2.1-21',
    names: 'imprint_id',
    isNumber: true,
    isElsewhere: true,
    taken: [12, '12'],
    refused: ['twelve', 1.5, null, 2 ** 60],
    must: 'whole number',
  },
  {
    rules: '2.1-23, 2.2-17',
    names: 'language',
    taken: ['en', 'eng', 'pt-BR', 'zh-Hant'],
    refused: ['', 'e', 'the English language', 5],
    must: 'language code',
  },
  {
    rules: '2.1-24, 2.1-38..39, 4.1-10',
    names: 'login_url callback_url url',
    isElsewhere: true,
    taken: ['https://files.example/a.epub', 'http://a.example'],
    refused: ['file:///a', 'ftp://user:secret@files.example', 'a.epub', 'javascript:alert(1)', 5],
    must: 'http',
  },
  {
    rules: '2.1-20, 2.1.1-1, 2.1.1-4..5',
    names: 'identifiers',
    isElsewhere: true,
    taken: ['e_isbn_10', 'e_isbn_13', 'print_isbn_10', 'print_isbn_13', 'vbid10_alias', 'vbid13_alias']
      .flatMap((key): unknown[] => [{ [key]: ['0306406152'] }, { [key]: [] }, { [key]: null }])
      .concat(null),
    refused: [{ e_isbn_10: '0306406152' }, { vbid13_alias: [306406152] }],
    must: '',
    byService: [{ e_isbn_13: [ISBN, '12'] }],
    byClient: [{ print_isbn13: ['x'] }],
  },
  {
    rules: '2.1-30',
    names: 'related_products',
    taken: [{}, { next_edition: ISBN }, { previous_edition: ISBN }],
    refused: [ISBN, { previous_edition: 5 }, []],
    must: '',
    byService: [{ next_edition: '1' }],
    byClient: [{ next_edtion: ISBN }],
  },
  {
    rules: '2.1-31',
    names: 'sales_rights',
    taken: [
      { exclusive_rights: ['US', 'CA'], non_exclusive_rights: ['ROW'] },
      { exclusive_rights: ['WORLD'], not_for_sale: ['DE'] },
    ],
    refused: [{ non_exclusive_rights: 'US' }, { exclusive_rights: null }, { not_for_sale: 'US' }],
    must: 'two-letter',
    byClient: [{ exclusive_rights: ['USA'] }, { exclusive_rights: ['us'] }],
  },
  {
    rules: '2.1-35, 2.1.2-1..6',
    names: 'prices',
    isElsewhere: true,
    taken: prices(
      { amount: 0 },
      { amount: '12345678901.10' },
      { ...RENTAL, duration: 180 },
      ...[true, false, 'true', 'false'].map((flag) => ({ tax_inclusive: flag })),
    ),
    refused: [
      PRICE,
      ...prices(
        RENTAL,
        ...['dollars', undefined, null, 5].map((currency) => ({ currency })),
        ...['19,90', 'free', -1, undefined].map((amount) => ({ amount })),
        ...['yes', '', 1, null, {}].map((flag) => ({ tax_inclusive: flag })),
        { type: '' },
        { duration: 0 },
      ),
    ],
    must: '',
    byClient: prices({ territory: 'US' }),
  },
  {
    rules: '2.1-36, 2.1.3-1..3, 8-7',
    names: 'variants',
    isElsewhere: true,
    taken: [channel(ID)],
    refused: [
      {},
      'a',
      [5],
      channel({ channel_id_inclusive_access: 'x' }),
      channel({ sku: 'L-1' }),
      channel(ID, { ...ID, channel_id_retail: 'x' }),
      [{ channel_id_inclusive_access: 'x' }],
      [{ channel_ids: {} }],
    ],
    must: '',
    byService: [channel({ ...ID, sku: 'TYPO' }), channel({ ...ID, sku: 'L-1R90' })],
    byClient: [[{ channel_ids: [], duration: 'perpetual' }], [{}]],
  },
];
