import { sqlite3, sqliteToolsAvailable } from '@catchword/testing/sqlite-tools';
import { expect, it } from 'vitest';
import type { CatchwordEvent } from '../../src/events/events.ts';
import { emptyMirror, serve, serveHarness } from './place.ts';
import { get, getJson, openReader } from './reader.ts';

interface ProductPage {
  readonly products: readonly Readonly<Record<string, unknown>>[];
  readonly next: string | null;
  readonly position: string;
  readonly failed: number;
}

interface ChangePage {
  readonly events: readonly CatchwordEvent[];
  readonly next: number;
  readonly last: number;
  readonly next_id: string;
  readonly failed?: number;
}

const FORMATS = ['epub', 'pdf', null];
const EUR = `EXISTS (SELECT 1 FROM json_each(body, '$.variants') v,
  json_each(CASE v.type WHEN 'object' THEN v.value ELSE '{}' END, '$.prices') p WHERE p.value->>'currency' = 'EUR')`;

function body(vbid: string, nth: number): string {
  const variants = [`[{"prices":[{"currency":"EUR","value":${nth}.50}]}]`, '[7,{"prices":null}]', '{}'][nth % 3];
  return `{"vbid":"${vbid}","title":"Tide ${nth % 5}","format":${JSON.stringify(FORMATS[nth % 4] ?? null)},"variants":${variants}}`;
}

function query(parameters: Readonly<Record<string, string | number>>): string {
  return new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)])).toString();
}

async function productPages(
  url: string,
  parameters: Readonly<Record<string, string | number>>,
): Promise<ProductPage[]> {
  const pages: ProductPage[] = [];
  for (let after: string | null | undefined; after !== null; after = pages.at(-1)?.next) {
    const more = after === undefined ? parameters : { ...parameters, after };
    pages.push(await getJson<ProductPage>(`${url}/api/products?${query(more)}`));
  }
  return pages;
}

it.skipIf(!sqliteToolsAvailable)(
  'the pages of /api/products have the products that sqlite3 selects',
  { tags: ['slow'] },
  async () => {
    const { change, store, web } = await serveHarness();
    change(Array.from({ length: 60 }, (_, nth) => ({ vbid: `P ${nth}é&`, body: body(`P ${nth}é&`, nth) })));
    change([{ vbid: 'P 7é&', body: null }]);
    for (const where of [
      "title = 'Tide 1'",
      'format IS NULL',
      EUR,
      `NOT ${EUR}`,
      "vbid > 'P 3'",
      '0',
      'true',
      'NULL',
    ]) {
      const selected = await sqlite3(store.path, `SELECT vbid FROM catalog WHERE ${where} ORDER BY vbid\n`);
      const pages = await productPages(web.url, { where, limit: 7 });
      expect([where, ...pages.flatMap(({ products }) => products.map(({ vbid }) => vbid))]).toEqual([
        where,
        ...selected,
      ]);
      expect(pages.every(({ products, failed }) => products.length <= 7 && failed === 0)).toBe(true);
    }
  },
);

it('a page of /api/products has the bytes of the fields, and the position after which changes come', async () => {
  const { change, web } = await serveHarness();
  change(['A', 'B', 'C'].map((vbid, nth) => ({ vbid, body: body(vbid, nth) })));
  const view = { where: "title <> 'Tide 2'", fields: "json_object('p', body->'$.variants[0].prices[0].value')" };
  const { text } = await get(`${web.url}/api/products?${query(view)}`);
  expect(text).toMatch(
    /^\{"products":\[\{"vbid":"A","p":0\.50\},\{"vbid":"B","p":null\}\],"next":null,"position":"[^"]+:3","failed":0\}$/,
  );
  change([{ vbid: 'C', body: body('C', 3) }]);
  const { position } = JSON.parse(text) as ProductPage;
  const { events } = await getJson<ChangePage>(`${web.url}/api/changes?${query({ ...view, after: position })}`);
  expect(events.map(({ data }) => [data.op, data.view, data.product])).toEqual([
    ['created', 'entered', { vbid: 'C', p: 3.5 }],
  ]);
});

it('a page with a view judges a bounded number of products and changes, and says where to continue', async () => {
  const { change, web } = await serveHarness();
  const vbid = (nth: number): string => `P${String(nth).padStart(5, '0')}`;
  change(Array.from({ length: 10_500 }, (_, nth) => ({ vbid: vbid(nth), body: `{"vbid":"${vbid(nth)}"}` })));
  const where = `vbid = '${vbid(10_300)}'`;
  const pages = await productPages(web.url, { where });
  expect(pages.map(({ products }) => products.length)).toEqual([0, 0, 1]);
  const first = await getJson<ChangePage>(`${web.url}/api/changes?${query({ where })}`);
  expect(first).toMatchObject({ events: [], last: 10_500, failed: 0 });
  expect(first.next).toBeLessThan(10_300);
  const second = await getJson<ChangePage>(`${web.url}/api/changes?${query({ where, after: first.next_id })}`);
  expect(second.events.map(({ data }) => data.vbid)).toEqual([vbid(10_300)]);
  expect(second.next).toBe(10_500);
  // The rest of what was read with the last event is not skipped.
  const one = await getJson<ChangePage>(`${web.url}/api/changes?${query({ where: "vbid LIKE 'P%'", limit: 1 })}`);
  expect([one.events.length, one.next]).toEqual([1, 1]);
});

it('a page of changes with a view has the events that it makes, which op and field judge', async () => {
  const { change, web } = await serveHarness();
  const put = (members: object): void => change([{ vbid: 'A', body: JSON.stringify({ vbid: 'A', ...members }) }]);
  put({ shop: 1, title: 'x' });
  put({ shop: 1, title: 'x', price: 1 });
  put({ shop: 1, title: 'y', price: 1 });
  put({ shop: 0, title: 'y', price: 2 });
  put({ shop: 0, title: 'z', price: 2 });
  put({ shop: 1, title: 'z', price: 2 });
  const view = { where: "body->>'shop' = 1", fields: 'title' };
  const seen = async (more: Readonly<Record<string, string>>): Promise<string[]> => {
    const { events, next, last } = await getJson<ChangePage>(`${web.url}/api/changes?${query({ ...view, ...more })}`);
    expect(next).toBe(last);
    return events.map(({ id, data }) => {
      expect(id).toMatch(/_[0-9a-f]{12}\.[0-9a-f]{12}:\d+$/);
      return `${id.replace(/^.*:/, '')} ${data.op}`;
    });
  };
  expect(await seen({})).toEqual(['1 created', '3 updated', '4 removed', '6 created']);
  expect(await seen({ op: 'created,removed' })).toEqual(['1 created', '4 removed', '6 created']);
  expect(await seen({ field: 'title' })).toEqual(['3 updated']);
  expect(await seen({ field: 'price' })).toEqual([]);
  const broken = { where: "abs(json_extract(body, '$.shop') - 9223372036854775807 - 1) > 0" };
  const failing = await getJson<ChangePage>(`${web.url}/api/changes?${query(broken)}`);
  // Both states of one update, and one of each of two others.
  expect(failing.failed).toBe(4);
  expect(await getJson<ProductPage>(`${web.url}/api/products?${query({ ...broken, fields: 'x' })}`)).toMatchObject({
    products: [{ vbid: 'A' }],
    failed: 0,
  });
  expect(await getJson<ChangePage>(`${web.url}/api/changes`)).not.toHaveProperty('failed');
});

it('a request with an invalid view is refused with an error that names the parameter', async () => {
  const { web } = await serve(emptyMirror());
  for (const path of ['/api/products', '/api/changes', '/api/changes/stream']) {
    const refused = async (parameters: Readonly<Record<string, string>>): Promise<unknown> => {
      const { status, text } = await get(`${web.url}${path}?${query(parameters)}`);
      const { error } = JSON.parse(text) as { error: { code: string; message: string; hint: string } };
      return [status, error.code, error.message, error.hint.includes('docs/views.md')];
    };
    expect(await refused({ where: 'titel = 1' })).toEqual([400, 'USAGE', 'where: no such column: titel', true]);
    expect(await refused({ where: 'random() > 0' })).toEqual([
      400,
      'USAGE',
      'where: the function random is not available',
      true,
    ]);
    expect(await refused({ fields: `a${'.a'.repeat(4_000)}` })).toEqual([
      400,
      'USAGE',
      'fields: near ".": syntax error',
      true,
    ]);
    expect(await refused({ fields: 'nope(title)' })).toEqual([400, 'USAGE', 'fields: no such function: nope', true]);
    expect(await refused({ where: ' ' })).toEqual([400, 'USAGE', 'where is missing', false]);
  }
  for (const parameters of [{ q: 'x', where: '1' }, { q: 'x', after: 'A' }, { after: 'A' }, {}])
    expect((await get(`${web.url}/api/products?${query(parameters as Record<string, string>)}`)).status).toBe(400);
});

it('a request whose where has 10,000 characters is answered, and one of more than 16 kB is refused', async () => {
  const { web } = await serve(emptyMirror());
  const of = (characters: number) => `title='${'x'.repeat(characters - 8)}'`;
  expect((await get(`${web.url}/api/products?where=${encodeURIComponent(of(10_000))}`)).status).toBe(200);
  expect((await get(`${web.url}/api/products?where=${encodeURIComponent(of(20_000))}`)).status).toBe(431);
});

it('a server with a token evaluates no expression of a client without it', async () => {
  const { web } = await serve(emptyMirror(), { token: 'secret' });
  for (const path of ['/api/products', '/api/changes']) {
    const address = `${web.url}${path}?${query({ where: 'titel = 1' })}`;
    expect((await get(address)).status).toBe(401);
    expect((await get(address, { headers: { authorization: 'Bearer wrong' } })).status).toBe(401);
    expect((await get(address, { headers: { authorization: 'Bearer secret' } })).status).toBe(400);
  }
  expect((await get(`${web.url}/api/changes/stream?${query({ where: '1' })}`)).status).toBe(401);
});

it('a page of /api/products names members that the view names and no product of the page has', async () => {
  const { change, web } = await serveHarness();
  change(['A', 'B', 'C'].map((vbid, nth) => ({ vbid, body: body(vbid, nth) })));
  const absent = async (view: Readonly<Record<string, string>>, more = {}): Promise<unknown> => {
    const { text } = await get(`${web.url}/api/products?${query({ ...view, ...more })}`);
    return (JSON.parse(text) as { absent?: string[] }).absent;
  };
  expect(await absent({ fields: 'titel,title,variants.sku' })).toEqual(['titel', 'variants.sku']);
  expect(await absent({ where: "body->>'prise' IS NULL", fields: "json_object('t', body->'$.titel')" })).toEqual([
    'titel',
    'prise',
  ]);
  // What only a later product has is there, also if another page has it.
  change([{ vbid: 'D', body: JSON.stringify({ vbid: 'D', shelf: 7 }) }]);
  expect(await absent({ fields: 'shelf,title' })).toBeUndefined();
  expect(await absent({ fields: 'shelf,title' }, { limit: 2 })).toEqual(['shelf']);
  expect(await absent({ fields: 'shelf' }, { after: 'D' })).toBeUndefined();
});

it('a page and a stream refuse an id that was read with other where and fields', async () => {
  const { change, web } = await serveHarness();
  change(['A', 'B'].map((vbid, nth) => ({ vbid, body: body(vbid, nth) })));
  const view = { where: "vbid = 'A'", fields: 'title' };
  const [whole, viewed] = await Promise.all(
    [{}, view].map((given) => getJson<ChangePage>(`${web.url}/api/changes?${query(given)}`)),
  );
  const { position } = await getJson<ProductPage>(`${web.url}/api/products?${query(view)}`);
  const codeOf = async (given: object, after = ''): Promise<unknown> => {
    const { text } = await get(`${web.url}/api/changes?${query({ ...given, after })}`);
    return (JSON.parse(text) as { error?: { code: string } }).error?.code;
  };
  for (const after of [viewed?.next_id, viewed?.events[0]?.id, position]) {
    expect([await codeOf(view, after), await codeOf({}, after)]).toEqual([undefined, 'OTHER_VIEW']);
    expect(await codeOf({ ...view, fields: 'vbid' }, after)).toBe('OTHER_VIEW');
  }
  expect([await codeOf(view, whole?.next_id), await codeOf({}, whole?.next_id)]).toEqual(['OTHER_VIEW', undefined]);
  expect(await codeOf({ ...view, fields: 'vbid' }, `${whole?.next}`)).toBeUndefined();
  const reader = await openReader(`${web.url}/api/changes/stream?${query(view)}`, {
    'last-event-id': `${whole?.next_id}`,
  });
  const { data = '', id = '' } = await reader.until(({ event }) => event === 'reset');
  expect(JSON.parse(data)).toMatchObject({ code: 'OTHER_VIEW', after: 0, last: 2 });
  // It continues from there when it comes back.
  reader.leave();
  const again = await openReader(`${web.url}/api/changes/stream?${query(view)}`, { 'last-event-id': id });
  expect((await again.events(1)).map(({ event }) => event)).toEqual([undefined]);
});

it('a stream with a view resumes from the position up to which nothing matched', async () => {
  const { change, web } = await serveHarness();
  change(['A', 'B', 'C'].map((vbid, nth) => ({ vbid, body: body(vbid, nth) })));
  const address = `${web.url}/api/changes/stream?${query({ where: "vbid = 'A'", fields: 'title' })}`;
  const reader = await openReader(address);
  const [event] = await reader.events(1);
  expect(JSON.parse(event?.data ?? '')).toMatchObject({
    id: event?.id,
    data: { op: 'created', view: 'entered', product: { vbid: 'A', title: 'Tide 0' } },
  });
  const { id = '' } = await reader.until((block) => block.data === undefined && block.id !== undefined);
  expect(id).toMatch(/:3$/);
  reader.leave();
  change([{ vbid: 'A', body: null }]);
  const again = await openReader(address, { 'last-event-id': id });
  const [removed] = await again.events(1);
  expect(JSON.parse(removed?.data ?? '')).toMatchObject({ data: { op: 'removed', before: { title: 'Tide 0' } } });
  again.leave();
});

it('streams with more different views than are allowed are refused until one of them ends', async () => {
  const { change, web } = await serveHarness();
  change([{ vbid: 'A', body: body('A', 1) }]);
  const address = (nth: number): string => `${web.url}/api/changes/stream?${query({ where: `vbid <> '${nth}'` })}`;
  const open = await Promise.all(Array.from({ length: 16 }, (_, nth) => openReader(address(nth))));
  await Promise.all(open.map((reader) => reader.events(1)));
  const refused = await get(address(16));
  expect([refused.status, refused.headers['retry-after']]).toEqual([503, '10']);
  expect(JSON.parse(refused.text)).toMatchObject({ error: { code: 'TOO_MANY_VIEWS' } });
  expect(await (await openReader(address(16), { accept: 'text/event-stream' })).endCode()).toBe('TOO_MANY_VIEWS');
  // The view of another stream, whole products, and pages are answered.
  const same = await openReader(address(3));
  await same.events(1);
  await (await openReader(`${web.url}/api/changes/stream`)).events(1);
  expect((await get(`${web.url}/api/changes?${query({ where: '1' })}`)).status).toBe(200);
  open[3]?.leave();
  expect((await get(address(16))).status).toBe(503);
  same.leave();
  await expect
    .poll(async () => {
      const next = await openReader(address(16), { accept: 'text/event-stream' });
      const { data } = await next.until((block) => block.data !== undefined);
      next.leave();
      return data;
    })
    .toContain('"op":"created"');
});
