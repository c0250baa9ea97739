import { objectMembers } from '@catchword/catalog/json-text';
import { expect, it } from 'vitest';
import { createHistory, productAsOf, productChanges } from '../../src/store/history/history.ts';
import type { ProductRow } from '../../src/store/rows/product-rows.ts';
import { serveHarness } from './place.ts';

async function scene() {
  const served = await serveHarness();
  return {
    ...served,
    row: (vbid: string): ProductRow => {
      const row = served.store.products.get(vbid);
      if (row === undefined) throw new Error(`no product ${vbid}`);
      return row;
    },
  };
}

const body = (vbid: string, members: string): string => `{"vbid":${JSON.stringify(vbid)},${members}}`;
/** The addresses of all links of a page. */
const linksOf = (html: string): string[] =>
  [...html.matchAll(/<a [^>]*?href="([^"]*)"/g)].map(([, href = '']) => href.replaceAll('&amp;', '&'));
const HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)>" \' &amp;';

it('a list reads only the beginning of a long title for a list', async () => {
  const { change, store } = await scene();
  const title = `word 😀${'x'.repeat(1_000_000)}`;
  change([{ vbid: 'P1', body: body('P1', `"title":${JSON.stringify(title)},"publisher":${JSON.stringify(title)}`) }]);
  const lists = [store.search('word', 5), store.products.newest(5), store.changes.list(5).changes];
  for (const [first] of lists) expect(first?.title).toBe(`word 😀${'x'.repeat(1_994)}`);
  expect(store.search('word', 5)[0]?.publisher).toHaveLength(2_001);
});

it('the page of a product shows known fields with labels, and numbers exactly as the service wrote them', async () => {
  const { change, html } = await scene();
  const prices =
    '"variants":[{"sku":"S1","duration":180,"prices":[{"type":"list","value":12345678901234567890.10,"currency":"EUR"},' +
    '{"type":"list","value":"10.50","currency":"USD"},{"type":"list","value":1e2,"currency":"GBP"}]}]';
  const more = '"contributors":[{"name":"Ann Author","type":"author"},"Bob"],"publisher":{"name":"House"}';
  const links = '"resource_links":{"cover_image":"https://covers.example/1.jpg?a=1&b=2"}';
  const known = `"title":"A book","edition":98765432109876543210,${more},${prices},${links},"unknown":{"deep":[1.000]}`;
  change([{ vbid: 'P1', body: body('P1', known) }]);
  const page = await html('/products/P1');
  for (const shown of [
    '12345678901234567890.10',
    '10.50',
    '1e2',
    '98765432109876543210',
    'Ann Author',
    'House',
    '180',
  ]) {
    expect(page).toContain(`<bdi>${shown}</bdi>`);
  }
  expect(page).toMatch(/<dt>Edition<\/dt><dd><bdi>98765432109876543210/);
  // The JSON has every field, unknown ones too, without a changed character.
  expect(page).toContain('1.000');
  expect(page).toContain(
    '<a href="https://covers.example/1.jpg?a=1&amp;b=2" rel="noreferrer noopener nofollow"><bdi>https://covers.example',
  );
  expect(page).not.toContain('<img');
});

it('pages escape hostile titles, keys and fields, and link only web addresses', async () => {
  const { change, html } = await scene();
  const vbid = `a/b?#%2F é😀${HOSTILE}`;
  const title = `${HOSTILE} \u202egnp.exe \0 \ud800`;
  for (const [at, cover] of ['javascript:alert(1)', 'data:text/html,x', '//host/x', 'https://'].entries()) {
    const links = `"resource_links":{"cover_image":${JSON.stringify(cover)}}`;
    const fields = `"title":${JSON.stringify(title)},${links},"extra":${JSON.stringify(HOSTILE)},"n":${at}`;
    change([{ vbid, body: body(vbid, fields) }]);
    const page = await html(`/products/${encodeURIComponent(vbid)}`);
    expect(linksOf(page).filter((href) => !/^(\/|#)/.test(href))).toEqual([]);
    expect(page).toContain(cover);
  }
  for (const path of [`/products/${encodeURIComponent(vbid)}`, '/products', '/products?q=alert', '/changes']) {
    const page = await html(path);
    expect(page).toContain('&lt;script>alert(1)');
    expect(page).not.toContain('<script>');
    expect(page).not.toContain('<img');
    expect(page).toContain('\\u202egnp.exe');
    expect(page).not.toContain('\u202e');
    expect(page).not.toContain('\0');
  }
  const [own] = linksOf(await html('/products')).filter((href) => href.startsWith('/products/'));
  // The link from the list leads to the product.
  expect(await html(own ?? '')).toContain('<h1>&lt;script>');
});

it('the server answers 404 for the page of a product that never existed, whatever its key', async () => {
  const { page } = await scene();
  for (const vbid of ['NONE', 'a/b', '<script>', '😀', 'x'.repeat(1_000), '\u202e']) {
    const { status, text } = await page(`/products/${encodeURIComponent(vbid)}`);
    expect({ vbid, status }).toEqual({ vbid, status: 404 });
    expect(text).toContain('the mirror has no product');
  }
});

it('the page shows a removed product with its last fields, and a withdrawn one', async () => {
  const { change, html } = await scene();
  change([{ vbid: 'P1', body: body('P1', '"title":"Gone book"') }]);
  change([{ vbid: 'P1', body: null }]);
  change([{ vbid: 'P2', body: body('P2', '"title":"Kept book","distributable":false') }]);
  const removed = await html('/products/P1');
  expect(removed).toMatch(/<strong class="mark bad">removed<\/strong>.*noticed <time/);
  expect(removed).toContain('<h1>Gone book</h1>');
  expect(removed).toContain('The service no longer listed the product.');
  expect(await html('/products/P2')).toContain('<strong class="mark warn">withdrawn</strong>');
  expect(await html('/products')).toContain(' removed</span>');
});

it('the history shows what changed as the change log has it, and every version as productAsOf', async () => {
  const { change, html, store, row } = await scene();
  change([{ vbid: 'OTHER', body: body('OTHER', '"title":"other"') }]);
  const versions = [
    '"title":"One","price":10.50,"gone":1',
    '"title":"Two","price":10.50,"new":[1,2]',
    null,
    '"title":"Two","price":10.5000000000000000001,"new":[1,2]',
    '"title":"Three","price":1,"new":[1,2,3],"x":null',
    null,
  ];
  for (const version of versions) change([{ vbid: 'P1', body: version === null ? null : body('P1', version) }]);
  const recorded = createHistory(store).of('P1');
  const { changes } = productChanges(store, row('P1'), Number.MAX_SAFE_INTEGER, 50);
  expect(changes.map(({ seq, op }) => [seq, op])).toEqual(recorded.map(({ seq, op }) => [seq, op]));
  expect(recorded).toHaveLength(6);
  for (const [at, { fields }] of changes.entries()) {
    const { op, before, added, body: after } = recorded[at] ?? {};
    const was = op === 'updated' || op === 'restored' ? objectMembers(before ?? '{}') : new Map<string, string>();
    const expected = [...was.keys(), ...(added ?? [])].map((field) => ({
      field,
      before: was.get(field) ?? null,
      after: objectMembers(after ?? '{}').get(field) ?? null,
    }));
    expect(fields).toEqual(expected);
  }
  const page = await html('/products/P1');
  expect(page).toMatch(/<bdi>price<\/bdi><\/dt><dd><del>.*?<bdi>10\.50<\/bdi><\/del>.*?<bdi>10\.5000000000000000001</);
  expect(page).toMatch(/<bdi>gone<\/bdi><\/dt><dd><del>.*?<bdi>1<\/bdi><\/del>.*?not set/);
  for (const { seq, op } of recorded) {
    const then = productAsOf(store, row('P1'), seq);
    const shown = await html(`/products/P1?at=${seq}`);
    expect(shown).toContain(`<h1>${then.title}</h1>`);
    expect(shown).toContain(`as it was right after change ${seq}.`);
    expect(shown.includes('removed</strong>')).toBe(op === 'removed');
    expect(shown).toContain(`>${recorded.filter((one) => one.seq <= seq).length === 1 ? 'created' : op}</bdi></td>`);
    const others = linksOf(shown).filter((href) => /^\/products\/P1\?at=\d+$/.test(href));
    // Its history ends there; what comes later is one link.
    const later = recorded.filter((one) => one.seq > seq);
    expect(others.filter((href) => Number(href.split('=')[1]) > seq)).toHaveLength(later.length > 1 ? 1 : 0);
  }
});

it('the page rejects a version that does not exist', async () => {
  const { change, page } = await scene();
  change([{ vbid: 'OTHER', body: body('OTHER', '"title":"other"') }]);
  change([{ vbid: 'P1', body: body('P1', '"title":"One"') }]);
  const answers = async (path: string) => {
    const { status, text } = await page(path);
    return { status, text };
  };
  expect(await answers('/products/P1?at=1')).toMatchObject({ status: 404, text: /P1 did not exist at change 1/ });
  expect(await answers('/products/P1?at=3')).toMatchObject({ status: 400, text: /beyond the newest change/ });
  expect(await answers('/products/P1?at=x')).toMatchObject({ status: 400, text: /at: .*is not valid/ });
  expect(await answers('/products/P1?at=2199-01-01')).toMatchObject({ status: 400, text: /is in the future/ });
  expect(await answers('/products/P1?before=-1')).toMatchObject({ status: 400, text: /before: .*is not valid/ });
});

it('the history pages through 20,000 changes of one product, each once', { tags: ['slow'] }, async () => {
  const { change, html, store, row } = await scene();
  const total = 20_000;
  const version = (n: number) => ({ vbid: 'P1', body: body('P1', `"title":"Book","n":${n},"early":${n < 9}`) });
  change(Array.from({ length: total }, (_, n) => version(n)));
  const first = await html('/products/P1');
  expect(first).toMatch(/<bdi>n<\/bdi>.*?<bdi>19998<\/bdi>.*?<bdi>19999<\/bdi>/);
  expect(linksOf(first)).toContain('/products/P1?before=19951#history');
  const last = await html('/products/P1?before=51');
  // The value after an old change comes from a change that is not on this page.
  expect(last).toMatch(/<bdi>early<\/bdi>.*?<bdi>true<\/bdi>.*?<bdi>false<\/bdi>/);
  expect(last).not.toContain('Older changes');
  expect(last).toContain('The product was seen for the first time.');
  expect(await html('/products/P1?before=1')).toContain('The log has no older change of this product.');
  expect(await html('/products/P1?at=9')).toContain('<bdi>Book</bdi>');
  expect(productAsOf(store, row('P1'), 9).body).toBe(version(8).body);
});

it('the page shows a body of a megabyte in part', async () => {
  const { change, page, html } = await scene();
  const long = 'x'.repeat(1_000_000);
  change([{ vbid: 'BIG', body: body('BIG', `"title":"${long}"`) }]);
  change([{ vbid: 'BIG', body: body('BIG', `"title":"${long}END"`) }]);
  const prices = Array.from({ length: 20_000 }, (_, n) => `{"sku":"S${n}","prices":[{"value":${n}.50}]}`);
  change([{ vbid: 'MANY', body: body('MANY', `"title":"Many","variants":[${prices.join(',')}]`) }]);
  const { text } = await page('/products/BIG');
  expect(text.length).toBeLessThan(60_000);
  expect(text).toContain('<a href="/api/products/BIG">The whole as JSON</a>');
  expect(text).toContain('The first 20,000 of 1,000,');
  // Of long values, the part that differs.
  expect(text).toMatch(/<ins>.*?<bdi>…x{30}END&quot;<\/bdi>/);
  expect(await html('/products/MANY')).toContain('and 19,950 more: see the JSON');
  expect((await html('/changes')).length).toBeLessThan(20_000);
});

it('the search finds products, says when there are more, and explains an invalid search', async () => {
  const { change, html } = await scene();
  expect(await html('/products')).toContain('The mirror has no products yet.');
  const books = Array.from({ length: 60 }, (_, n) => ({
    vbid: `P${n}`,
    body: body(`P${n}`, `"title":"History ${n}"`),
  }));
  change(books);
  const found = await html('/products?q=hist*');
  expect(linksOf(found).filter((href) => href.startsWith('/products/'))).toHaveLength(50);
  expect(found).toContain('More than 50 products match');
  expect(found).toContain('value="hist*"');
  const one = await html('/products?q=history+7');
  expect(linksOf(one).filter((href) => href.startsWith('/products/'))).toEqual(['/products/P7']);
  expect(one).not.toContain('More than');
  expect(await html('/products?q=%3Cb%3E+none')).toContain('No product contains all words of “<bdi>&lt;b> none</bdi>');
  const words = Array.from({ length: 17 }, (_, n) => `w${n}`).join('+');
  expect(await html(`/products?q=${words}`)).toMatch(/role="alert">[^<]*17 words[^<]*at most 16 words/);
  expect(await html('/products?q=%00+%22+%F0+OR')).toContain('Found');
});

it('the history shows of a nested field the parts that changed', async () => {
  const { change, html } = await scene();
  const variants = (value: string, more = '') =>
    `"variants":[{"sku":"S1","prices":[{"currency":"EUR","value":9.90},{"currency":"USD","value":${value}}]}${more}]`;
  change([{ vbid: 'P1', body: body('P1', variants('10.50')) }]);
  change([{ vbid: 'P1', body: body('P1', variants('11.00')) }]);
  change([{ vbid: 'P1', body: body('P1', variants('11.00', ',{"sku":"S2"}')) }]);
  const page = await html('/products/P1');
  expect(page).toMatch(
    /<bdi>variants › 1 › prices › 2 › value<\/bdi><\/dt><dd><del>.*?<bdi>10\.50<\/bdi><\/del>.*?<bdi>11\.00<\/bdi><\/ins>/,
  );
  // Elements of lists of different lengths are not compared with each other.
  expect(page).toMatch(/<bdi>variants<\/bdi>.*?<ins>.*?S2/);
});
