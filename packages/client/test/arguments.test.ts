// @module-tag service

import type { Client } from 'catchword-client/client';
import { expect, it } from 'vitest';
import { failure } from './connection.ts';
import { talk } from './support.ts';

/** A client without types, as JavaScript sees it. */
type Untyped = { readonly [group in keyof Client]: Readonly<Record<string, (...given: unknown[]) => Call>> };
type Call = Promise<unknown> | AsyncGenerator<unknown>;

const CYCLE: Record<string, unknown> = {};
CYCLE.itself = CYCLE;

const NAMES = { firstName: 'A', lastName: 'B' };

type Wrong = [what: string, named: string, call: (client: Untyped) => Call | undefined];

const WRONG: readonly Wrong[] = [
  ['undefined credentials', 'not a list', ({ credentials }) => credentials.verify?.(undefined)],
  ['null credentials, one by one', 'not a list', ({ credentials }) => credentials.verifyEach?.(null)],
  ['a text for credentials', 'not a list', ({ credentials }) => credentials.verify?.('abc')],
  ['a text for credentials, one by one', 'not a list', ({ credentials }) => credentials.verifyEach?.('abc')],
  ['a credential that is null', 'credential 2', ({ credentials }) => credentials.verify?.(['a', null])],
  ['a credential that is a number', 'credential 1', ({ credentials }) => credentials.verifyEach?.([1])],
  [
    'a key that is too long',
    'credential 2: its guid has 256 characters',
    ({ credentials }) => credentials.verify?.(['a', { guid: 'x'.repeat(256) }]),
  ],
  ...(
    [
      ['an email', { email: 'a@example.com' }, '"email" cannot be submitted'],
      ['an email with a reference', { reference: 'a', email: 'a@example.com' }, '"email" cannot be submitted'],
      ['a password', { accessToken: 'a', password: 'b' }, '"password" cannot be submitted'],
      ['nothing', {}, 'it has no key'],
      ['an empty reference', { reference: ' ' }, 'its reference is empty'],
      ['an empty string', '', 'its reference is empty'],
      ['a number', { reference: 123 }, 'its reference is not a string'],
      ['a control character', 'a\u0000', 'its reference contains a character that XML cannot hold'],
      ['a lone surrogate', { guid: '\ud800' }, 'its guid contains a character that XML cannot hold'],
    ] as const
  ).map(
    ([what, one, problem]) =>
      [
        `a credential of ${what}`,
        `credential 2: ${problem}`,
        ({ credentials }) => credentials.verify?.(['a', one]),
      ] as Wrong,
  ),
  ['a user that is null', 'the user', ({ users }) => users.create?.(null)],
  ['a reference that is a number', 'reference: 7', ({ users }) => users.create?.({ reference: 7, ...NAMES })],
  ['others that are not an object', 'others', ({ users }) => users.create?.({ reference: 'a', ...NAMES, others: 'x' })],
  ['a number in others', 'others.x: 1', ({ users }) => users.create?.({ reference: 'a', ...NAMES, others: { x: 1 } })],
  [
    'an invalid name in others',
    'others: "a b"',
    ({ users }) => users.create?.({ reference: 'a', ...NAMES, others: { 'a b': 'x' } }),
  ],
  [
    'an unknown field of a user',
    'first_name',
    ({ users }) => users.create?.({ reference: 'a', ...NAMES, first_name: 'x' }),
  ],
  ...(
    [
      [{ reference: 'a', email: 'u@b.example', ...NAMES }, 'either a reference, or an email and a password'],
      [{ email: 'u@b.example', ...NAMES }, 'password: missing, must be a text'],
      [{ email: ' ', password: 'b', ...NAMES }, 'email: " " is not valid, must not be empty'],
      [{ reference: 'a', ...NAMES, firstName: '' }, 'firstName: "" is not valid, must not be empty'],
      [{ reference: 'a', ...NAMES, others: { guid: 'x' } }, 'must be given by its own field'],
    ] as const
  ).map(([user, problem]) => [`a user with ${problem}`, problem, ({ users }) => users.create?.(user)] as Wrong),
  ...['', ' ', '.', '..', 'a\u0000'].map(
    (vbid) => [`the vbid ${JSON.stringify(vbid)}`, 'the vbid', ({ assets }) => assets.update?.(vbid, {})] as Wrong,
  ),
  ['a new asset without fields', 'imprint_id: missing', ({ assets }) => assets.create?.({})],
  ['an asset that is put as a new one', 'title: missing', ({ assets }) => assets.put?.('a', {}, { create: true })],
  ['a name that is a number', 'name: 5', ({ packages }) => packages.create?.({ name: 5 })],
  [
    'a list that is a text',
    'products: "A"',
    ({ packages }) => packages.create?.({ name: 'a', products: 'A', shelf: 1 }),
  ],
  [
    'an unknown type of license',
    'online_license.type: "forever"',
    ({ packages }) => packages.create?.({ name: 'a', online_license: { type: 'forever' } }),
  ],
  ...[0, 1001, 1.5, Number.NaN].map(
    (perPage) => [`${perPage} a page`, 'perPage', ({ catalog }) => catalog.products?.({ perPage })] as Wrong,
  ),
  ...['yesterday', '5', new Date(Number.NaN)].map(
    (from) => [`a time that is ${String(from)}`, 'from', ({ catalog }) => catalog.products?.({ from })] as Wrong,
  ),
  [
    'an end that is not a time',
    'until: "today" is not valid, must be a Date, or an ISO 8601 time',
    ({ catalog }) => catalog.products?.({ until: 'today' }),
  ],
  ['an unknown name in a query', 'SKU', ({ licenses }) => licenses.read?.({ SKU: 'a' })],
  ['a query that is null', 'query', ({ licenses }) => licenses.read?.(null)],
  ['an unknown type', 'type: "foo"', ({ licenses }) => licenses.read?.({ type: 'foo' })],
  ['an empty sku', 'sku: ""', ({ licenses }) => licenses.read?.({ sku: '' })],
  ['a sku that is a number', 'the sku is not a text', ({ licenses }) => licenses.owns?.(978)],
  ['a user id that is a number', 'the user id is not a text', ({ users }) => users.read?.(5)],
  ['a vbid that is an object', 'the vbid is not a text', ({ catalog }) => catalog.product?.({})],
  ['a BigInt in a book', 'new book', ({ books }) => books.create?.({ pages: 10n })],
  ['a circular book', 'book a', ({ books }) => books.update?.('a', CYCLE)],
  ['a book that is a text', 'the book', ({ books }) => books.create?.('a')],
  ['a circular package', 'package', ({ packages }) => packages.create?.({ more: CYCLE })],
  ['a BigInt in an asset', 'edition: 1n', ({ assets }) => assets.update?.('a', { edition: 1n })],
  ['a circular asset', 'title', ({ assets }) => assets.update?.('a', { title: CYCLE })],
  ['details as a text', 'includeDetails', ({ catalog }) => catalog.products?.({ includeDetails: 'metadata' })],
  ['currencies that are not texts', 'currency', ({ catalog }) => catalog.product?.('a', { currency: [1] })],
  ['a time that is a number', 'from', ({ catalog }) => catalog.products?.({ from: 5 })],
  ['options that are null', 'options', ({ catalog }) => catalog.products?.(null)],
  ['options that are a text', 'options', ({ assets }) => assets.create?.({ title: 'a', imprint_id: 1 }, 'now')],
  ['options that are null to a read', 'options', ({ books }) => books.read?.('a', null)],
  ['options that are null to a user', 'options', ({ users }) => users.read?.('a', null)],
  ['options that are null to a reset', 'options', ({ users }) => users.resetAccess?.(null)],
  ['an unknown option', 'perpage', ({ catalog }) => catalog.products?.({ perpage: 5 })],
  ['an option of another operation', 'from', ({ catalog }) => catalog.product?.('a', { from: 'today' })],
  ['an unknown option of an asset', 'Create', ({ assets }) => assets.put?.('a', {}, { Create: true })],
  ['an option that an update does not have', 'create', ({ assets }) => assets.update?.('a', {}, { create: true })],
  ['an unknown option of a read', 'timeout', ({ licenses }) => licenses.owns?.('a', { timeout: 5 })],
  ['options that are a signal', 'AbortSignal', ({ books }) => books.read?.('a', new AbortController().signal)],
  ['a signal of another type', 'signal', ({ packages }) => packages.delete?.('a', { signal: {} })],
  [
    'a signal that is its controller',
    'signal',
    ({ licenses }) => licenses.owns?.('a', { signal: new AbortController() }),
  ],
];

async function done(call: Call | undefined): Promise<unknown> {
  if (call === undefined) throw new Error('unknown operation');
  return Symbol.asyncIterator in call ? await call.next() : await call;
}

// @rule 2.4-3, 4.1-9, 4.3-5..6, 4.4-9
it.each(WRONG)('invalid input is rejected before anything is sent: %s', async (_name, named, call) => {
  const { client, asked } = await talk(() => ({}));
  const error = await failure(done(call(client as unknown as Untyped)), 'a@example.com');
  expect(error).toMatchObject({ code: 'USAGE', message: expect.stringContaining(named) as string });
  expect(error.hint).toBeDefined();
  expect(asked).toEqual([]);
});

it('invalid input is rejected without showing a password', async () => {
  const { client } = await talk(() => ({}));
  const user = { email: 'a@example.com', password: 31_415_926, ...NAMES };
  const error = await failure(client.users.create(user as never), '31415926');
  expect(error).toMatchObject({ code: 'USAGE', message: expect.stringContaining('password') as string });
});
