// @module-tag service

import { CatchwordError, type ClientOptions, createClient } from 'catchword-client/client';
import { expect, it } from 'vitest';
import { failure, KEY, TOKEN } from './connection.ts';
import { talk, xml } from './support.ts';

const XML = { 'content-type': 'application/xml; charset=utf-8' };

const GIVEN = { baseUrl: 'http://a.example', apiKey: KEY };

function refusal(options: unknown): CatchwordError {
  try {
    createClient(options as ClientOptions);
  } catch (error) {
    if (error instanceof CatchwordError) return error;
    throw error;
  }
  throw new Error('the options were accepted');
}

it('createClient names every invalid option, without secrets', () => {
  const error = refusal({
    apiKey: 'secret key',
    baseURL: 'http://a',
    timeoutMs: 0,
    rateLimit: 'fast',
    connections: 0,
  });
  expect(error).toMatchObject({ code: 'USAGE', exitCode: 2 });
  for (const name of ['baseUrl', 'apiKey', 'baseURL', 'timeoutMs', 'rateLimit', 'connections']) {
    expect(error.message).toContain(`${name}: `);
  }
  expect(error.message).not.toContain('secret');
  expect(error.hint).toContain('baseUrl');
});

it.each([{}, { apiKey: 5, baseUrl: 5, tokenStore: 5 }])(
  'createClient has its own messages for missing options and wrong types: %j',
  (options) => {
    const { message } = refusal(options);
    expect(message.match(/must be a text/g)).toHaveLength('apiKey' in options ? 3 : 2);
    expect(message).not.toContain('Invalid input');
  },
);

it.each([
  [{ baseUrl: 'ftp://a.example' }, 'http'],
  [{ baseUrl: 'http://user:hidden@a.example' }, 'user name or password'],
  [{ apiKeyHeader: 'two words' }, 'header name'],
  [{ booksPath: 'vital_books' }, 'a path'],
  [{ packagesPath: '/v4/../packages' }, 'a path'],
  [{ lookupPath: '/v4/products' }, ':vbid'],
  [{ usersSuffix: 'xml' }, 'suffix'],
  [{ reference: '' }, 'reference'],
  [{ fetch: () => {} }, 'fetch: unknown field'],
])('createClient rejects %j', (more, said) => {
  const error = refusal({ ...GIVEN, ...more });
  expect(error.message).toContain(said);
  expect(error.message).not.toMatch(/hidden/);
});

it.each([undefined, null, 'http://a.example'])('createClient rejects %j instead of an object', (options) => {
  expect(refusal(options)).toMatchObject({ code: 'USAGE' });
});

// @rule 5-1, 5-3
it('5: header names can be configured; only v3 licenses and v4 products get the access token', async () => {
  const { client, asked } = await talk(
    ({ url }) => (url.includes('.xml') ? xml('<licenses/>') : { body: { vbid: 'a', ...(url.includes('?') && PAGE) } }),
    { apiKeyHeader: 'X-Key', accessTokenHeader: 'X-Token' },
  );
  await client.licenses.read();
  await client.catalog.products().next();
  await client.assets.update('a', {});
  await client.books.read('a');
  await client.packages.read('a');
  expect(asked.map(({ headers }) => headers['x-key'])).toEqual(Array.from({ length: 5 }, () => KEY));
  expect(asked.map(({ headers }) => headers['x-token'])).toEqual([TOKEN, TOKEN, undefined, undefined, undefined]);
});

// @rule 4.2-7, 4.2-10
it('4.2 rule 2: owns requests one title without spaces around it, and an empty answer means no', async () => {
  const { client, asked } = await talk(({ url }) =>
    xml(`<licenses>${url.endsWith('?sku=A') ? '<license sku="A" expiration="never"/>' : ''}</licenses>`),
  );
  expect(await client.licenses.owns('A')).toBe(true);
  expect(await client.licenses.owns(' A\t')).toBe(true);
  expect((await client.licenses.read({ sku: '\u00a0A\n' })).licenses).toHaveLength(1);
  expect(await client.licenses.owns('B')).toBe(false);
  const [own, other] = ['/v3/licenses.xml?sku=A', '/v3/licenses.xml?sku=B'];
  expect(asked.map(({ url }) => url)).toEqual([own, own, own, other]);
  expect(await failure(client.licenses.owns(' '))).toMatchObject({ code: 'USAGE' });
  expect(asked).toHaveLength(4);
});

// @rule 5-7
it('5 rule 3: resetAccess resets the token, and with a reference fetches and uses the new one', async () => {
  const { client, asked } = await talk(
    ({ url }) =>
      xml(
        url.includes('credentials')
          ? '<credentials><credential reference="r" guid="g" access-token="fresh" email=""/></credentials>'
          : url.includes('licenses')
            ? '<licenses/>'
            : '',
      ),
    { reference: 'r' },
  );
  await client.users.resetAccess();
  await client.licenses.read();
  expect(asked.map(({ method, url }) => `${method} ${url}`)).toEqual([
    'POST /v3/users/reset_access.xml',
    'POST /v3/credentials.xml',
    'GET /v3/licenses.xml',
  ]);
  expect(asked.map(({ headers }) => headers['x-service-access-token'])).toEqual([TOKEN, undefined, 'fresh']);
});

it('a client asks again for an unknown user after creating one', async () => {
  let isCreated = false;
  const { client } = await talk(
    ({ url, headers }) => {
      if (url.includes('licenses')) {
        return xml(headers['x-service-access-token'] === 'new' ? '<licenses/>' : '<error code="601"/>');
      }
      if (url.includes('users')) {
        isCreated = true;
        return xml('<user><reference>me</reference><guid>G</guid></user>');
      }
      const answer = isCreated ? 'credential reference="me" access-token="new"' : 'error code="603" reference="me"';
      return xml(`<credentials><${answer}/></credentials>`);
    },
    { reference: 'me' },
  );
  expect(await failure(client.licenses.read())).toMatchObject({ code: 'SERVICE_UNKNOWN_USER' });
  await client.users.create({ reference: 'me', firstName: 'A', lastName: 'B' });
  expect(await client.licenses.read()).toEqual({ licenses: [] });
});

it('a client names options in errors, not environment variables', async () => {
  const { client } = await talk(({ url }) => {
    if (url.includes('licenses')) return { status: 401, headers: XML, body: '<error code="601" message="stale"/>' };
    if (url.includes('credentials')) return xml('<credentials><error code="603"/></credentials>');
    if (url.includes('users')) return { status: 404, headers: XML, body: '<error code="474" message="unknown"/>' };
    return { status: 401 };
  });
  const { client: ofUser } = await talk(
    ({ url }) =>
      url.includes('licenses')
        ? xml('<error code="601" message="stale"/>')
        : xml('<credentials><error code="603" message="unknown" reference="me"/></credentials>'),
    { reference: 'me' },
  );
  const { client: slow } = await talk(() => ({ status: 429, headers: { 'retry-after': '9999' } }));
  const errors = [
    [await failure(client.licenses.read()), 'reference', /^Set reference to /],
    [
      await failure(client.books.read('a')),
      'apiKey',
      /^Check apiKey and the access token\. The key was sent in the header X-Service-API-Key\.$/,
    ],
    [await failure(client.users.read('a')), undefined, /create the user/],
    [await failure(ofUser.licenses.read()), 'reference', /^Check reference;/],
    [await failure(ofUser.users.resetAccess()), 'reference', /reference/],
    [await failure(slow.catalog.product('a')), 'rateLimit', /^Lower rateLimit;/],
    [refusal({ ...GIVEN, tokenStore: '/nowhere/at/all/token' }), 'tokenStore', /^Set tokenStore to a file/],
  ] as const;
  for (const [error, setting, hint] of errors) {
    expect([error.setting, error.hint]).toEqual([setting, expect.stringMatching(hint)]);
    expect(`${error.message} ${error.hint}`).not.toMatch(/CATCHWORD_|catchword user/);
  }
  expect(errors[5][0]).toMatchObject({ code: 'SOURCE_RATE_LIMITED', status: 429, retryAfterMs: 9_999_000 });
});

it('a client keeps its rate across all operations', async () => {
  const { client, waitedMs } = await talk(() => ({ body: { vbid: 'a' } }), { rateLimit: '60/min' });
  await Promise.all([client.books.read('a'), client.assets.update('a', {}), client.packages.read('a')]);
  expect(waitedMs()).toBeGreaterThanOrEqual(2_000);
});

const PAGE = { num_items: 0, page: 1, per_page: 1000, total_pages: 0, items: [] };
