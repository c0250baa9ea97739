import { join } from 'node:path';
import type { FetchTask, Page } from '@catchword/catalog/page-types';
import { pageOf } from '@catchword/catalog/validate-page';
import { bytesOf } from '@catchword/testing/page';
import { execute, query } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { openHarness } from '../../src/contract/harness.ts';
import type { Store } from '../../src/store/store.ts';
import { createPageComparer } from '../../src/sync/fast/page-comparer.ts';

const PER_PAGE = 40;
const PRODUCTS = 120;

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

function textOf(number: number, more: object = {}): string {
  return JSON.stringify({ vbid: `V${number}`, title: `Book ${number} – "é"`, price: 10.5, ...more });
}

const texts = (from: number, to: number) => range(from, to).map((number) => textOf(number));

interface Envelope {
  readonly page?: number;
  readonly before?: string;
  readonly after?: string;
  readonly comma?: string;
}

function pageText(items: readonly string[], { page = 1, before = '', after = '', comma = ',' }: Envelope = {}): string {
  const total = (page - 1) * PER_PAGE + items.length;
  const head = `"num_items":${total},"page":${page},"per_page":${PER_PAGE},"total_pages":${page}`;
  return `{${before}${head},"items": [${items.join(comma)}]${after}}`;
}

/** A mirror with products that have ids in order. Product 7 is a tombstone, product 11 was withdrawn. */
function mirrorOf(): { readonly store: Store; readonly db: string } {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  const bodyOf = (number: number) => textOf(number, number === 11 ? { distributable: false } : {});
  bench.change(range(0, PRODUCTS).map((number) => ({ vbid: `V${number}`, body: bodyOf(number) })));
  const { store } = bench;
  execute(store.path, 'UPDATE products SET removed_at = 2000 WHERE id = 8');
  return { store, db: store.path };
}

function comparerOf({ db, store }: { readonly store: Store; readonly db: string }) {
  const comparer = createPageComparer(db);
  onTestFinished(() => comparer.close());
  const task = (page = 1): FetchTask => ({
    mirror: store.incarnation,
    runId: 1,
    pass: 0,
    window: { page, perPage: PER_PAGE },
    from: null,
    maxAttempts: 1,
  });
  const compare = (text: string | Uint8Array<ArrayBuffer>, page = 1): Page | null =>
    comparer.compare(typeof text === 'string' ? bytesOf(text) : text, task(page));
  return { comparer, task, compare };
}

/** What both ways to validate a page must agree on. */
function summary({ envelope, items, doubt, rejected }: Page) {
  const { count, spans, withdrawn } = items;
  return { envelope, doubt, rejected, count, spans: [...spans], withdrawn };
}

/** Validates and compares both ways, which must agree. @returns the ids, if the page was compared without parsing it */
function agreed(
  mirror: ReturnType<typeof mirrorOf>,
  text: string | Uint8Array<ArrayBuffer>,
  page = 1,
  { compare, task } = comparerOf(mirror),
) {
  const bytes = () => (typeof text === 'string' ? bytesOf(text) : text.slice());
  const compared = compare(bytes(), page);
  if (compared === null) return null;
  const parsed = pageOf(bytes(), task(page));
  expect(summary(compared)).toEqual(summary(parsed));
  expect([...(compared.matched?.ids ?? [])]).toEqual(mirror.store.products.match(parsed.items));
  expect(compared.matched?.seq).toBe(PRODUCTS);
  return [...(compared.matched?.ids ?? [])];
}

it('a page of known products is compared without parsing it, whatever separates the items', () => {
  const mirror = mirrorOf();
  const items = texts(20, 60);
  const ids = range(21, 61);
  expect(agreed(mirror, pageText(items))).toEqual(ids);
  expect(agreed(mirror, pageText(items, { comma: ' ,\n  ' }))).toEqual(ids);
  expect(agreed(mirror, pageText(items, { before: '"next":{"item":[]},', after: '\n, "x":[1]\n' }))).toEqual(ids);
  const padded = Buffer.from(`--${pageText(items)}--`);
  expect(agreed(mirror, new Uint8Array(padded).subarray(2, padded.length - 2))).toEqual(ids);
});

it('a page of known products shows what changed, moved, is new, is removed or is on the page twice', () => {
  const mirror = mirrorOf();
  const items = [
    ...texts(0, 3),
    textOf(3, { title: 'New' }),
    textOf(4),
    textOf(900),
    ...texts(5, 9),
    textOf(100),
    textOf(9),
    textOf(10),
    textOf(11, { distributable: false }),
    textOf(13),
    textOf(2),
    textOf(50),
    textOf(51),
    textOf(52),
  ];
  const ids = [1, 2, 3, -4, 5, 0, 6, 7, -8, 9, 101, 10, 11, 12, 14, 3, 51, 52, 53];
  expect(agreed(mirror, pageText(items))).toEqual(ids);
});

it('a page of known products is parsed if its order is another one, or an item or the envelope is not as it should be', () => {
  const mirror = mirrorOf();
  const { compare } = comparerOf(mirror);
  const items = texts(20, 40);
  const broken = [...items.slice(0, 5), '{"vbid":""}', ...items.slice(6)];
  expect(compare(pageText(items))).not.toBeNull();
  expect(compare(pageText(range(0, 40).map((at) => textOf((at * 37) % PRODUCTS))))).toBeNull();
  for (const text of [
    pageText([]),
    pageText(broken),
    pageText(items, { comma: ',\x00' }),
    pageText(items, { comma: '\x0c,' }),
    pageText([...items.slice(0, 19), '{"vbid":"V39"']),
    pageText([...items.slice(0, 19), '7']),
    pageText(items).replace('"items"', '"others"'),
    pageText(items, { after: ',"items":[]' }),
    pageText(items, { before: '"a":{"items":[{"vbid":"V1"}]},' }),
    pageText(items, { after: `,"a":${'['.repeat(80)}${']'.repeat(80)}` }),
  ]) {
    expect(compare(text), text).toBeNull();
  }
  const latin = Buffer.from(pageText([...items.slice(0, 19), '{"vbid":"V39","title":"\u00e9"}']), 'latin1');
  expect(compare(new Uint8Array(latin))).toBeNull();
});

it('a page of known products must be the requested one', () => {
  const { compare } = comparerOf(mirrorOf());
  const text = pageText(texts(20, 60), { page: 2 });
  expect(() => compare(text, 1)).toThrow('requested page 1, got page 2');
  expect(compare(text.replace('"total_pages":2', '"total_pages":3'), 2)?.doubt).toBeNull();
  expect(compare(text.replace('"num_items":80', '"num_items":99'), 2)?.doubt).toBeNull();
  const short = pageText(texts(20, 50), { page: 2 });
  expect(compare(short.replace('"total_pages":2', '"total_pages":3'), 2)?.doubt?.said).toMatch(
    '30 items instead of 40',
  );
});

it('a page of known products is not compared with another mirror, nor if the file cannot be read', () => {
  const mirror = mirrorOf();
  const bytes = bytesOf(pageText(texts(20, 60)));
  const { comparer, task } = comparerOf(mirror);
  expect(comparer.compare(bytes, task())).not.toBeNull();
  expect(comparer.compare(bytes, { ...task(), mirror: 'another' })).toBeNull();
  const missing = createPageComparer(join(temporaryDirectory(), 'missing.db'));
  expect(missing.compare(bytes, task())).toBeNull();
  missing.close();
});

it('a comparison finds what parsing finds, for random pages', () => {
  const mirror = mirrorOf();
  const bodies = query<{ body: string }>(mirror.db, 'SELECT body FROM products ORDER BY id').map(({ body }) => body);
  const run = fc
    .record({ from: fc.nat({ max: PRODUCTS }), length: fc.integer({ min: 1, max: 20 }) })
    .map(({ from, length }) => bodies.slice(from, from + length));
  const one = fc.nat({ max: PRODUCTS + 20 });
  const odd = fc.oneof(
    one.map((number) => textOf(number)),
    one.map((number) => textOf(number, { title: 'Other' })),
    one.map((number) => textOf(number, { distributable: false })),
    one.map((number) => ` ${textOf(number)} `),
    fc.constantFrom('{"vbid":7}', '{"vbid":"V3","vbid":"V4"}', '{}', 'null', '{"vbid":"V1"', '{"vbid":"V1"}}'),
  );
  const items = fc
    .array(fc.oneof({ weight: 3, arbitrary: run }, { weight: 1, arbitrary: odd.map((item) => [item]) }), {
      maxLength: 5,
    })
    .map((parts) => parts.flat().slice(0, PER_PAGE));
  const envelope = fc.record(
    {
      before: fc.constantFrom(
        '',
        '"items":[],',
        '"items":7,',
        '"a":"\\"items\\":[",',
        '"a":[{"items":[{}]}],',
        '"\\u0069tems":[],',
      ),
      after: fc.constantFrom(
        '',
        ',"items":[{}]',
        ',"item\\u0073":[{}]',
        ',"a":[]',
        ',',
        ' ',
        '}',
        ',"page":1',
        ',"num_items":"40"',
      ),
      comma: fc.constantFrom(',', ', ', '\n,', ',,', ' ', '\x00,', ',\x0b'),
    },
    { requiredKeys: [] },
  );
  let compared = 0;
  // One for all pages, as in a run; to open one takes longer than to compare these pages.
  const comparer = comparerOf(mirror);
  fc.assert(
    fc.property(items, envelope, (parts, about) => {
      let found: number[] | null = null;
      try {
        found = agreed(mirror, pageText(parts, about), 1, comparer);
      } catch (error) {
        // Either both find the page invalid, or this is a difference.
        expect(error).toMatchObject({ code: expect.stringMatching(/^PAGE_/) as string });
        expect(() => pageOf(bytesOf(pageText(parts, about)), { window: { page: 1, perPage: PER_PAGE } })).toThrow();
      }
      if (found !== null) compared++;
    }),
    { numRuns: 2_000 },
  );
  expect(compared).toBeGreaterThan(200);
});
