import { describe, expect, it } from 'vitest';
import { failure } from './connection.ts';
import { talk } from './support.ts';

const XML = { 'content-type': 'application/xml' };
const FIELDS = { imprint_id: 5, title: 'Made' };

describe('a refusal says what to look at', () => {
  it('the API key, where it is not valid', async () => {
    for (const status of [200, 403]) {
      const body = '<error code="403" message="API key is not valid"/>';
      const { client } = await talk(() => ({ status, headers: XML, body }));
      expect(await failure(client.credentials.verify(['r']))).toMatchObject({
        code: 'SERVICE_FORBIDDEN',
        hint: 'Check apiKey: it is not valid, or does not own what it asks for.',
      });
    }
  });

  it('the size of a body that is too large', async () => {
    const { client } = await talk(() => ({ status: 413, body: { errors: ['too large'] } }));
    expect(await failure(client.assets.create(FIELDS))).toMatchObject({
      code: 'SOURCE_REFUSED',
      status: 413,
      hint: expect.stringContaining('larger than the service takes') as string,
    });
  });

  it('the status, where nothing is known of it; doctor looks at the catalog alone', async () => {
    const { client } = await talk(() => ({ status: 418, body: '' }));
    for (const asking of [() => client.assets.update('a', {}), () => client.licenses.read()]) {
      const error = await failure(asking());
      expect(error).toMatchObject({ code: 'SOURCE_REFUSED', status: 418 });
      expect(error.hint).toBe('Look up status 418 in the service’s documentation.');
    }
  });

  it('the address, where the path has no identifier, and else that', async () => {
    const { client } = await talk(({ url }) => ({ status: 404, body: { errors: [`${url} not found`] } }));
    for (const asking of [
      () => client.licenses.read(),
      () => client.assets.create(FIELDS),
      () => client.users.resetAccess(),
      () => client.packages.create({ sku: 'P' }),
    ]) {
      const error = await failure(asking());
      expect(error).toMatchObject({ code: 'NOT_FOUND', status: 404 });
      expect(error.hint).toBe('Check baseUrl: there may be no such operation at this address.');
      expect(error.message).not.toContain('is not known');
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
});
