// @module-tag service
import { expect, it } from 'vitest';
import { talk } from './support.ts';

it('9: the path of packages can be configured', async () => {
  const { client, asked } = await talk(() => ({ body: {} }), { packagesPath: '/packages' });
  await client.packages.delete('P-1');
  expect(asked[0]?.url).toBe('/packages/P-1/assets');
});

it('the client sends unknown fields of a package with unchecked', async () => {
  const { client, asked } = await talk(() => ({ body: { sku: 'P-1' } }));
  const fields = { name: 5, online_license: { type: 'forever' } };
  await client.packages.create(fields, { unchecked: true });
  await client.packages.update('P-1', fields, { unchecked: true });
  expect(asked.map(({ body }) => JSON.parse(body) as unknown)).toEqual([fields, fields]);
});
