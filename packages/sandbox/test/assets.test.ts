// @module-tag service

import { isIsbn } from '@catchword/base/isbn';
import { getPage, itWith, sandboxFor } from '@catchword/testing/sandbox-for';
import { expect } from 'vitest';
import { NEW, put, send } from './asset-requests.ts';

const it = itWith({ items: 0 });

const PRICES = [12.25, 30.5].map((amount) => ({ currency: 'USD', type: 'digital_list_price', amount }));

// @rule 1-1, 4.1-3
it('4.1: the sandbox generates an EAN without a vbid, the same for the same seed, never one that is taken', async () => {
  const [a, b] = await Promise.all([sandboxFor({ items: 5, seed: 8 }), sandboxFor({ items: 5, seed: 8 })]);
  const first = await send(a, 'PUT', '/v4/assets', NEW);
  expect(first.body.vbid).toMatch(/^978\d{10}$/);
  expect(isIsbn(first.body.vbid)).toBe(true);
  const second = await send(a, 'PUT', '/v4/assets', NEW);
  // The second sandbox has an asset with that number already.
  await put(b, second.body.vbid, NEW);
  const [third, fourth] = [await send(b, 'PUT', '/v4/assets', NEW), await send(b, 'PUT', '/v4/assets', NEW)];
  const generated = new Set([third.body.vbid, fourth.body.vbid]);
  expect(generated.size).toBe(2);
  expect(generated.has(second.body.vbid)).toBe(false);
  a.catalog.mutate({ create: 50 });
  b.catalog.mutate({ create: 50 });
  for (const sandbox of [a, b]) {
    const { items } = await getPage(sandbox);
    expect(new Set(items.map(({ vbid }) => vbid)).size).toBe(items.length);
  }
  expect((await getPage(b)).num_items).toBe(58);
});

it('7: the sandbox lists a hundred errors of a request, and says how many more there are', async ({ sandbox }) => {
  const { status, errors } = await put(sandbox, 'L-1', { ...NEW, prices: new Array(1000).fill({}) });
  expect([status, errors.length]).toEqual([422, 101]);
  expect([errors[0], errors.at(-1)]).toEqual(['prices/0/currency: must be an ISO 4217 code', '… and 2900 more']);
});

// @rule 2.2-2, 2.2-21, 2.2-26
it('2.2: each id is a different whole number, and a variant has the time of its update', async ({ sandbox }) => {
  const answers = [
    await put(sandbox, 'L-1', { ...NEW, prices: PRICES }),
    await put(sandbox, 'L-2', { ...NEW, prices: PRICES }),
  ];
  const ids = answers.map(({ body }) => body.id);
  const products = answers.map(({ body }) => (body.variants[0] as unknown as { product_id: unknown }).product_id);
  for (const id of [...ids, ...products]) expect(Number.isSafeInteger(id)).toBe(true);
  expect(new Set(ids).size).toBe(2);
  expect(new Set(products).size).toBe(2);
  for (const { body } of answers) {
    expect(body.variants[0]).toMatchObject({
      updated: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
  }
});
