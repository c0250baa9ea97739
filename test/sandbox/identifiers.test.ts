// @module-tag service
import { expect } from 'vitest';
import { NEW, put } from './asset-requests.ts';
import { firstItem, getJson, type Item, itWith } from './client.ts';

const it = itWith({ items: 0 });

const E = { ten: '0306406152', thirteen: '9780306406157' };
const OTHER = { ten: '0198526636', thirteen: '9780198526636' };

it.for([
  ['e_isbn', { e_isbn_13: null, e_isbn_10: null }],
  ['print_isbn', { print_isbn_13: null, print_isbn_10: null }],
  ['e_isbn', null],
] as const)(
  '2.1.1 rule 4: the sandbox removes %s when its lists are cleared, in the catalog too',
  async ([name, identifiers], { sandbox }) => {
    await put(sandbox, 'L-1', { ...NEW, [name]: '978-0-306-40615-7' });
    const partly = await put(sandbox, 'L-1', { identifiers: { e_isbn_13: null, print_isbn_13: null } });
    expect(partly.body[name]).toBe('978-0-306-40615-7');
    expect((await put(sandbox, 'L-1', { identifiers })).body[name]).toBeNull();
    const none = { print_isbn_canonical: null, eisbn_canonical: null };
    expect((await firstItem(sandbox)).identifiers).toEqual(none);
    expect((await put(sandbox, 'L-1', { identifiers, [name]: OTHER.ten })).body[name]).toBe(OTHER.ten);
  },
);

it.for([
  ['e_isbn', 'eisbn_canonical', { e_isbn_13: [E.thirteen, OTHER.thirteen] }],
  ['e_isbn', 'eisbn_canonical', { e_isbn_10: ['0-306-40615-2'] }],
  ['print_isbn', 'print_isbn_canonical', { print_isbn_13: [E.thirteen] }],
  ['print_isbn', 'print_isbn_canonical', { print_isbn_10: ['0-306-40615-2'] }],
] as const)(
  '2.1.1: %s and %s are the first of the list if none was written by itself: %j',
  async ([name, inCatalog, sent], { sandbox }) => {
    const { body } = await put(sandbox, 'L-1', { ...NEW, identifiers: sent });
    expect(body[name]).toBe(E.thirteen);
    const isbn = name === 'e_isbn' ? E.thirteen : null;
    expect([body.isbn, body.isbn_canonical]).toEqual([isbn, isbn]);
    expect((await getJson<Item>(sandbox, '/v4/products/L-1')).identifiers[inCatalog]).toBe(E.thirteen);
    expect((await put(sandbox, 'L-1', { [name]: OTHER.ten })).body[name]).toBe(OTHER.ten);
    expect((await getJson<Item>(sandbox, '/v4/products/L-1')).identifiers[inCatalog]).toBe(OTHER.thirteen);
  },
);
