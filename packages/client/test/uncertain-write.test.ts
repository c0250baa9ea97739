// @module-tag service
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { listen } from '@catchword/testing/listen';
import { expect, it, onTestFinished } from 'vitest';
import { failure, serve } from './connection.ts';
import { type JsonReply, talk } from './support.ts';

const ASSET = { imprint_id: 5, title: 'Made' };
const USER = { reference: 'r', firstName: 'Ada', lastName: 'L' };
const PAGE = { headers: { 'content-type': 'text/html' }, body: '<!doctype html><p>Soon back' };

/** A second request creates a second one. */
const CREATES = ['asset', 'book', 'package', 'user'] as const;

async function creating(what: (typeof CREATES)[number], reply: JsonReply) {
  const { client, asked } = await talk(() => reply);
  const create = {
    asset: () => client.assets.create(ASSET),
    book: () => client.books.create({ title: 'Made' }),
    package: () => client.packages.create({ sku: 'P' }),
    user: () => client.users.create(USER),
  };
  return { error: await failure(create[what]()), asked };
}

const FINAL = { retryable: false, exitCode: 1 };
const HINT = 'Look for it before you retry: it may have been created.';

// @rule 7-4
it.each(CREATES)('a create is final if its outcome is unknown: %s', async (what) => {
  for (const [reply, code] of [
    [{ status: 500 }, 'SOURCE_UNAVAILABLE'],
    [{ status: 503, headers: { 'retry-after': '3' } }, 'SOURCE_UNAVAILABLE'],
    [{ status: 408 }, 'SOURCE_UNAVAILABLE'],
    [{ hangUp: true }, 'SOURCE_UNAVAILABLE'],
  ] as const) {
    const { error, asked } = await creating(what, reply);
    expect(error).toMatchObject({ ...FINAL, code, hint: HINT });
    expect(error.message).toMatch(/; it may have been created$/);
    expect(asked).toHaveLength(1);
  }
});

it('a create is final after a timeout', async () => {
  const { url, asked } = await serve(() => null);
  const { client } = await talk(() => ({}), { baseUrl: url, timeoutMs: 1_000 });
  const error = await failure(client.assets.create(ASSET));
  expect(error).toMatchObject({ ...FINAL, code: 'SOURCE_TIMEOUT', hint: `${HINT} Raise timeoutMs.` });
  expect(error.message).toContain('did not answer within 1 s; it may have been created');
  expect(asked).toHaveLength(1);
});

it('a create can be retried if the connection failed', async () => {
  const { client } = await talk(() => ({}), { baseUrl: 'http://127.0.0.1:1' });
  const error = await failure(client.assets.create(ASSET));
  expect(error).toMatchObject({ code: 'SOURCE_UNAVAILABLE', retryable: true, exitCode: 75 });
  expect(error.message).not.toContain('may have been created');
});

it('a create can be retried if the connection was not ready in time', async () => {
  // It accepts connections, but does not answer the TLS handshake.
  const server = createServer((socket) => {
    onTestFinished(() => {
      socket.destroy();
    });
  });
  const port = await listen(server);
  const { client } = await talk(() => ({}), { baseUrl: `https://127.0.0.1:${port}`, timeoutMs: 200 });
  const error = await failure(client.users.create(USER));
  expect(error).toMatchObject({ retryable: true, exitCode: 75 });
  expect(error.message).not.toContain('may have been created');
});

it('a create was not carried out if it was rejected', async () => {
  for (const status of [400, 401, 403, 404, 422]) {
    const { error } = await creating('asset', { status, body: { errors: ['no'] } });
    expect(error.message, `${status}`).not.toContain('may have been created');
  }
});

// @rule 4.5-7
it('a write that is not repeatable is final if its outcome is unknown', async () => {
  const { client, asked } = await talk(() => ({ status: 500 }));
  const writes = [
    () => client.packages.update('P', { name: 'N' }),
    () => client.assets.update('a', { url: 'https://files.example/a.epub' }),
    () => client.packages.delete('P'),
  ];
  for (const [at, write] of writes.entries()) {
    const error = await failure(write());
    expect(asked).toHaveLength(at + 1);
    expect(error).toMatchObject({ ...FINAL, hint: 'Check whether it was done before you retry.' });
    expect(error.message).toMatch(/; it may have been done$/);
  }
});

it.each([
  ['is not answered in time', () => null, 'SOURCE_TIMEOUT'],
  ['is broken off', (response: ServerResponse) => response.destroy(), 'SOURCE_UNAVAILABLE'],
  [
    'is answered with a page',
    (response: ServerResponse) => response.writeHead(200, PAGE.headers).end(PAGE.body),
    'SERVICE_ERROR',
  ],
])('a write that is not repeatable is final without a body too, if it %s', async (_name, act, code) => {
  const { url, asked } = await serve((_asked, _before, response) => {
    act(response);
    return null;
  });
  const { client } = await talk(() => ({}), { baseUrl: url, timeoutMs: 1_000 });
  const error = await failure(client.packages.delete('P'));
  expect(error).toMatchObject({
    code,
    retryable: false,
    hint: expect.stringMatching(/^Check whether it was done/) as string,
  });
  expect(asked).toMatchObject([{ method: 'DELETE', body: '' }]);
  const unreachable = await talk(() => ({}), { baseUrl: 'http://127.0.0.1:1' });
  expect(await failure(unreachable.client.packages.delete('P'))).toMatchObject({ retryable: true, exitCode: 75 });
});

it('a write that is not repeatable does not include repeatable writes', async () => {
  const { client } = await talk(() => ({ status: 500 }));
  for (const asking of [() => client.assets.update('a', {}), () => client.assets.put('a', ASSET, { create: true })]) {
    expect(await failure(asking())).toMatchObject({
      retryable: true,
      exitCode: 75,
      hint: expect.stringContaining('Retry later') as string,
    });
  }
});

it('a write that is not repeatable mentions page sizes only for the catalog', async () => {
  const { url } = await serve(() => null);
  const { client } = await talk(() => ({}), { baseUrl: url, timeoutMs: 50 });
  const error = await failure(client.assets.update('a', {}));
  expect(error).toMatchObject({ code: 'SOURCE_TIMEOUT', exitCode: 75 });
  const hint = 'The service may be slow: raise timeoutMs. Or it, or the network, is in trouble.';
  expect(error).toMatchObject({ hint });
});
