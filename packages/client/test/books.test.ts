// @module-tag service
import { expect, it } from 'vitest';
import { failure } from './connection.ts';
import { talk } from './support.ts';

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
