import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isbnForms } from '../../src/catalog/isbn.ts';
import { productOf } from '../../src/catalog/product.ts';
import { findProduct } from '../../src/store/rows/find-product.ts';
import { writeUnder } from '../../src/store/schema/hold-lease.ts';
import { openStore } from '../../src/store/store.ts';
import { runHere } from '../support/in-process.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { query } from '../support/sqlite.ts';
import { serve } from '../web/place.ts';
import { get } from '../web/reader.ts';

it('an ISBN is written with 10 and with 13 digits', () => {
  const both = ['9780306406157', '0306406152'];
  for (const text of ['9780306406157', '978-0-306-40615-7', ' 0-306-40615-2 ', '0306406152']) {
    expect([...isbnForms(text)].sort()).toEqual([...both].sort());
  }
  expect(isbnForms('080442957x')).toEqual(['080442957X', '9780804429573']);
  expect(isbnForms('9791034301775')).toEqual(['9791034301775']);
  for (const text of ['9780306406158', '0306406153', '12345', 'L-999-70031', '']) expect(isbnForms(text)).toEqual([]);
});

/** Print and electronic ISBNs; C and D share one. */
function filledMirror(): string {
  const db = join(temporaryDirectory(), 'catalog.db');
  const store = openStore(db);
  const items = [
    { vbid: 'A', identifiers: { print_isbn_canonical: 9780306406157, eisbn_canonical: null } },
    { vbid: 'B', identifiers: { print_isbn_canonical: null, eisbn_canonical: '080442957X' } },
    { vbid: 'C', identifiers: { print_isbn_canonical: '9791034301775' } },
    { vbid: 'D', identifiers: { print_isbn_canonical: '9791034301775' } },
    { vbid: '9780306406157X', identifiers: {} },
    { vbid: '9780804429573', identifiers: {} },
  ];
  writeUnder(store.keeperLease, Date.now(), ({ products, changes }) => {
    const rows = items.map((item, index) => ({
      id: index + 1,
      seq: index + 1,
      product: productOf(item.vbid, item, JSON.stringify(item)),
    }));
    products.insert(rows, 1);
    changes.appendCreated(1, 1, rows.length, 1, 1);
    products.addLiving(rows.length);
  });
  store.close();
  return db;
}

it('a changed product is known by its new ISBNs only', () => {
  const db = filledMirror();
  const store = openStore(db);
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
    const product = productOf('A', item, JSON.stringify(item));
    writeUnder(store.keeperLease, Date.now(), ({ products }) =>
      products.update({ id: 1, removed: false }, product, 10 + index, 2),
    );
    const { print_isbn_canonical: printIsbn, eisbn_canonical: eIsbn } = identifiers;
    expect(store.products.get('A')).toMatchObject({ printIsbn, eIsbn, title: item.title, body: product.body });
    for (const isbn of [one, other]) {
      expect(findProduct(store, isbn)?.vbid).toBe([printIsbn, eIsbn].includes(isbn) ? 'A' : undefined);
    }
  }
  store.close();
  expect(query(db, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
});

it('a product is found by its vbid first, then by a print or electronic ISBN', () => {
  const store = openStore(filledMirror());
  const found = (text: string) => findProduct(store, text)?.vbid;
  for (const text of ['9780306406157', '0-306-40615-2', 'A']) expect(found(text)).toBe('A');
  expect(found('9780804429573')).toBe('9780804429573');
  expect(found('0-8044-2957-x')).toBe('B');
  expect(found('9780306406158')).toBeUndefined();
  expect(() => found('979-10-343-0177-5')).toThrow(expect.objectContaining({ code: 'USAGE' }));
  writeUnder(store.keeperLease, Date.now(), ({ removals }) => removals.remove([4], 1, 2));
  expect(found('979-10-343-0177-5')).toBe('C');
  writeUnder(store.keeperLease, Date.now(), ({ removals }) => removals.remove([3, 1], 1, 2));
  expect(found('0306406152')).toBe('A');
  expect(store.search('978-0-8044-2957-3', 5).map(({ vbid }) => vbid)).toEqual(['9780804429573', 'B']);
  store.close();
});

it('products are found by ISBN in the product command and in the API', async () => {
  const db = filledMirror();
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
