import { isbnForms } from '@catchword/base/isbn';
import { query } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { type Harness, openHarness } from '../../src/contract/harness.ts';
import { findProduct } from '../../src/store/rows/find-product.ts';
import { serve } from '../http/place.ts';
import { get } from '../http/reader.ts';
import { runHere } from '../support/in-process.ts';

it('an ISBN is written with 10 and with 13 digits', () => {
  const both = ['9780306406157', '0306406152'];
  for (const text of ['9780306406157', '978-0-306-40615-7', ' 0-306-40615-2 ', '0306406152']) {
    expect([...isbnForms(text)].sort()).toEqual([...both].sort());
  }
  expect(isbnForms('080442957x')).toEqual(['080442957X', '9780804429573']);
  expect(isbnForms('9791034301775')).toEqual(['9791034301775']);
  for (const text of ['9780306406158', '0306406153', '12345', 'L-999-70031', '']) expect(isbnForms(text)).toEqual([]);
});

function put(bench: Harness, items: readonly { readonly vbid: string; readonly identifiers: object }[]): void {
  bench.change(items.map((item) => ({ vbid: item.vbid, body: JSON.stringify(item) })));
}

/** Print and electronic ISBNs; C and D share one. */
function filledMirror(): Harness {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  put(bench, [
    { vbid: 'A', identifiers: { print_isbn_canonical: 9780306406157, eisbn_canonical: null } },
    { vbid: 'B', identifiers: { print_isbn_canonical: null, eisbn_canonical: '080442957X' } },
    { vbid: 'C', identifiers: { print_isbn_canonical: '9791034301775' } },
    { vbid: 'D', identifiers: { print_isbn_canonical: '9791034301775' } },
    { vbid: '9780306406157X', identifiers: {} },
    { vbid: '9780804429573', identifiers: {} },
  ]);
  return bench;
}

it('a changed product is known by its new ISBNs only', () => {
  const bench = filledMirror();
  const { store } = bench;
  const [one, other] = ['9780306406157', '9780306406188'];
  const changes = [
    { print_isbn_canonical: one, eisbn_canonical: other },
    { print_isbn_canonical: one, eisbn_canonical: null },
    { print_isbn_canonical: null, eisbn_canonical: one },
    { print_isbn_canonical: other, eisbn_canonical: one },
    { print_isbn_canonical: other, eisbn_canonical: one },
  ];
  for (const [index, identifiers] of changes.entries()) {
    const item = { vbid: 'A', identifiers, title: `Version ${index}` };
    put(bench, [item]);
    const { print_isbn_canonical: printIsbn, eisbn_canonical: eIsbn } = identifiers;
    expect(store.products.get('A')).toMatchObject({ printIsbn, eIsbn, title: item.title, body: JSON.stringify(item) });
    for (const isbn of [one, other]) {
      expect(findProduct(store, isbn)?.vbid).toBe([printIsbn, eIsbn].includes(isbn) ? 'A' : undefined);
    }
  }
  expect(query(store.path, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
});

it('a product is found by its vbid first, then by a print or electronic ISBN', () => {
  const bench = filledMirror();
  const { store } = bench;
  const remove = (...vbids: string[]) => bench.change(vbids.map((vbid) => ({ vbid, body: null })));
  const found = (text: string) => findProduct(store, text)?.vbid;
  for (const text of ['9780306406157', '0-306-40615-2', 'A']) expect(found(text)).toBe('A');
  expect(found('9780804429573')).toBe('9780804429573');
  expect(found('0-8044-2957-x')).toBe('B');
  expect(found('9780306406158')).toBeUndefined();
  expect(() => found('979-10-343-0177-5')).toThrow(expect.objectContaining({ code: 'USAGE' }));
  remove('D');
  expect(found('979-10-343-0177-5')).toBe('C');
  remove('C', 'A');
  expect(found('0306406152')).toBe('A');
  expect(store.search('978-0-8044-2957-3', 5).map(({ vbid }) => vbid)).toEqual(['9780804429573', 'B']);
});

it('products are found by ISBN in the product command and in the API', async () => {
  const db = filledMirror().store.path;
  const { web } = await serve(db);
  const { status, text } = await get(`${web.url}/api/products/0-306-40615-2`);
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({ vbid: 'A' });
  const several = await get(`${web.url}/api/products/9791034301775`);
  expect(several.status).toBe(400);
  expect(several.text).toContain('C, D');
  const list = await get(`${web.url}/api/products?q=978-0-306-40615-7`);
  expect(JSON.parse(list.text)).toMatchObject([{ vbid: 'A' }]);
  const settings = { CATCHWORD_DB: db };
  const printed = await runHere(['product', '0-306-40615-2', '--history'], settings, temporaryDirectory());
  expect(printed).toMatchObject({ code: 0, stderr: '' });
  expect(printed.stdout).toMatch(/^A\n/);
  const { code, stderr } = await runHere(['product', '9791034301775'], settings, temporaryDirectory());
  expect(code).toBe(2);
  expect(stderr).toContain('2 products have the ISBN 9791034301775: C, D');
});
