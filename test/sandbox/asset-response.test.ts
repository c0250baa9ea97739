import { expect } from 'vitest';
import { put } from './asset-requests.ts';
import { getPage, itWith, sandboxFor } from './client.ts';

const it = itWith({ items: 0 });

const PRICED = {
  imprint_id: 3,
  title: 'Tides',
  prices: [{ currency: 'USD', type: 'digital_list_price', amount: 12 }],
};

// @rule 2.2-2, 2.2-21, 2.2-26
it('2.2: each id is a different whole number, and a variant has the time of its update', async ({ sandbox }) => {
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

// @rule 2.2-4
it('2.2: isbn_canonical is the ISBN without dashes', async ({ sandbox }) => {
  const answers = [
    await put(sandbox, 'L-1', { ...PRICED, e_isbn: '978-0-306-40615-7' }),
    await put(sandbox, 'L-2', { ...PRICED, e_isbn: '0-306-40615-2' }),
    await put(sandbox, '978-0-19-852663-6', PRICED),
    await put(sandbox, 'L-3', PRICED),
  ];
  expect(answers.map(({ body }) => [body.isbn, body.isbn_canonical])).toEqual([
    ['978-0-306-40615-7', '9780306406157'],
    ['0-306-40615-2', '0306406152'],
    ['978-0-19-852663-6', '9780198526636'],
    [null, null],
  ]);
});

// @rule 2.1-27
it('2.1: parent_isbn must be an ISBN, and is returned as parent_id', async ({ sandbox }) => {
  const parents = [];
  for (const more of [{}, { parent_isbn: '0-306-40615-2' }, {}, { parent_isbn: '9780198526636' }]) {
    parents.push((await put(sandbox, 'L-1', { ...PRICED, ...more })).body.parent_id);
  }
  expect(parents).toEqual([null, '0-306-40615-2', '0-306-40615-2', '9780198526636']);
  for (const wrong of ['9780306406158', 'tides', 9780306406157, true]) {
    const { status, errors } = await put(sandbox, 'L-1', { parent_isbn: wrong });
    expect([wrong, status, errors]).toEqual([wrong, 422, [expect.stringMatching(/^parent_isbn: must /)]]);
  }
});

// @rule 2.1.2-5
it('2.1.2: tax_inclusive must be true or false, in quotes or not', async ({ sandbox }) => {
  const reply = async (taxInclusive: unknown) => {
    const prices = [{ currency: 'USD', type: 'digital_list_price', amount: 1, tax_inclusive: taxInclusive }];
    const { status, errors } = await put(sandbox, 'L-1', { ...PRICED, prices });
    return [status, ...errors];
  };
  for (const right of [true, false, 'true', 'false']) expect([right, ...(await reply(right))]).toEqual([right, 200]);
  for (const wrong of ['yes', '', 1, null, {}]) {
    expect([wrong, ...(await reply(wrong))]).toEqual([wrong, 422, 'prices/0/tax_inclusive: must be true or false']);
  }
});

// @rule 2.5-3
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
