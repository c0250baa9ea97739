// @module-tag service
import { request } from 'undici';
import { expect, it } from 'vitest';
import type { TokenState } from '../../src/sandbox/accounts/accounts.ts';
import { KEY_WITHOUT_CATALOG, OTHER_READER, TOKEN_WITHOUT_CATALOG } from '../../src/sandbox/accounts/directory.ts';
import { authentication } from '../../src/sandbox/http/authentication.ts';
import type { Operation } from '../../src/sandbox/http/operation.ts';
import { Rejection, rejectionReply, xmlReply } from '../../src/sandbox/http/reply.ts';
import { createRouter } from '../../src/sandbox/http/router.ts';
import { SANDBOX_DEFAULTS } from '../../src/sandbox/options.ts';
import { readXml } from '../../src/xml/read.ts';
import { CREDENTIALS, sandboxFor } from './client.ts';
import { attributesOf } from './exchange.ts';

function operation(method: Operation['method'], path: string): Operation {
  const run = () => xmlReply({ name: 'done' });
  return { method, path, section: '0', summary: path, token: false, format: 'xml', run };
}

const operations = [operation('GET', '/v4/things/new'), operation('GET', '/v4/things/:id'), operation('PUT', '/v4/a')];
const route = createRouter(operations);

it('the router finds an operation by method and path, and decodes values', () => {
  expect(route('GET', '/v4/things/new')).toMatchObject({ operation: operations[0], values: {} });
  expect(route('GET', '/v4/things/a%20b')).toMatchObject({ operation: operations[1], values: { id: 'a b' } });
  expect(route('GET', '/v4/things/%ZZ')).toMatchObject({ values: { id: '%ZZ' } });
});

it('the router distinguishes unknown paths from methods that are not allowed', () => {
  for (const path of ['/', '/v4/things', '/v4/things/', '/v4/things/a/b'])
    expect([path, route('GET', path)]).toEqual([path, { status: 404 }]);
  expect(route('GET', '/v4/a')).toEqual({ status: 405 });
});

const [key, token] = Object.keys(CREDENTIALS).map((name) => name.toLowerCase()) as [string, string];
const states: Record<string, TokenState> = { good: 'valid', old: 'stale' };
const tokenState = (given: string, token: string) => (given === 'SANDBOXKEY' && states[token]) || 'unknown';
const ownerOf = (given: string) => (given === 'NOSUCHKEY' ? null : given);
const accept = authentication(SANDBOX_DEFAULTS, { ownerOf, tokenState });
const authenticate: (...call: Parameters<typeof accept>) => object = (headers, called) => {
  try {
    return accept(headers, called);
  } catch (error) {
    if (error instanceof Rejection) return rejectionReply(called.format, error);
    throw error;
  }
};
const xml = { token: true, format: 'xml' } as const;
const json = { token: true, format: 'json' } as const;

// @rule 4.1-4, 5-1, 5-3
it('5: the sandbox requires the API key for all operations, the access token for some', () => {
  expect(authenticate({ [key]: 'OTHERKEY' }, { ...json, token: false })).toEqual({
    apiKey: 'OTHERKEY',
    accessToken: null,
  });
  expect(authenticate({ [key]: 'OTHERKEY' }, json)).toMatchObject({ status: 401 });
  expect(authenticate({ [key]: 'NOSUCHKEY' }, { ...json, token: false })).toMatchObject({ status: 403 });
  expect(authenticate({ [key]: 'SANDBOXKEY', [token]: 'good' }, xml)).toEqual({
    apiKey: 'SANDBOXKEY',
    accessToken: 'good',
  });
});

// @rule 5-7
it('5 rule 3: the sandbox replies with 601 to a stale token, in XML and in JSON', () => {
  for (const given of ['old', 'never seen']) {
    const answer = authenticate({ [key]: 'SANDBOXKEY', [token]: given }, xml);
    const [root] = 'body' in answer ? readXml(String(answer.body)) : [];
    expect(root?.name).toBe('error-response');
    expect(root?.children[0]).toMatchObject({ name: 'error-code', text: '601' });
  }
  const stale = authenticate({ [key]: 'SANDBOXKEY', [token]: 'old' }, json);
  expect(stale).toMatchObject({ status: 403, body: expect.stringContaining('601') });
  const unknown = authenticate({ [key]: 'SANDBOXKEY', [token]: 'never seen' }, json);
  expect(unknown).toMatchObject({ status: 403, body: expect.not.stringContaining('601') });
});

// @rule 5-2
it('5: the sandbox has keys of upper-case letters and digits, and tokens of lower-case ones', async () => {
  const { apiKey, otherApiKey, accessToken } = SANDBOX_DEFAULTS;
  for (const key of [apiKey, otherApiKey, KEY_WITHOUT_CATALOG]) expect(key).toMatch(/^[0-9A-Z]+$/);
  const sandbox = await sandboxFor({ items: 0, users: 1 });
  const user = await attributesOf(sandbox, 'user-0000001');
  const readers = [accessToken, OTHER_READER.accessToken, TOKEN_WITHOUT_CATALOG];
  for (const token of [...readers, user.token]) {
    expect(token).toMatch(/^[0-9a-z]+$/);
  }
});

it('the sandbox accepts up to 1 MiB of JSON and 18 MiB of XML, and rejects more in the format of the operation', {
  tags: ['slow'],
}, async () => {
  const sandbox = await sandboxFor({ items: 0 });
  const at = async (method: 'PUT' | 'POST', path: string, bytes: number) => {
    const body = Buffer.alloc(bytes, ' ');
    const response = await request(sandbox.url + path, { method, headers: CREDENTIALS, body });
    return [response.statusCode, response.headers['content-type']];
  };
  expect(await at('PUT', '/v4/assets', 2 ** 20)).toEqual([422, 'application/json']);
  expect(await at('PUT', '/v4/assets', 2 ** 20 + 1)).toEqual([413, 'application/json']);
  expect(await at('POST', '/v3/credentials.xml', 18 * 2 ** 20)).toEqual([400, 'application/xml; charset=utf-8']);
  expect(await at('POST', '/v3/credentials.xml', 18 * 2 ** 20 + 1)).toEqual([413, 'application/xml; charset=utf-8']);
});

// @rule 7-7, 9-3..4
it('9 rule 2: errors are XML for paths that end with .xml, JSON for all others', async () => {
  const sandbox = await sandboxFor({ items: 1 });
  const at = async (path: string, headers: Record<string, string>) => {
    const response = await request(sandbox.url + path, { headers });
    return [response.statusCode, response.headers['content-type'], await response.body.text()];
  };
  expect(await at('/v3/nothing.xml', CREDENTIALS)).toEqual([
    404,
    'application/xml; charset=utf-8',
    expect.stringContaining('<error-code>404</error-code><error-text>/v3/nothing.xml not found</error-text>'),
  ]);
  expect(await at('/v4/nothing', {})).toEqual([401, 'application/json', expect.stringMatching(/^\{"errors":\["/)]);
});
