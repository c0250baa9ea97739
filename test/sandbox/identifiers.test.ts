import { expect } from 'vitest';
import { canonicalIsbn } from '../../src/base/isbn.ts';
import { NEW, put } from './asset-requests.ts';
import { firstItem, getJson, type Item, itWith, sandboxFor } from './client.ts';

const it = itWith({ items: 0 });

const E = { ten: '0306406152', thirteen: '9780306406157' };
const OTHER = { ten: '0198526636', thirteen: '9780198526636' };

async function patched(...patches: readonly unknown[]) {
  const sandbox = await sandboxFor({ items: 0 });
  await put(sandbox, 'L-1', NEW);
  let { identifiers } = (await put(sandbox, 'L-1', {})).body;
  for (const identifiersSent of patches) {
    const reply = await put(sandbox, 'L-1', { identifiers: identifiersSent });
    expect(reply.errors).toEqual([]);
    identifiers = reply.body.identifiers;
  }
  return identifiers;
}

// @rule 2.1.1-2
it('2.1.1 rule 1: the sandbox adds arrays to the existing identifiers', async () => {
  const reply = await patched({ e_isbn_13: [E.thirteen] }, { e_isbn_13: [OTHER.thirteen, E.thirteen] });
  expect(reply.e_isbn_13).toEqual([E.thirteen, OTHER.thirteen]);
  expect(reply.print_isbn_13).toEqual([]);
});

// @rule 2.1.1-1, 2.1.1-3
it.each([
  ['e_isbn_13', 'e_isbn_10'],
  ['print_isbn_13', 'print_isbn_10'],
  ['vbid13_alias', 'vbid10_alias'],
])('2.1.1 rule 2: the sandbox generates the matching form of %s, and the reverse', async (long, short) => {
  const both = { [long]: [E.thirteen], [short]: [E.ten] };
  expect(await patched({ [long]: ['978-0-306-40615-7'] })).toMatchObject(both);
  expect(await patched({ [short]: [E.ten] })).toMatchObject(both);
});

// @rule 2.1.1-3
it('2.1.1 rule 2: the sandbox generates no ISBN-10 for an ISBN with prefix 979', async () => {
  expect(await patched({ e_isbn_13: ['9791090636071'] })).toMatchObject({
    e_isbn_13: ['9791090636071'],
    e_isbn_10: [],
  });
});

// @rule 2.1.1-4
it('2.1.1 rule 3: the sandbox changes nothing for an empty array', async () => {
  expect(await patched({ e_isbn_13: [E.thirteen] }, { e_isbn_13: [], e_isbn_10: [] })).toMatchObject({
    e_isbn_13: [E.thirteen],
    e_isbn_10: [E.ten],
  });
});

// @rule 2.1.1-5
it('2.1.1 rule 4: the sandbox clears for null, and refills from the other form', async () => {
  const added = { e_isbn_10: [E.ten], e_isbn_13: [OTHER.thirteen, '9791090636071'] };
  expect(await patched(added, { e_isbn_13: null })).toMatchObject({
    e_isbn_13: [E.thirteen, OTHER.thirteen],
    e_isbn_10: [E.ten, OTHER.ten],
  });
  expect(await patched(added, { e_isbn_13: null, e_isbn_10: null })).toMatchObject({ e_isbn_13: [], e_isbn_10: [] });
  expect(await patched(added, { e_isbn_13: null, e_isbn_10: [] })).toMatchObject({ e_isbn_10: [E.ten, OTHER.ten] });
});

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

// @rule 2.1-20, 2.1.1-1
it('2.1.1: the sandbox names the place of an invalid ISBN', async ({ sandbox }) => {
  const reply = await put(sandbox, 'L-1', { ...NEW, identifiers: { e_isbn_13: [E.thirteen, '12'] } });
  expect(reply.errors).toEqual([expect.stringMatching(/^identifiers\/e_isbn_13\/1: /)]);
  expect(canonicalIsbn('978-0-306-40615-7')).toBe(E.thirteen);
});
