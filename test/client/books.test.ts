// @module-tag service
import { expect, it } from 'vitest';
import { failure } from './connection.ts';
import { talk, xml } from './support.ts';

// @rule 9-2
it('9: the path of books has no version, and can be configured', async () => {
  const { client, asked } = await talk(() => ({ body: { vbid: 'a' } }), { booksPath: '/v4/books' });
  await client.books.read('a');
  expect(asked[0]?.url).toBe('/v4/books/a');
});

it('the client retries a read of a book but not a create', async () => {
  const { client, asked } = await talk((_asked, before) => (before < 2 ? { status: 502 } : { body: { vbid: 'a' } }));
  expect((await client.books.read('a')).vbid).toBe('a');
  expect(asked).toHaveLength(3);
  const creating = await talk(() => ({ status: 502 }));
  expect(await failure(creating.client.books.create({}))).toMatchObject({ code: 'SOURCE_UNAVAILABLE' });
  expect(creating.asked).toHaveLength(1);
});

it('a write of a book accepts an empty answer, but not a list', async () => {
  const { client } = await talk(({ method }) => ({ body: method === 'PUT' ? '' : '[]' }));
  expect((await client.books.update('a', {})).raw).toEqual({});
  const error = await failure(client.books.read('a'));
  expect(error).toMatchObject({ code: 'SERVICE_ERROR' });
  expect(error.message).toMatch(/ answered with neither a result nor an error$/);
  expect(await failure(client.books.create([] as never))).toMatchObject({ code: 'USAGE' });
});

it.each([
  '<?xml version="1.0"?><book><vbid>L-9</vbid><title>A &amp; B</title><print-isbn>x</print-isbn></book>',
  '<vital_book vbid="L-9" title="A &amp; B"><print_isbn>x</print_isbn></vital_book>',
  '<response><status>200</status><book><vbid>L-9</vbid><title>A &amp; B</title><print-isbn>x</print-isbn></book></response>',
  '<vbid>L-9</vbid><title>A &amp; B</title><print-isbn>x</print-isbn>',
])('books are read from XML, as live services answer: %s', async (body) => {
  const { client } = await talk(() => xml(body));
  const expected = { vbid: 'L-9', title: 'A & B', print_isbn: 'x', raw: { vbid: 'L-9', print_isbn: 'x' } };
  expect(await client.books.create({ title: 'A & B' })).toMatchObject(expected);
  expect(await client.books.read('L-9')).toMatchObject(expected);
  expect(await client.books.update('L-9', { title: 'A & B' })).toMatchObject(expected);
});

it('books keep lists, empty values and numbers of XML', async () => {
  const list = '<variants type="array"><variant><sku>a</sku></variant></variants>';
  const body = `<book><vbid>L-9</vbid>${list}<edition type="integer">2</edition><subtitle nil="true"/><tag>x</tag><tag>y</tag></book>`;
  const { client } = await talk(() => ({ headers: { 'content-type': 'text/xml' }, body }));
  const book = await client.books.read('L-9');
  expect(book).toMatchObject({ edition: 2, variants: [{ sku: 'a' }] });
  expect(book.raw).toMatchObject({ subtitle: null, tag: ['x', 'y'] });
});

it.each([
  ['<response><book><vbid>L-1</vbid></book><book><vbid>L-2</vbid></book></response>', 'SERVICE_ERROR'],
  ['<response><status>200</status></response>', 'SERVICE_ERROR'],
  ['<book><vbid>L-1</vbid>', 'XML_INVALID'],
  ['<error-response><error-code>422</error-code><error-text>no title</error-text></error-response>', 'SERVICE_INVALID'],
  ['<book><vbid></vbid></book>', 'SERVICE_ERROR'],
  ['', 'SERVICE_ERROR'],
])('4.5: a create that is answered with %s is an error that says to look first', async (body, code) => {
  const { client, asked } = await talk(() => ({ status: 201, headers: { 'content-type': 'application/xml' }, body }));
  const error = await failure(client.books.create({ title: 'A' }));
  expect(error).toMatchObject({ code, retryable: false });
  expect(error.message + error.hint).toMatch(/no title|Look for/);
  expect(asked).toHaveLength(1);
});

it('4.5: an update that is answered with another book is an error', async () => {
  const { client } = await talk(() => ({ body: { vbid: 'OTHER-1', title: 'B' } }));
  const error = await failure(client.books.update('MINE-1', { title: 'B' }));
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', retryable: false });
  expect(error.message).toContain('OTHER-1 instead of MINE-1');
});

it.each(['', ' ', 'null', '{}', '{"vbid":null}'])(
  'a read of a book that is answered with %j is an error',
  async (body) => {
    const { client, asked } = await talk(() => ({ body }));
    const error = await failure(client.books.read('a'));
    expect(error).toMatchObject({ code: 'SERVICE_ERROR', message: expect.stringContaining('nothing') as string });
    expect(error.hint).toContain('/vital_books');
    expect(asked).toHaveLength(1);
  },
);

it.each(['text/plain', 'application/json'])('the error of a read shows a text of type %s', async (type) => {
  const { client } = await talk(() => ({ headers: { 'content-type': type }, body: 'Book not found' }));
  const error = await failure(client.books.read('a'));
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', retryable: false });
  expect(error.message).toContain('Book not found');
  expect(error.hint).not.toContain('whether it was done');
});
