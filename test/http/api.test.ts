import { execute } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { openMirror } from '../../src/mirror/mirror.ts';
import { openStore } from '../../src/store/store.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { filled } from '../support/place.ts';
import { serve, serveFilled } from './place.ts';
import { get, getJson, upTo } from './reader.ts';

interface Page {
  readonly events: { sequence: string; source: string }[];
  readonly next: number;
  readonly last: number;
}

it('the API returns what the commands print', async () => {
  const { db, settings, directory, sandbox } = await filled({ items: 300, details: true });
  sandbox.catalog.mutate({ update: 5, remove: 1, seed: 1 });
  await load(settings, 'delta');
  const { web } = await serve(db, { source: `${sandbox.url}/v4/products` });
  const printed = async (...args: string[]) => {
    const ended = await runHere(args, settings, directory);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    return ended.stdout;
  };
  const answered = async (path: string) => (await get(`${web.url}${path}`)).text;

  const { age_seconds: age, ...status } = await getJson<Record<string, unknown>>(`${web.url}/api/status`);
  expect(age).toBeGreaterThanOrEqual(0);
  expect(JSON.parse(await printed('status', '--json'))).toMatchObject(status);
  expect(`${await answered('/api/runs')}\n`).toBe(await printed('runs', '--json'));
  expect(await getJson(`${web.url}/api/runs?limit=1`)).toEqual([expect.objectContaining({ id: 2, kind: 'delta' })]);
  expect(`${await answered('/api/products?q=history')}\n`).toBe(await printed('search', 'history', '--json'));
  const hits = await getJson<{ vbid: string }[]>(`${web.url}/api/products?q=history&limit=2`);
  expect(hits).toHaveLength(2);
  const vbid = hits[0]?.vbid ?? '';
  expect(`${await answered(`/api/products/${vbid}`)}\n`).toBe(await printed('product', vbid, '--json'));

  const lines = (await printed('changes')).trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(300);
  // Character by character: no number was parsed on the way.
  expect(await answered('/api/changes?limit=10000')).toBe(
    `{"events":[${lines.join(',')}],"next":${lines.length},"last":${lines.length},"next_id":"${JSON.parse(lines.at(-1) ?? '').id}"}`,
  );
});

it('the API pages through the change log without a gap or a duplicate', async () => {
  const { web } = await serveFilled({ items: 2_500 });
  const seen: number[] = [];
  for (let after = 0; ; ) {
    const page = await getJson<Page>(`${web.url}/api/changes?after=${after}&limit=701`);
    expect(page.last).toBe(2_500);
    expect(page.events).toHaveLength(Math.min(701, 2_500 - after));
    seen.push(...page.events.map(({ sequence }) => Number(sequence)));
    if (page.events.length === 0) {
      expect(page.next).toBe(after);
      break;
    }
    expect(page.next).toBe(seen.at(-1));
    after = page.next;
  }
  expect(seen).toEqual(upTo(2_500));
  const first = await getJson<Page>(`${web.url}/api/changes`);
  expect(first).toMatchObject({ next: 1_000, last: 2_500 });
  expect(first.events).toHaveLength(1_000);
});

it('the API pages through the changes that match, past any number of others', { tags: ['slow'] }, async () => {
  const { db, settings, sandbox } = await filled({ items: 11_000, details: true });
  const since = new Date().toISOString();
  sandbox.catalog.mutate({ update: 5, remove: 1, seed: 1 });
  await load(settings, 'full');
  const { web } = await serve(db);
  const all = await getJson<Page>(`${web.url}/api/changes?after=11000`);
  const paged = async (query: string): Promise<unknown[]> => {
    const events = [];
    for (let after = 0, last = 1; after < last; ) {
      const page = await getJson<Page>(`${web.url}/api/changes?after=${after}&limit=2&${query}`);
      events.push(...page.events);
      ({ next: after, last } = page);
    }
    return events;
  };
  expect(await paged('op=updated,removed')).toEqual(all.events);
  expect(await paged('op=updated&field=variants')).toEqual(all.events.slice(0, 5));
  expect(await paged('field=shelf,variants')).toEqual(all.events.slice(0, 5));
  expect(await paged(`since=${since}`)).toEqual(all.events);
  expect(await getJson(`${web.url}/api/changes?op=restored`)).toMatchObject({ events: [], next: 11_006 });
  for (const query of ['op=gone', 'op=', 'field=', 'since=yesterday']) {
    expect((await get(`${web.url}/api/changes?${query}`)).status).toBe(400);
  }
  const mirror = openMirror(db);
  const found = [];
  for await (const event of mirror.changes({ op: ['updated'], field: ['/variants'], since: new Date(since) }))
    found.push(event);
  expect(found).toMatchObject(all.events.slice(0, 5).map(({ sequence }) => ({ sequence })));
  await expect(mirror.changes({ op: ['gone' as 'removed'] }).next()).rejects.toThrow('op: gone is not valid');
  mirror.close();
});

it('the API ends a page of large bodies early, and says where to continue', { tags: ['slow'] }, async () => {
  const { web } = await serveFilled({ items: 6_000, details: true });
  const seen: number[] = [];
  let requests = 0;
  for (let after = 0; after < 6_000; requests++) {
    const { text } = await get(`${web.url}/api/changes?after=${after}&limit=10000`);
    // 8 million characters and one batch.
    expect(text.length).toBeLessThan(9_000_000);
    const page = JSON.parse(text) as Page;
    seen.push(...page.events.map(({ sequence }) => Number(sequence)));
    after = page.next;
  }
  expect(requests).toBeGreaterThan(1);
  expect(seen).toEqual(upTo(6_000));
});

it('the API does not round numbers that JSON.parse would round', async () => {
  const { db } = await filled({ items: 1 });
  const store = openStore(db);
  const [product] = [...store.products.all()];
  store.close();
  execute(db, `UPDATE products SET body = json_insert(body, '$.x', 0)`);
  execute(db, `UPDATE products SET body = replace(body, '"x":0', '"x":12345678901234567890.10')`);
  const { web } = await serve(db);
  for (const path of [`/api/products/${product?.vbid}`, '/api/changes'])
    expect((await get(`${web.url}${path}`)).text).toContain('"x":12345678901234567890.10');
});

it('the API serves a mirror that was never filled', async () => {
  const { web } = await serve(`${temporaryDirectory()}/new/catalog.db`);
  expect(await getJson(`${web.url}/api/status`)).toMatchObject({ products: 0, last_seq: 0, last_run: null });
  expect(await getJson(`${web.url}/api/changes`)).toEqual({
    events: [],
    next: 0,
    last: 0,
    next_id: expect.stringMatching(/^[0-9a-f-]{36}:0$/),
  });
  expect(await getJson(`${web.url}/api/runs`)).toEqual([]);
  expect(await getJson(`${web.url}/api/products?q=anything`)).toEqual([]);
  expect(await getJson(`${web.url}/api/products?q=%00`)).toEqual([]);
  expect(await getJson(`${web.url}/api/products?q=a%00b`)).toEqual([]);
  expect(await getJson(`${web.url}/api/products?q=${'a*+'.repeat(1_000)}`)).toEqual([]);
});
