// @module-tag service
import { expect, it } from 'vitest';
import type { Client } from '../../src/client/client.ts';
import { failure } from './connection.ts';
import { talk } from './support.ts';

const XML = { 'content-type': 'application/xml' };
const FIELDS = { imprint_id: 5, title: 'Made' };

it('the hint of an error names the API key, if it is not valid', async () => {
  for (const status of [200, 403]) {
    const body = '<error code="403" message="API key is not valid"/>';
    const { client } = await talk(() => ({ status, headers: XML, body }));
    expect(await failure(client.credentials.verify(['r']))).toMatchObject({
      code: 'SERVICE_FORBIDDEN',
      setting: 'apiKey',
      hint: 'Check apiKey: the key is invalid, or lacks the permission.',
    });
  }
});

it('the hint of an error names the size of a body that is too large', async () => {
  const { client } = await talk(() => ({ status: 413, body: { errors: ['too large'] } }));
  expect(await failure(client.assets.create(FIELDS))).toMatchObject({
    code: 'SOURCE_REFUSED',
    status: 413,
    hint: expect.stringContaining('larger than the service, or a proxy, accepts') as string,
  });
});

it('the hint of an error names an unknown status', async () => {
  const { client } = await talk(() => ({ status: 418, body: '' }));
  for (const asking of [() => client.assets.update('a', {}), () => client.licenses.read()]) {
    const error = await failure(asking());
    expect(error).toMatchObject({ code: 'SOURCE_REFUSED', status: 418 });
    expect(error.hint).toBe('Look up status 418 in the documentation of the service.');
  }
});

const ADDRESS =
  'Check baseUrl: the service does not have this operation at this address, or hides it from this API key.';
const IDENTIFIER = 'Check the identifier, and whether this API key may see it.';

it.each<[string, string, (client: Client) => Promise<unknown>]>([
  ['SOURCE_NOT_SERVICE', ADDRESS, ({ licenses }) => licenses.read()],
  ['SOURCE_NOT_SERVICE', ADDRESS, ({ assets }) => assets.create(FIELDS)],
  ['SOURCE_NOT_SERVICE', ADDRESS, ({ users }) => users.resetAccess()],
  ['SOURCE_NOT_SERVICE', ADDRESS, ({ packages }) => packages.create({ sku: 'P' })],
  ['NOT_FOUND', IDENTIFIER, ({ assets }) => assets.update('a', {})],
  ['NOT_FOUND', IDENTIFIER, ({ packages }) => packages.read('P')],
  ['NOT_FOUND', IDENTIFIER, ({ books }) => books.read('a')],
  ['NOT_FOUND', IDENTIFIER, ({ users }) => users.read('r')],
])('a 404 is %s, with the hint %s, for the operation %s', async (code, hint, ask) => {
  const { client } = await talk(({ url }) => ({ status: 404, body: { errors: [`${url} not found`] } }));
  expect(await failure(ask(client))).toMatchObject({ code, status: 404, hint });
});
