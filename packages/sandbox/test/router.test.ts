// @module-tag service

import { KEY_WITHOUT_CATALOG, OTHER_READER, TOKEN_WITHOUT_CATALOG } from '@catchword/sandbox/accounts/directory';
import type { Operation } from '@catchword/sandbox/http/operation';
import { xmlReply } from '@catchword/sandbox/http/reply';
import { createRouter } from '@catchword/sandbox/http/router';
import { SANDBOX_DEFAULTS } from '@catchword/sandbox/options';
import { CREDENTIALS, sandboxFor } from '@catchword/testing/sandbox-for';
import { request } from 'undici';
import { expect, it } from 'vitest';
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
