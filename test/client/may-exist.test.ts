import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { failure, serve } from './connection.ts';
import { type JsonReply, talk } from './support.ts';

const ASSET = { imprint_id: 5, title: 'Made' };
const USER = { reference: 'r', firstName: 'Ada', lastName: 'L' };
const PAGE = { headers: { 'content-type': 'text/html' }, body: '<!doctype html><p>Soon back' };

/** What is made once more by asking once more. */
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
const HINT = 'Look for it before trying again: it may have been created.';

describe('what was to be created', () => {
  it.each(CREATES)('may exist where nobody knows whether it was done: %s', async (what) => {
    for (const [reply, code] of [
      [{ status: 500 }, 'SOURCE_UNAVAILABLE'],
      [{ status: 503, headers: { 'retry-after': '3' } }, 'SOURCE_UNAVAILABLE'],
      [{ status: 408 }, 'SOURCE_UNAVAILABLE'],
      [{ hangUp: true }, 'SOURCE_UNAVAILABLE'],
    ] as const) {
      const { error, asked } = await creating(what, reply);
      expect(error).toMatchObject({ ...FINAL, code, hint: HINT });
      expect(error.message).toMatch(/; what was to be created may exist now$/);
      expect(asked).toHaveLength(1);
    }
  });

  it.each([
    ['broken JSON', { body: '{"vbid":' }, 'SOURCE_BODY', 1],
    ['a page', PAGE, 'SERVICE_ERROR', 1],
    ['a code 500 in a 200', { body: { error: { code: 500, message: 'oops' } } }, 'SOURCE_UNAVAILABLE', 1],
  ])('may exist after an answer that is %s', async (_name, reply, code, exitCode) => {
    const { error } = await creating('asset', reply);
    expect(error).toMatchObject({ code, hint: HINT, retryable: false, exitCode });
  });

  it('may exist after broken XML', async () => {
    const { error } = await creating('user', { headers: { 'content-type': 'application/xml' }, body: '<user><guid>' });
    expect(error).toMatchObject({ ...FINAL, code: 'XML_INVALID', hint: HINT });
  });

  it('may exist once it was sent and not answered in time', async () => {
    const { url, asked } = await serve(() => null);
    const { client } = await talk(() => ({}), { baseUrl: url, timeoutMs: 1_000 });
    const error = await failure(client.assets.create(ASSET));
    expect(error).toMatchObject({ ...FINAL, code: 'SOURCE_TIMEOUT', hint: `${HINT} Raise timeoutMs.` });
    expect(error.message).toContain('did not answer within 1 s; what was to be created may exist now');
    expect(asked).toHaveLength(1);
  });

  it('does not exist where no connection was made', async () => {
    const { client } = await talk(() => ({}), { baseUrl: 'http://127.0.0.1:1' });
    const error = await failure(client.assets.create(ASSET));
    expect(error).toMatchObject({ code: 'SOURCE_UNAVAILABLE', retryable: true, exitCode: 75 });
    expect(error.message).not.toContain('may exist');
  });

  it('does not exist where a connection was not ready in time', async () => {
    // It takes connections, and never answers a TLS handshake.
    const server = createServer((socket) => {
      onTestFinished(() => {
        socket.destroy();
      });
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    onTestFinished(() => {
      server.close();
    });
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const { client } = await talk(() => ({}), { baseUrl: `https://127.0.0.1:${port}`, timeoutMs: 200 });
    const error = await failure(client.users.create(USER));
    expect(error).toMatchObject({ retryable: true, exitCode: 75 });
    expect(error.message).not.toContain('may exist');
  });

  it('does not exist where it was refused', async () => {
    for (const status of [400, 401, 403, 404, 422]) {
      const { error } = await creating('asset', { status, body: { errors: ['no'] } });
      expect(error.message, `${status}`).not.toContain('may exist');
    }
  });
});

describe('what must not be done twice', () => {
  it('may have been done where nobody knows', async () => {
    const { client } = await talk(() => ({ status: 500 }));
    for (const asking of [
      () => client.packages.update('P', { name: 'N' }),
      () => client.assets.update('a', { url: 'https://files.example/a.epub' }),
      () => client.packages.delete('P'),
    ]) {
      const error = await failure(asking());
      expect(error).toMatchObject({ ...FINAL, hint: 'Look before trying again.' });
      expect(error.message).toMatch(/; it may have been done all the same$/);
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
  ])('may have been done without a body as well, where it %s', async (_name, act, code) => {
    const { url, asked } = await serve((_asked, _before, response) => {
      act(response);
      return null;
    });
    const { client } = await talk(() => ({}), { baseUrl: url, timeoutMs: 1_000 });
    const error = await failure(client.packages.delete('P'));
    expect(error).toMatchObject({
      code,
      retryable: false,
      hint: expect.stringMatching(/^Look before trying/) as string,
    });
    expect(asked).toMatchObject([{ method: 'DELETE', body: '' }]);
    const unreachable = await talk(() => ({}), { baseUrl: 'http://127.0.0.1:1' });
    expect(await failure(unreachable.client.packages.delete('P'))).toMatchObject({ retryable: true, exitCode: 75 });
  });

  it('is all that this is said of: what can be asked for again may be', async () => {
    const { client } = await talk(() => ({ status: 500 }));
    for (const asking of [() => client.assets.update('a', {}), () => client.assets.put('a', ASSET, { create: true })]) {
      expect(await failure(asking())).toMatchObject({
        retryable: true,
        exitCode: 75,
        hint: expect.stringContaining('try again later') as string,
      });
    }
  });

  it('a time that is up speaks of pages only where there are some', async () => {
    const { url } = await serve(() => null);
    const { client } = await talk(() => ({}), { baseUrl: url, timeoutMs: 50 });
    const error = await failure(client.assets.update('a', {}));
    expect(error).toMatchObject({ code: 'SOURCE_TIMEOUT', hint: 'Raise timeoutMs.', exitCode: 75 });
  });
});
