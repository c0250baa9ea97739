import { expect, it } from 'vitest';
import { put } from './assets-client.ts';
import { getPage, sandboxFor } from './client.ts';

const PRICED = {
  imprint_id: 3,
  title: 'Tides',
  fulfillment_only: true,
  prices: [{ currency: 'USD', type: 'digital_list_price', amount: 12 }],
};

it('2.2: ids are whole numbers of their own, a variant says when it was updated', async () => {
  const sandbox = await sandboxFor({ items: 3 });
  const answers = [await put(sandbox, 'L-1', PRICED), await put(sandbox, 'L-2', PRICED)];
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

it('2.1: fulfillment_only is kept as it is sent', async () => {
  const sandbox = await sandboxFor({ items: 3 });
  expect((await put(sandbox, 'L-1', PRICED)).body).toMatchObject({ fulfillment_only: true });
  expect((await put(sandbox, 'L-1', { fulfillment_only: false })).body).toMatchObject({ fulfillment_only: false });
});

it('2.5: each canonical ISBN may be null', async () => {
  const sandbox = await sandboxFor({ items: 400 });
  const { items } = await getPage(sandbox);
  const identifiers = items.map((item) => item.identifiers as Record<string, unknown>);
  for (const name of ['print_isbn_canonical', 'eisbn_canonical']) {
    const values = identifiers.map((one) => one[name]);
    expect(
      values.some((value) => value === null),
      name,
    ).toBe(true);
    expect(
      values.some((value) => value !== null),
      name,
    ).toBe(true);
    expect(values, name).not.toContain(undefined);
  }
});
