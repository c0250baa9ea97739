import { validatePage } from '@catchword/catalog/validate-page';
import { lookupOfText, pageOfText } from '@catchword/testing/page';
import fc from 'fast-check';
import { expect, it } from 'vitest';

function pageText(items: unknown, envelope: Record<string, unknown> = {}, indent?: number): string {
  const count = Array.isArray(items) ? items.length : 0;
  return JSON.stringify({ num_items: count, page: 1, per_page: 10, total_pages: 1, items, ...envelope }, null, indent);
}

const window = { page: 1, perPage: 10 };

// @rule 2.5-2
it('a page keeps every item byte by byte as the service sent it', () => {
  const item = fc.dictionary(fc.string(), fc.jsonValue()).map((rest) => ({ ...rest, vbid: 'X-1' }));
  fc.assert(
    fc.property(fc.array(item, { maxLength: 10 }), fc.constantFrom(undefined, 2), (items, indent) => {
      const text = pageText(items, {}, indent);
      const { products, rejected } = pageOfText(text, window);
      expect(rejected).toEqual([]);
      for (const [index, product] of products.entries()) {
        expect(text).toContain(product?.body);
        expect(JSON.parse(product?.body ?? '')).toEqual(JSON.parse(JSON.stringify(items[index])));
      }
    }),
  );
  const exact = '{"vbid":"A","price":10.50,"id":12345678901234567890}';
  const page = pageOfText(pageText([], { num_items: 1 }).replace('[]', `[ ${exact} ]`), window);
  expect(page.products[0]?.body).toBe(exact);
});

// @rule 2.5-1, 2.5-3
it('a page accepts the oddities of real services', () => {
  const items = [
    { vbid: 'L-999-70031' },
    { vbid: 9780000000002, identifiers: { print_isbn_canonical: 'null', eisbn_canonical: 9780000000019 } },
    { vbid: 'A', title: 'T', subtitle: 'S', edition: 0, kind: { id: 3, value: 'book' }, publisher: { name: 'P' } },
    {
      vbid: 'B',
      contributors: [{ name: 'Ann' }, { type: 'x' }, null, 'Bob'],
      identifiers: { fpid: ['7', 8], isbn_10: '7' },
    },
  ];
  const { products, rejected } = pageOfText(pageText(items, { num_items: '4', total_pages: '1' }), window);
  expect(rejected).toEqual([]);
  expect(products).toMatchObject([
    { vbid: 'L-999-70031', printIsbn: null, search: null },
    { vbid: '9780000000002', printIsbn: null, eIsbn: '9780000000019' },
    { kind: 'book', publisher: 'P', search: { title: 'T S' } },
    { search: { contributors: 'Ann Bob', identifiers: '7 8' } },
  ]);
});

it('a page rejects invalid items and keeps the others', () => {
  const wrongKeys = [{}, { vbid: ' ' }, { vbid: 'a\u0007' }, { vbid: 'x'.repeat(256) }, { vbid: {} }];
  const items = [{ vbid: 'A' }, ...wrongKeys, [], null, 'text', { vbid: 'B' }];
  const { products, rejected } = pageOfText(pageText(items), window);
  expect(products.flatMap((product) => product?.vbid ?? [])).toEqual(['A', 'B']);
  expect(products).toHaveLength(10);
  expect(rejected.map(({ position, reason }) => [position, reason])).toEqual([
    [1, 'vbid must be a string'],
    [2, 'vbid is empty'],
    [3, 'vbid contains a control character'],
    [4, 'vbid is longer than 255 characters'],
    [5, 'vbid must be a string'],
    [6, 'item is not an object'],
    [7, 'item is not an object'],
    [8, 'item is not an object'],
  ]);
  expect(rejected[7]?.body).toBe('"text"');
});

it.each([
  ['no object', 'no', /not JSON/],
  ['no envelope', '[]', /no catalog envelope: body: must be an object/],
  ['no number of items', '{"num_items":"x"}', /: num_items: must be a whole number of 0 or more/],
  ['no items', pageText(undefined), /items/],
  ['a negative total', pageText([], { num_items: -1 }), /num_items/],
  ['another page', pageText([], { page: 2 }), /requested page 1, got page 2/],
  ['too many items', pageText(Array(11).fill({ vbid: 'A' })), /has 11 items, more than its per_page of 10/],
  ['too deep', pageText([JSON.parse(`${'['.repeat(70)}${']'.repeat(70)}`)]), /nested deeper/],
])('a page is invalid: %s', (_name, text, message) => {
  const error = { code: 'PAGE_INVALID', retryable: true, message: expect.stringMatching(message) as string };
  expect(() => pageOfText(text, window)).toThrow(expect.objectContaining(error));
});

it.each([
  ['cut short', '{"num_items":1,"items":[{"vbid":"A"', /\(Expected .*\) after 35 bytes$/],
  ['with a quote too many', pageText([{ vbid: 'A', title: 'x' }]).replace('"x"', '"x""'), /after 86 bytes$/],
])('a page is broken: %s', (_name, text, message) => {
  const error = { code: 'PAGE_BROKEN', retryable: true, message: expect.stringMatching(message) as string };
  expect(() => pageOfText(text, window)).toThrow(expect.objectContaining(error));
  expect(() => pageOfText(text, { page: 1, perPage: 1 })).toThrow(/, of the product A$/);
});

it.each([
  ['NaN', '{"vbid":"B","price":NaN}', 20],
  ['quotes within a text', '{"vbid":"B","title":"a "b", c"}', 24],
  ['a tab within a text', '{"vbid":"B","title":"a\tb"}', 22],
  ['a number with a leading zero', '{"price":07,"vbid":"B"}', 10],
  ['nothing after a comma', '{"vbid":"B","price":1,}', 22],
])('a page rejects an item that is not JSON, and says where: %s', (_name, item, bytes) => {
  const text = pageText([{ vbid: 'A' }, 'here', { vbid: 'C' }]).replace('"here"', item);
  const { products, rejected, isDamaged } = { ...pageOfText(text, window) };
  expect(products.map((product) => product?.vbid)).toEqual(['A', undefined, 'C']);
  const reason = expect.stringMatching(
    new RegExp(`^not JSON \\(.*\\) after ${bytes} bytes of the item, of the product B$`),
  ) as string;
  expect(rejected).toEqual([{ position: 1, reason, body: item }]);
  expect(isDamaged).toBe(true);
});

it.each([
  ['errors', { errors: ['3 of 5 shards failed'] }, '3 of 5 shards failed'],
  ['an error', { error: { type: 'timeout' } }, '{"type":"timeout"}'],
  ['a flag of a search engine', { timed_out: true }, 'timed_out: true'],
  ['an answer of Solr in part', { responseHeader: { partialResults: true } }, 'responseHeader.partialResults: true'],
  ['an answer of Elasticsearch in part', { is_partial: true }, 'is_partial: true'],
  ['a status of Kubernetes', { status: 'Failure', message: 'no index' }, 'status: Failure; no index'],
  ['shards', { _shards: { total: 5, failed: 3 } }, '_shards.failed: 3'],
  ['no success', { success: false, message: 'no index' }, 'success: false; no index'],
  ['a failure', { status: 'error', detail: 'no index' }, 'status: error; no index'],
  ['a code', { code: 503 }, 'code: 503'],
  ['a message of an error', { errorCode: 0, errorMessage: 'no index' }, 'errorMessage: no index'],
  ['words in its head', { meta: { success: 'no', message: 'no index' } }, 'meta.success: no; no index'],
  ['a code in its status', { status: { code: 500 } }, 'status.code: 500'],
])('a page that says that it is wrong is not a page: %s', (_name, more, words) => {
  const error = { code: 'SOURCE_UNAVAILABLE', retryable: true, message: `the answer says “${words}”` };
  for (const items of [[], [{ vbid: 'A' }]]) {
    expect(() => pageOfText(pageText(items, more), window)).toThrow(expect.objectContaining(error));
  }
});

it.each([
  { errors: [], error: null, success: true, status: 'ok', code: 200, message: 'done', _shards: { failed: 0 } },
  { errorCode: 0, errorMessage: 'success' },
  { header: { code: 0, errorMessage: 'SUCCESS' }, metadata: { code: 450 } },
  { meta: { success: 0, failed: 0 }, success: '', ok: [] },
  { incomplete: 12, partial: 'n', has_errors: 'no', exception: null },
])('a page may have members that say that nothing is wrong: %o', (more) => {
  expect(pageOfText(pageText([{ vbid: 'A' }], more), window).products).toHaveLength(1);
});

it.each([
  ['{"message":"maintenance until 06:00"}', 'maintenance until 06:00'],
  ['{"vbid":"A","errors":["the index is rebuilt"]}', 'the index is rebuilt'],
])('the response to a lookup that says that it is wrong is not a product: %s', (text, words) => {
  const error = { code: 'SOURCE_UNAVAILABLE', message: `the answer says “${words}”` };
  expect(() => lookupOfText(text, 'A', window)).toThrow(expect.objectContaining(error));
});

it.each([
  ['a short page in the middle', { num_items: 20, total_pages: 2 }, /page 1 of 2 has 1 items instead of 10/],
  ['fewer items than its total', { num_items: 5 }, /page 1 of 1 has 1 items; with a total of 5 it should have 5/],
])('a page is doubtful: %s', (_name, envelope, doubt) => {
  const page = pageOfText(pageText([{ vbid: 'A' }], envelope), window);
  expect(page.doubt?.said).toMatch(doubt);
  expect(page.products).toHaveLength(1);
});

it.each([
  ['a page of the middle', 10, 2, null],
  ['the last page', 2, 3, null],
  [
    'a last page with fewer items than the total leaves',
    1,
    3,
    'page 3 of 3 has 1 items; with a total of 22 it should have 2',
  ],
  ['a last page with more', 3, 3, 'page 3 of 3 has 3 items; with a total of 22 it should have 2'],
  ['a full last page', 10, 3, null],
  ['a page after the end', 0, 4, null],
])('a page is judged by the total: %s', (_name, count, page, doubt) => {
  const items = Array.from({ length: count }, (_, at) => ({ vbid: `A-${at}` }));
  const text = pageText(items, { num_items: 22, page, total_pages: 3 });
  expect(pageOfText(text, { page, perPage: 10 }).doubt?.said ?? null).toBe(doubt);
});

it.each([
  ['1.5', '1.5'],
  ['-1', '-1'],
  ['1e3', '1e3'],
  [`${'9'.repeat(50)}.5`, '9'.repeat(40)],
])('a page rejects a number as a vbid unless it is whole: %s', (number, shown) => {
  const text = pageText([{}]).replace('{}', `{"vbid":${number}}`);
  expect(pageOfText(text, window).rejected[0]?.reason).toBe(`vbid: ${shown} is not a whole number of 0 or more`);
});

it('a page keeps a vbid of 255 characters', () => {
  const vbid = 'x'.repeat(255);
  expect(pageOfText(pageText([{ vbid }]), window).products[0]?.vbid).toBe(vbid);
});

it.each([
  ['a Latin-1 letter', [0x61, 0xe9, 0x62], '0xe9', 1],
  ['a sequence that is cut short', [0xe2, 0x82], '0xe2', 0],
  ['a surrogate', [0xc3, 0xa9, 0xed, 0xa0, 0x80], '0xed', 1],
  ['an overlong form', [0xc0, 0xaf, 0xe0, 0x80, 0x80], '0xc0', 0],
  ['a character beyond Unicode', [0xf4, 0x90, 0x80, 0x80], '0xf4', 0],
  ['a bad byte behind replacement characters', [0xef, 0xbf, 0xbd, 0x61, 0xef, 0xbf, 0xbd, 0xbd], '0xbd', 3],
  ['a bad byte behind a character of four bytes', [0xf0, 0x9f, 0x98, 0x80, 0x80], '0x80', 2],
])('a page names the first byte of an item that is not UTF-8: %s', (_name, bytes, byte, before) => {
  const [head = Buffer.of(), tail = Buffer.of()] = pageText([{ vbid: 'A', title: '|' }])
    .split('|')
    .map((part) => Buffer.from(part));
  const item = '{"vbid":"A","title":"';
  const page = validatePage(new Uint8Array(Buffer.concat([head, Buffer.from(bytes), tail])), window);
  const reason = `invalid UTF-8: byte ${byte} after ${item.length + before} characters`;
  expect(page.rejected).toMatchObject([{ position: 0, reason }]);
  expect(page.rejected[0]?.body.startsWith(item)).toBe(true);
});

it('a page may have another size than requested', () => {
  const page = pageOfText(pageText([], { per_page: 5 }), window);
  expect(page).toMatchObject({ envelope: { perPage: 5 }, doubt: null });
});

it('a page is empty after the end of the list', () => {
  const text = pageText([], { num_items: 3, page: 4, total_pages: 1 });
  expect(pageOfText(text, { page: 4, perPage: 10 }).products).toEqual([]);
});

it('the response to a lookup is the product as the service sent it', () => {
  const page = lookupOfText(' {"vbid":"A","price":10.50}\n', 'A', window);
  expect(page.products.map((product) => product?.body)).toEqual(['{"vbid":"A","price":10.50}']);
  expect(page).toMatchObject({ envelope: { numItems: 1, page: 1 }, rejected: [], doubt: null });
});

it('the response to a lookup is a page without products if the product was not found', () => {
  expect(lookupOfText('', 'A', window)).toMatchObject({ envelope: { numItems: 0 }, products: [], rejected: [] });
});

it.each([
  ['another product', '{"vbid":"B"}', /requested product A, got B/],
  ['no product', '{}', /lookup of A is not a product \(vbid must be a string\)/],
  ['no JSON', 'no', /not JSON/],
  ['too deep', `{"vbid":"A","x":${'['.repeat(70)}${']'.repeat(70)}}`, /nested deeper than 62/],
])('the response to a lookup is invalid: %s', (_name, text, message) => {
  const error = { code: 'PAGE_INVALID', message: expect.stringMatching(message) as string };
  expect(() => lookupOfText(text, 'A', window)).toThrow(expect.objectContaining(error));
});
