import { query } from '@catchword/testing/sqlite';
import { describe, expect, it } from 'vitest';
import { compileView, viewText } from '../../src/view/view.ts';
import { blocksOf } from '../docs/blocks.ts';
import { temporaryMirror } from '../relay/feeding.ts';

const LISTS: readonly (readonly unknown[] | null)[] = [
  null,
  ...Array.from({ length: 16 }, (_, bits) => ['DE', 'FR', 'WORLD', 'ROW'].filter((_, nth) => bits & (1 << nth))),
  ['de', 7, null, {}, 'DE '],
];

function product(more: object) {
  const prices = [{ type: 'digital_list_price', currency: 'USD', value: 10 }];
  const variants = [{ sku: 'S', type: 'single', duration: 'perpetual', distributable: true, prices }];
  return { title: 'Tides', format: 'ePub', variants, sales_rights: ['DE'], ...more };
}

const PRODUCTS = [
  ...LISTS.flatMap((granted) =>
    LISTS.map((excluded) => product({ sales_rights: granted, exclude_sales_rights: excluded })),
  ),
  ...['epub', 'PDF', 'pbk', null].map((format) => product({ format })),
  ...[true, false, 'false', null].map((distributable) => product({ distributable })),
].map((one, nth) => ({ vbid: `P${nth}`, ...one }));

/** Germany is named, or is in the rest of the world, which is what neither list names. */
function maySell(granted: readonly unknown[], excluded: readonly unknown[]): boolean {
  const isIn = (list: readonly unknown[], other: readonly unknown[]) =>
    list.includes('DE') || list.includes('WORLD') || (list.includes('ROW') && !other.includes('DE'));
  return isIn(granted, []) && !isIn(excluded, granted);
}

const ALL = blocksOf('docs/sql.md', 'sh').find((code) => code.includes('sales_rights')) ?? '';
const FILTERS = ['docs/views.md', 'docs/recipes/mariadb-shop.md'].map((page) => {
  const [, where = ''] = /_WHERE="([^"]*\bsales_rights[^"]*)"/.exec(blocksOf(page, 'sh').join('\n')) ?? [];
  return [page, where] as const;
});

describe('what may be sold in a country', () => {
  it.each(FILTERS)('is one rule in docs/sql.md and in the filter of %s', (_, text) => {
    const mirror = temporaryMirror();
    mirror.change(PRODUCTS.map((one) => ({ vbid: one.vbid, body: JSON.stringify(one) })));
    const [, sql = ''] = /"\n([^"]*)"/.exec(ALL) ?? [];
    const inGermany = sql.replaceAll("'US'", "'DE'").replace('LIMIT 5', '');
    const found = query<{ vbid: string }>(mirror.store.path, inGermany).map(({ vbid }) => vbid);
    const view = compileView(viewText(text, undefined), { where: 'WHERE', fields: 'FIELDS' });
    const seen = PRODUCTS.filter((one) => view.of(one.vbid, JSON.stringify(one)) !== null);
    expect(seen.map(({ vbid }) => vbid).sort()).toEqual(found.sort());
    const pairs = LISTS.flatMap((granted) => LISTS.map((excluded) => [granted, excluded] as const));
    const allowed = PRODUCTS.filter((_, nth) => {
      const [granted, excluded] = pairs[nth] ?? [];
      return maySell(granted ?? [], excluded ?? []);
    });
    expect(seen.slice(0, allowed.length)).toEqual(allowed);
    // Of the others, three formats and two answers do not forbid it.
    expect(seen.length).toBe(allowed.length + 4);
  });

  it.each([
    ["coalesce(substr(on_sale_date, 1, 10), '') <= '2027-01-31'", ['P0', 'P1', 'P3']],
    ["coalesce(substr(off_sale_date, 1, 10), '9999') > '2027-01-31'", ['P0', 'P1', 'P2']],
  ])('may depend on a date that the setting gives: %s', (text, expected) => {
    const view = compileView(viewText(text, undefined), { where: 'WHERE', fields: 'FIELDS' });
    const dates = [
      {},
      { on_sale_date: '2027-01-31T00:00:00Z' },
      { on_sale_date: '2027-02-01' },
      { on_sale_date: null, off_sale_date: '2027-01-31' },
    ];
    const seen = dates.map((more, nth) => ({ vbid: `P${nth}`, body: JSON.stringify({ vbid: `P${nth}`, ...more }) }));
    expect(seen.filter((one) => view.of(one.vbid, one.body) !== null).map(({ vbid }) => vbid)).toEqual(expected);
  });

  it.each([
    ["on_sale_date <= date('now')", /Compare with a date that you write/],
    ['on_sale_date <= current_date', /Compare with a date that you write/],
    [
      `NOT EXISTS (SELECT 1 FROM json_each(exclude_sales_rights) e WHERE e.value = 'ROW'
         AND NOT EXISTS (SELECT 1 FROM json_each(sales_rights) g WHERE g.value = 'DE'))`,
      /two lists of the product side by side/,
    ],
  ])('has a hint that fits if an expression asks for it wrongly: %s', (text, hint) => {
    expect(() => compileView(viewText(text, undefined), { where: 'WHERE', fields: 'FIELDS' })).toThrow(
      expect.objectContaining({ hint: expect.stringMatching(hint) }),
    );
  });
});
