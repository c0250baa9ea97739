// @module-tag service
import { expect, it } from 'vitest';
import { talk } from './support.ts';

it('9: the path of packages can be configured', async () => {
  const { client, asked } = await talk(() => ({ body: {} }), { packagesPath: '/packages' });
  await client.packages.delete('P-1');
  expect(asked[0]?.url).toBe('/packages/P-1/assets');
});
