// @module-tag service
import { expect, it } from 'vitest';
import { failure } from './connection.ts';
import { talk } from './support.ts';

const FIELDS = { imprint_id: '5', title: 'A title', prices: [{ currency: 'USD', type: 'list', amount: '9.90' }] };

it('2.1: fields may be read-only', async () => {
  const { client, asked } = await talk(() => ({ body: { vbid: 'a' } }));
  const fields = {
    prices: [{ currency: 'USD', type: 'list', amount: '9.90' }],
    identifiers: { e_isbn_13: ['9781402894626'] },
    sales_rights: { exclusive_rights: ['US'] },
    discount_codes: ['A'],
    variants: [{ channel_ids: [{ sku: 'a', channel_id_inclusive_access: 'x' }] }],
  } as const;
  await client.assets.update('a', fields, { allowInternal: true });
  expect(JSON.parse(asked[0]?.body ?? '')).toEqual(fields);
});

const FILE = 'files.example/a.epub';

it.each([
  [`reader:pass%26word@${FILE}?X-Signature=abcdef%2F0123456789`, ['pass%26word', 'pass&word', 'abcdef/0123456789']],
  [`${FILE}?X-Signature=abcdef%2F0123456789&key=sesame`, ['abcdef%2F0123456789', 'sesame']],
  [`${FILE}?sig=AbC%2fdEf+GhI%3d&kind=original`, ['AbC%2fdEf+GhI%3d', 'AbC/dEf GhI=', 'AbC%2FdEf%20GhI%3D']],
  [`${FILE}?a=b&key=a%zzb%2fcdef`, ['a%zzb%2fcdef', 'a%zzb/cdef']],
  [`reader:p&ss%21word9@${FILE}`, ['p&ss!word9']],
  [`reader:p%zzword9@${FILE}`, ['p%zzword9']],
])('7: a 422 does not show password and signature of https://%s in any spelling', async (address, secrets) => {
  const url = `https://${address}`;
  for (const text of [url, `<a href="${url}">`, ...secrets.map((secret) => `cannot fetch with ${secret}`)]) {
    const { client } = await talk(() => ({ status: 422, body: { errors: { url: [text] } } }));
    expect((await failure(client.assets.update('a', { url }), ...secrets)).message).toContain('[secret]');
  }
});

it.each([
  ['https://files.example/a.epub?kind=original&x=missing', 'original'],
  ['https://files.example/a.epub?original', 'original'],
  ['i', 'i'],
  ['title', 'title'],
])('7: a 422 shows ordinary words that are also in an address: %s', async (url, word) => {
  const message = `the ${word} title is missing in this edition`;
  const { client } = await talk(() => ({ status: 422, body: { errors: [message] } }));
  expect((await failure(client.books.update('a', { cover_url: url }))).message).toContain(message);
});

// @rule 7-4
it('the client retries an update after a 500 and a broken connection, each time after a pause', async () => {
  const { client, asked, waitedMs } = await talk((_asked, before) =>
    before === 0 ? { status: 500 } : before === 1 ? { hangUp: true } : { body: { vbid: 'a' } },
  );
  expect((await client.assets.update('a', { title: 'A' })).vbid).toBe('a');
  expect(new Set(asked.map(({ body }) => body)).size).toBe(1);
  expect(asked).toHaveLength(3);
  expect(waitedMs()).toBeGreaterThan(0);
});

// @rule 4.1-10, 7-4
it.each([
  ['without a vbid', null, FIELDS],
  ['with a file to ingest', 'a', { url: 'https://files.example/a.epub' }],
])('a request %s is not retried once it may have arrived', async (_name, vbid, fields) => {
  for (const scripted of [{ status: 500 }, { status: 503 }, { hangUp: true }, { body: '{"vbid":' }]) {
    const { client, asked } = await talk(() => scripted);
    await failure(client.assets.put(vbid, fields));
    expect(asked, JSON.stringify(scripted)).toHaveLength(1);
  }
});

it('a write of an asset is aborted by its signal', async () => {
  const gone = new AbortController();
  const { client } = await talk(() => {
    gone.abort();
    return { hangUp: true };
  });
  const error = await failure(client.assets.update('a', {}, { signal: gone.signal }));
  expect(error).toMatchObject({ code: 'INTERRUPTED' });
});
