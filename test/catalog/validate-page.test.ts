import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { validatePage } from '../../src/catalog/validate-page.ts';

function pageText(items: unknown, envelope: Record<string, unknown> = {}, indent?: number): string {
  const count = Array.isArray(items) ? items.length : 0;
  return JSON.stringify({ num_items: count, page: 1, per_page: 10, total_pages: 1, items, ...envelope }, null, indent);
}

const window = { page: 1, perPage: 10 };

describe('a page', () => {
  it('keeps every item as it was sent, byte by byte', () => {
    const item = fc.dictionary(fc.string(), fc.jsonValue()).map((rest) => ({ ...rest, vbid: 'X-1' }));
    fc.assert(
      fc.property(fc.array(item, { maxLength: 10 }), fc.constantFrom(undefined, 2), (items, indent) => {
        const text = pageText(items, {}, indent);
        const { products, rejected } = validatePage(text, window);
        expect(rejected).toEqual([]);
        for (const [index, product] of products.entries()) {
          expect(text).toContain(product?.body);
          expect(JSON.parse(product?.body ?? '')).toEqual(JSON.parse(JSON.stringify(items[index])));
        }
      }),
    );
    const exact = '{"vbid":"A","price":10.50,"id":12345678901234567890}';
    expect(
      validatePage(`{"num_items":1,"page":1,"per_page":10,"total_pages":1,"items":[ ${exact} ]}`, window).products[0]
        ?.body,
    ).toBe(exact);
  });

  it('takes the oddities of services in the wild', () => {
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
    const { products, rejected } = validatePage(pageText(items, { num_items: '4', total_pages: '1' }), window);
    expect(rejected).toEqual([]);
    expect(products).toMatchObject([
      { vbid: 'L-999-70031', printIsbn: null, search: null },
      { vbid: '9780000000002', printIsbn: null, eIsbn: '9780000000019' },
      { kind: 'book', publisher: 'P', search: { title: 'T S' } },
      { search: { contributors: 'Ann Bob', identifiers: '7 8' } },
    ]);
  });

  it('sets items aside that are no products, and goes on', () => {
    const items = [
      { vbid: 'A' },
      {},
      { vbid: ' ' },
      { vbid: 'a\u0007' },
      { vbid: 'x'.repeat(256) },
      { vbid: {} },
      [],
      null,
      'text',
      { vbid: 'B' },
    ];
    const { products, rejected } = validatePage(pageText(items), window);
    expect(products.map((product) => product?.vbid ?? null)).toEqual([
      'A',
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      'B',
    ]);
    expect(rejected.map(({ position, reason }) => [position, reason])).toEqual([
      [1, 'vbid: a text is needed'],
      [2, 'vbid: it is empty'],
      [3, 'vbid: it holds a control character'],
      [4, 'vbid: it is longer than 255 characters'],
      [5, 'vbid: a text is needed'],
      [6, 'the item is not an object'],
      [7, 'the item is not an object'],
      [8, 'the item is not an object'],
    ]);
    expect(rejected[7]?.body).toBe('"text"');
  });

  it.each([
    ['no JSON', '{"items":[', /not JSON/],
    ['no envelope', '[]', /no catalog envelope: body: an object is needed/],
    ['no number of items', '{"num_items":"x"}', /: num_items: a whole number of 0 or more is needed/],
    ['no items', pageText(undefined), /items/],
    ['a negative total', pageText([], { num_items: -1 }), /num_items/],
    ['another page', pageText([], { page: 2 }), /asked for page 1, got page 2/],
    ['more than a page holds', pageText(Array(11).fill({ vbid: 'A' })), /holds 11 items, more than the 10/],
    ['too deep', pageText([JSON.parse(`${'['.repeat(70)}${']'.repeat(70)}`)]), /nested deeper/],
  ])('is refused: %s', (_name, text, message) => {
    expect(() => validatePage(text, window)).toThrow(
      expect.objectContaining({
        code: 'PAGE_INVALID',
        retryable: true,
        message: expect.stringMatching(message) as string,
      }),
    );
  });

  it.each([
    ['a short page in the middle', { num_items: 20, total_pages: 2 }, /page 1 of 2 holds 1 items in place of 10/],
    ['fewer than it says', { num_items: 5 }, /page 1 of 1 holds 1 items; of 5 it should hold 5/],
  ])('is doubted: %s', (_name, envelope, doubt) => {
    const page = validatePage(pageText([{ vbid: 'A' }], envelope), window);
    expect(page.doubt).toMatch(doubt);
    expect(page.products).toHaveLength(1);
  });

  it('of a size that the source chose is for the reader to see', () => {
    const page = validatePage(pageText([], { per_page: 5 }), window);
    expect(page).toMatchObject({ envelope: { perPage: 5 }, doubt: null });
  });

  it('beyond the end is empty', () => {
    const text = pageText([], { num_items: 3, page: 4, total_pages: 1 });
    expect(validatePage(text, { page: 4, perPage: 10 }).products).toEqual([]);
  });
});
