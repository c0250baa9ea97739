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

// @rule 4.1-9
it('4.1 rule 1: put and create need imprint_id and title for a new asset, and send nothing without them', async () => {
  const { client, asked } = await talk(() => ({ body: { vbid: 'a' } }));
  for (const wrong of [client.assets.create({}), client.assets.put('a', {}, { create: true })]) {
    expect((await failure(wrong)).message).toMatch(/imprint_id.*title/);
  }
  expect(asked).toEqual([]);
});

// @rule 7-3
it('7: a 422 shows every message of the service, by field too', async () => {
  const body = { errors: { title: ['is missing'], imprint_id: ['is unknown'] } };
  const { client } = await talk(() => ({ status: 422, body }));
  const error = await failure(client.assets.update('a', {}));
  expect(error).toMatchObject({ code: 'SERVICE_INVALID', status: 422, exitCode: 1, retryable: false });
  expect(error.message).toMatch(/title\W+is missing.*imprint_id\W+is unknown/);
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

// @rule 7-3
it('7: a 422 shows the messages of forty fields', async () => {
  const errors = Array.from({ length: 40 }, (_, index) => `field_${index}: is not allowed`);
  const { client } = await talk(() => ({ status: 422, body: { errors } }));
  const error = await failure(client.assets.update('a', {}));
  for (const message of errors) expect(error.message).toContain(message);
});

// @rule 7-1
it('7: an error inside a 200 is an error', async () => {
  const { client } = await talk(() => ({ body: { errors: ['title: is missing'] } }));
  const error = await failure(client.assets.update('a', {}));
  expect(error.code).toMatch(/^SERVICE_/);
  expect(error.message).toContain('title: is missing');
});

it('7: an error together with the identifier of a new asset names the asset', async () => {
  const { client } = await talk(() => ({ body: { vbid: 'NEW-1', title: 'A', errors: ['price 2 ignored'] } }));
  for (const created of [client.assets.create(FIELDS), client.assets.put('NEW-1', FIELDS, { create: true })]) {
    const error = await failure(created);
    expect(error).toMatchObject({ code: 'SERVICE_ERROR', status: 200, retryable: false });
    expect(error.message).toMatch(/price 2 ignored.*vbid NEW-1 may exist now/);
    expect(error.hint).toMatch(/^Look for vbid NEW-1 before you retry/);
  }
  const error = await failure(client.assets.update('NEW-1', {}));
  expect(error.message).not.toContain('may exist');
});

it.each(['', 'null', false, 0, [], ['']])('7: an asset with an empty error was created: %j', async (error) => {
  const { client } = await talk(() => ({ body: { vbid: 'NEW-1', error, errors: error } }));
  expect((await client.assets.create(FIELDS)).vbid).toBe('NEW-1');
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

// @rule 1-4
it('an answer to a create without an identifier is an error with a hint', async () => {
  for (const body of [{ title: 'A' }, '', '[]']) {
    const { client } = await talk(() => ({ body }));
    expect((await failure(client.assets.create(FIELDS))).hint).toMatch(/\.$/);
  }
});

it.each(['', ' ', '.', '..', 'a\u0000'])(
  'the client rejects the identifier %j before anything is sent',
  async (vbid) => {
    const { client, asked } = await talk(() => ({ body: {} }));
    expect(await failure(client.assets.update(vbid, {}))).toMatchObject({ code: 'USAGE' });
    expect(asked).toEqual([]);
  },
);

it('a write of an asset is aborted by its signal', async () => {
  const gone = new AbortController();
  const { client } = await talk(() => {
    gone.abort();
    return { hangUp: true };
  });
  const error = await failure(client.assets.update('a', {}, { signal: gone.signal }));
  expect(error).toMatchObject({ code: 'INTERRUPTED' });
});

it('the client rejects an answer that is nested too deep', async () => {
  const body = `{"vbid":"a","x":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
  const { client } = await talk(() => ({ body }));
  expect(await failure(client.assets.update('a', {}))).toMatchObject({ code: 'SOURCE_BODY', retryable: false });
});

it.each(['{"vbid":"a","title":"A"}', '{"vbid":"L-1","identifiers":{"vbid13_alias":["x","A"]}}'])(
  'an update is done if it is answered with %j',
  async (body) => {
    const { client, asked } = await talk(() => ({ body }));
    expect((await client.assets.update('a', { title: 'A' })).raw).toEqual(JSON.parse(body));
    expect(asked).toHaveLength(1);
  },
);

it.each(['', '{}', '{"title":"A"}', '{"vbid":"b","title":"A"}'])(
  'the outcome of an update is unclear if it is answered with %j',
  async (body) => {
    const { client, asked } = await talk(() => ({ body }));
    expect(await failure(client.assets.update('a', { title: 'A' }))).toMatchObject({
      code: 'SERVICE_ERROR',
      retryable: false,
      hint: 'Check whether it was done before you retry.',
    });
    expect(asked).toHaveLength(1);
  },
);

it.each(['Service down for maintenance', 'OK', '9781402894626', 'HTTP-502'])(
  'the outcome of a write is unclear if it is answered with the text %j',
  async (body) => {
    for (const text of [body, JSON.stringify(body)]) {
      const { client } = await talk(() => ({ headers: { 'content-type': 'text/plain' }, body: text }));
      for (const written of [client.assets.update('a', { title: 'A' }), client.assets.create(FIELDS)]) {
        const error = await failure(written);
        expect(error).toMatchObject({ code: 'SERVICE_ERROR', status: 200, retryable: false });
        expect(error.message).toContain(body);
        expect(error.hint).toMatch(/before you retry/);
      }
    }
  },
);
