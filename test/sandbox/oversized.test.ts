import { expect } from 'vitest';
import { NEW, put, send } from './asset-requests.ts';
import { itWith } from './client.ts';

const it = itWith({ items: 0 });

it('7: lists a hundred errors of a request, and says how many more there are', async ({ sandbox }) => {
  const { status, errors } = await put(sandbox, 'L-1', { ...NEW, prices: new Array(1000).fill({}) });
  expect([status, errors.length, errors[0], errors.at(-1)]).toEqual([
    422,
    101,
    'prices/0/currency: must be an ISO 4217 code',
    '… and 2900 more',
  ]);
});

it('4.5: accepts a package of tens of thousands of products', async ({ sandbox }) => {
  await put(sandbox, 'L-1', NEW);
  const products = new Array(40_000).fill('L-1');
  const { status, body } = await send(sandbox, 'POST', '/v4/packages', { name: 'a', products });
  expect([status, body.products]).toEqual([200, ['L-1']]);
});
