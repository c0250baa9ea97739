// @module-tag service
import { expect, it } from 'vitest';
import { failure } from './connection.ts';
import { talk, xml } from './support.ts';

it('9: the path of packages can be configured', async () => {
  const { client, asked } = await talk(() => ({ body: {} }), { packagesPath: '/packages' });
  await client.packages.delete('P-1');
  expect(asked[0]?.url).toBe('/packages/P-1/assets');
});

it('the client validates known fields of a package before they are sent, and sends others unchanged', async () => {
  const { client, asked } = await talk(() => ({ body: {} }));
  const wrong = { name: 5, products: 'A', online_license: { type: 'forever' }, shelf: 1 };
  const error = await failure(client.packages.create(wrong as never));
  expect(error).toMatchObject({ code: 'USAGE' });
  expect(error.message).toMatch(/name: 5.*products: "A".*online_license\.type: "forever".*perpetual/);
  expect(error.message).not.toContain('shelf');
  expect(asked).toEqual([]);
});

it.each(['', '{}', '{"sku":"P-1"}', '{"tags":[]}'])(
  '4.5: a write of a package is done if it is answered with %j',
  async (body) => {
    const { client, asked } = await talk(() => ({ body }));
    await client.packages.delete('P-1');
    expect((await client.packages.update('P-1', {})).raw).toEqual(body === '' ? {} : JSON.parse(body));
    expect(asked).toHaveLength(2);
  },
);

it('a delete that is answered with nothing returns null', async () => {
  const { client } = await talk(() => ({ status: 204, body: '' }));
  expect(await client.packages.delete('P-1')).toBeNull();
});

it('a write that is answered with another package is an error', async () => {
  const { client } = await talk(() => ({ body: { sku: 'P-2' } }));
  const writes = [
    client.packages.update('P-1', { name: 'A' }),
    client.packages.create({ sku: 'P-1', name: 'A', products: ['B'] }),
  ];
  for (const write of writes) {
    const error = await failure(write);
    expect(error).toMatchObject({ code: 'SERVICE_ERROR', retryable: false });
    expect(error.message).toContain('P-2 instead of P-1');
  }
});

it('the client sends unknown fields of a package with unchecked', async () => {
  const { client, asked } = await talk(() => ({ body: { sku: 'P-1' } }));
  const fields = { name: 5, online_license: { type: 'forever' } };
  await client.packages.create(fields, { unchecked: true });
  await client.packages.update('P-1', fields, { unchecked: true });
  expect(asked.map(({ body }) => JSON.parse(body) as unknown)).toEqual([fields, fields]);
});

it.each([
  ['text/plain', 'Product P-1 not found'],
  ['application/json', '"Error 12"'],
  ['application/json', 'false'],
  ['application/json', '{"code":470,"description":"no"}'],
  ['application/json', '{"deleted":'],
  ['application/json', '{"deleted":true}'],
  ['text/html', '<html>OK</html>'],
  ['text/html', '<p>OK</p>'],
  ['text/plain', 'Service down for maintenance'],
  ['application/json', '"Title is required"'],
  ['text/html', 'Too many requests'],
  ['application/json', '"deleted"'],
  ['text/plain', 'OK'],
])('a delete that is answered with %s %s is an error', async (type, body) => {
  const { client, asked } = await talk(() => ({ headers: { 'content-type': type }, body }));
  await failure(client.packages.delete('P-1'));
  expect(asked).toHaveLength(1);
});

it('the client shows an error in XML without a code', async () => {
  const body = '<error message="bad name"/>';
  const { client } = await talk(() => xml(body));
  const error = await failure(client.packages.update('P-1', {}));
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', message: expect.stringContaining('bad name') as string });
});

it('a read of a package that is answered with nothing is an error', async () => {
  for (const body of ['', 'null', '{}']) {
    const { client } = await talk(() => ({ body }));
    expect(await failure(client.packages.read('P-1'))).toMatchObject({ code: 'SERVICE_ERROR' });
  }
});

it('an error together with the sku of a new package names the package', async () => {
  const { client } = await talk(() => ({ body: { sku: 'P-9', errors: ['the price is ignored'] } }));
  const error = await failure(client.packages.create({ name: 'A' }));
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', retryable: false });
  expect(error.message).toMatch(/the price is ignored.*P-9/);
  expect(error.hint).toContain('P-9');
});

it('a package may have a code and a description', async () => {
  const body = { sku: 'P-1', code: '12345', description: 'A package' };
  const { client } = await talk(() => ({ body }));
  expect(await client.packages.read('P-1')).toMatchObject({ sku: 'P-1', raw: body });
});
