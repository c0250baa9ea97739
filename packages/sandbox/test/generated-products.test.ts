// @module-tag service

import { systemClock } from '@catchword/base/clock';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { firstItem, getJson, getPage, type Item, itWith, sandboxFor } from '@catchword/testing/sandbox-for';
import { expect } from 'vitest';
import { put, send } from './asset-requests.ts';

const it = itWith({ items: 3, details: true });

const EVERYTHING = '?include_details=metadata,subjects,identifiers,accessibility';

function lookUp(sandbox: Sandbox, vbid: string): Promise<Item> {
  return getJson<Item>(sandbox, `/v4/products/${vbid}${EVERYTHING}`);
}

it.for([
  [{ title: 'Renamed' }, { title: 'Renamed' }, {}],
  [{ description: 'About tides.' }, {}, { description: 'About tides.' }],
  [{ print_drm_limit: 7 }, { print_restrictions: 7 }, {}],
  [{ off_sale_date: '2999-01-01' }, { off_sale_date: '2999-01-01' }, {}],
] as const)(
  'an update of a generated product changes only the written fields: %j',
  async ([sent, changed, metadata], { sandbox }) => {
    const { vbid } = await firstItem(sandbox);
    const before = await lookUp(sandbox, vbid);
    await put(sandbox, vbid, sent);
    expect(await lookUp(sandbox, vbid)).toEqual({
      ...before,
      ...changed,
      metadata: { ...(before.metadata as object), ...metadata },
    });
  },
);

it('an update of a generated product changes the first contributor by author_name', async ({ sandbox }) => {
  const { vbid } = await firstItem(sandbox);
  const before = await lookUp(sandbox, vbid);
  const [author, editor] = before.contributors as object[];
  expect([author, editor]).toMatchObject([{ type: 'author' }, { type: 'editor' }]);
  await put(sandbox, vbid, { author_name: 'Renamed' });
  const contributors = [{ name: 'Renamed', type: 'author' }, editor];
  expect(await lookUp(sandbox, vbid)).toEqual({ ...before, contributors });
});

it('an update of a generated product adds only the written fields to a lean product', async () => {
  const sandbox = await sandboxFor({ items: 3 });
  const before = await firstItem(sandbox);
  await put(sandbox, before.vbid, { title: 'Renamed', related_products: { next_edition: '9780306406157' } });
  expect(await firstItem(sandbox)).toEqual({ ...before, title: 'Renamed' });
});

it('2.1: an update changes sales_rights of a generated product member by member', async ({ sandbox }) => {
  const before = await firstItem(sandbox);
  const { vbid } = before;
  const { body } = await put(sandbox, vbid, { sales_rights: { not_for_sale: ['US'] } });
  expect(before.sales_rights).toHaveLength(10);
  expect(body.sales_rights).toEqual({
    exclusive_rights: [],
    non_exclusive_rights: before.sales_rights,
    not_for_sale: ['US'],
  });
  expect(await firstItem(sandbox)).toEqual({ ...before, exclude_sales_rights: ['US'] });
  await put(sandbox, vbid, { sales_rights: { non_exclusive_rights: [], exclusive_rights: ['FR'] } });
  expect(await firstItem(sandbox)).toEqual({
    ...before,
    sales_rights: ['FR'],
    exclude_sales_rights: ['US'],
  });
});

/** The fields that asset and catalog share, by their names in the asset. */
function expected(item: Item) {
  const { description, publication_date, copyright_date } = item.metadata as Record<string, unknown>;
  return {
    created: new Date(String(item.created)).toISOString(),
    print_drm_limit: item.print_restrictions,
    copy_drm_limit: item.copy_restrictions,
    book_format: { name: expect.any(String), value: String(item.format).toLowerCase(), dash2epub: false },
    build: { available: true },
    title: item.title,
    subtitle: item.subtitle,
    language: item.language,
    kind: { value: item.kind },
    isbn: item.vbid,
    publisher: { name: item.publisher },
    variants: [{ sku: item.vbid }, { sku: `${item.vbid}R180` }],
    on_sale_date: item.on_sale_date,
    off_sale_date: item.off_sale_date,
    description,
    publication_date,
    copyright_date,
    sales_rights: { non_exclusive_rights: item.sales_rights },
  };
}

// @rule 2.2-3, 2.2-6, 4.5-3
it('2.2: the sandbox returns a generated asset as the catalog has it, in any version', async () => {
  const time = { now: Date.UTC(2030, 0, 10) };
  const sandbox = await sandboxFor({ items: 100, details: true, clock: { ...systemClock, now: () => time.now } });
  const before = (await getPage(sandbox, '?include_details=metadata')).items;
  time.now += 86_400_000;
  sandbox.catalog.mutate({ update: 50, create: 5 });
  await put(sandbox, before[0]?.vbid ?? '', { edition: 3 });
  const { items } = await getPage(sandbox, '?include_details=metadata');
  expect(items.map(({ created }) => created).slice(0, 100)).toEqual(before.map(({ created }) => created));
  for (const item of items) {
    const { body } = await send(sandbox, 'GET', `/vital_books/${item.vbid}`);
    expect(body).toMatchObject(expected(item));
    // Section 8 excludes 0 and 1.
    expect([item.vbid, body.print_drm_limit]).not.toEqual([item.vbid, expect.toBeOneOf([0, 1])]);
  }
});
