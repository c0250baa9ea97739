import { describe, expect, it } from 'vitest';
import { failure } from './connection.ts';
import { talk } from './support.ts';

describe('books', () => {
  // @rule 4.5-1, 9-2
  it('4.5: POST /vital_books creates and returns the identifier that the system generated', async () => {
    const { client, asked } = await talk(() => ({ status: 201, body: { vbid: 'L-999-70031', rating: 5 } }));
    const book = await client.books.create({ title: 'A', anything: { at: ['all'] } });
    expect(book).toMatchObject({ vbid: 'L-999-70031', raw: { rating: 5 } });
    expect(asked[0]).toMatchObject({
      method: 'POST',
      url: '/vital_books',
      body: '{"title":"A","anything":{"at":["all"]}}',
    });
  });

  // @rule 4.5-2..3
  it('4.5: PUT /vital_books/:vbid updates, GET reads', async () => {
    const { client, asked } = await talk(() => ({ body: { vbid: 'a', kind: { value: 'book' } } }));
    await client.books.update('a b', { title: 'B' });
    expect(await client.books.read('a/b')).toMatchObject({ vbid: 'a', kind: { value: 'book' } });
    expect(asked.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['PUT', '/vital_books/a%20b', '{"title":"B"}'],
      ['GET', '/vital_books/a%2Fb', ''],
    ]);
  });

  // @rule 9-2
  it('9: the path has no version, and can be configured', async () => {
    const { client, asked } = await talk(() => ({ body: { vbid: 'a' } }), { booksPath: '/v4/books' });
    await client.books.read('a');
    expect(asked[0]?.url).toBe('/v4/books/a');
  });

  it('retries a read but not a create, and names an unknown book', async () => {
    const { client, asked } = await talk((_asked, before) => (before < 2 ? { status: 502 } : { body: { vbid: 'a' } }));
    expect((await client.books.read('a')).vbid).toBe('a');
    expect(asked).toHaveLength(3);
    const creating = await talk(() => ({ status: 502 }));
    expect(await failure(creating.client.books.create({}))).toMatchObject({ code: 'SOURCE_UNAVAILABLE' });
    expect(creating.asked).toHaveLength(1);
    const none = await talk(() => ({ status: 404, body: { errors: ['Book not found'] } }));
    const error = await failure(none.client.books.read('unknown'));
    expect(error).toMatchObject({ code: 'NOT_FOUND', exitCode: 1, status: 404 });
    expect(error.message).toMatch(/book unknown.*Book not found/);
  });

  it('accepts an empty answer to a write, but not a list', async () => {
    const { client } = await talk(({ method }) => ({ body: method === 'PUT' ? '' : '[]' }));
    expect((await client.books.update('a', {})).raw).toEqual({});
    expect(await failure(client.books.read('a'))).toMatchObject({ code: 'SERVICE_ERROR' });
    expect(await failure(client.books.create([] as never))).toMatchObject({ code: 'USAGE' });
  });

  it.each(['"9781402894626"', 'created', '["L-1"]'])('the outcome of a create is unclear: %s', async (body) => {
    const { client, asked } = await talk(() => ({ status: 201, body }));
    expect(await failure(client.books.create({ title: 'A' }))).toMatchObject({
      code: 'SERVICE_ERROR',
      retryable: false,
      hint: 'Look for it before you retry: it may have been created.',
    });
    expect(asked).toHaveLength(1);
  });

  it.each(['', ' ', 'null', '{}', '{"vbid":null}'])('a read that is answered with %j is an error', async (body) => {
    const { client, asked } = await talk(() => ({ body }));
    const error = await failure(client.books.read('a'));
    expect(error).toMatchObject({ code: 'SERVICE_ERROR', message: expect.stringContaining('nothing') as string });
    expect(error.hint).toContain('/vital_books');
    expect(asked).toHaveLength(1);
  });

  it.each(['text/plain', 'application/json'])('the error of a read shows a text of type %s', async (type) => {
    const { client } = await talk(() => ({ headers: { 'content-type': type }, body: 'Book not found' }));
    const error = await failure(client.books.read('a'));
    expect(error).toMatchObject({ code: 'SERVICE_ERROR', retryable: false });
    expect(error.message).toContain('Book not found');
    expect(error.hint).not.toContain('whether it was done');
  });
});
