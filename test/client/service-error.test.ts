import { expect, it } from 'vitest';
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
    hint: expect.stringContaining('larger than the service accepts') as string,
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

it('the hint of an error names the address if the path has no identifier, and the identifier otherwise', async () => {
  const { client } = await talk(({ url }) => ({ status: 404, body: { errors: [`${url} not found`] } }));
  for (const asking of [
    () => client.licenses.read(),
    () => client.assets.create(FIELDS),
    () => client.users.resetAccess(),
    () => client.packages.create({ sku: 'P' }),
  ]) {
    const error = await failure(asking());
    expect(error).toMatchObject({ code: 'SOURCE_NOT_SERVICE', status: 404, setting: 'baseUrl' });
    expect(error.hint).toBe('Check baseUrl: the service does not have this operation at this address.');
  }
  for (const asking of [
    () => client.assets.update('a', {}),
    () => client.packages.read('P'),
    () => client.books.read('a'),
    () => client.users.read('r'),
  ]) {
    expect(await failure(asking())).toMatchObject({
      code: 'NOT_FOUND',
      hint: expect.stringContaining('Check the identifier') as string,
    });
  }
});
