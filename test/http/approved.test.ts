import { systemClock } from '@catchword/base/clock';
import { expect, it } from 'vitest';
import type { Version } from '../../src/contract/harness.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { failedRun, unusualRun, usualRun } from '../view/unusual-run.ts';
import { serveHarness } from './place.ts';
import { get, getJson, openReader } from './reader.ts';

/** Products that lose their price, go, come and come back in an unusual run. */
async function badNight() {
  const harness = await serveHarness();
  const { web, change } = harness;
  const price = (value: string, ...keys: string[]): Version[] =>
    keys.map((vbid) => ({ vbid, body: `{"vbid":"${vbid}","price":${value}}` }));
  change([...price('1', 'A', 'B', 'C', 'D'), { vbid: 'D', body: null }]);
  unusualRun(harness, [...price('null', 'A', 'D', 'E'), { vbid: 'B', body: null }]);
  const list = `${web.url}/api/products?where=1&fields=vbid,price&limit=1`;
  return {
    ...harness,
    url: web.url,
    /** Every page of the products. */
    products: async (more: string) => {
      const found: unknown[] = [];
      let position = '';
      for (let next: string | null = ''; next !== null; ) {
        type Page = { products: unknown[]; next: string | null; position: string };
        const page: Page = await getJson<Page>(`${list}${more}&after=${next}`);
        found.push(...page.products);
        position ||= page.position;
        next = page.next;
      }
      return { found, position };
    },
    seqs: async (more: string) => {
      const page = await getJson<{ events: { sequence: string }[]; next: number; last: number }>(
        `${web.url}/api/changes?after=0${more}`,
      );
      return { seqs: page.events.map(({ sequence }) => Number(sequence)), next: page.next, last: page.last };
    },
  };
}

const APPROVED = '&approved=true';

it('readers over HTTP get the changes before an unusual run with approved=true, until it is over', async () => {
  const night = await badNight();
  expect(await night.seqs(APPROVED)).toEqual({ seqs: [1, 2, 3, 4, 5], next: 5, last: 5 });
  expect(await night.seqs('')).toMatchObject({ next: 9, last: 9 });
  const later = await getJson(`${night.url}/api/changes?after=7${APPROVED}`);
  expect(later).toMatchObject({ events: [], next: 7, last: 7 });
  usualRun(night);
  expect(await night.seqs(APPROVED)).toMatchObject({ next: 9, last: 9 });
});

it('readers over HTTP get the products as of before an unusual run with approved=true, page by page', async () => {
  const night = await badNight();
  const was = ['A', 'B', 'C'].map((vbid) => ({ vbid, price: 1 }));
  const { found, position } = await night.products(APPROVED);
  expect(found).toEqual(was);
  // The changes after it bring a copy to what the mirror has.
  const { events } = await getJson<{ events: unknown[] }>(
    `${night.url}/api/changes?where=1&fields=vbid,price&after=${position}`,
  );
  expect(events).toHaveLength(4);
  const now = [
    ['A', null],
    ['C', 1],
    ['D', null],
    ['E', null],
  ].map(([vbid, price]) => ({ vbid, price }));
  expect((await night.products('')).found).toEqual(now);
  usualRun(night);
  expect((await night.products(APPROVED)).found).toEqual(now);
});

it('readers over HTTP get one product as of before an unusual run with approved=true', async () => {
  const { url } = await badNight();
  const product = async (path: string) => {
    const { status, text } = await get(`${url}/api/products/${path}`);
    const { body, removed_at: removedAt } = JSON.parse(text) as { body?: unknown; removed_at?: string };
    return { status, body, isRemoved: typeof removedAt === 'string' };
  };
  expect(await product('A?approved=true')).toMatchObject({ status: 200, body: { vbid: 'A', price: 1 } });
  expect(await product('A')).toMatchObject({ status: 200, body: { vbid: 'A', price: null } });
  expect(await product('B?approved=true')).toMatchObject({ body: { vbid: 'B', price: 1 }, isRemoved: false });
  expect(await product('D?approved=true')).toMatchObject({ body: null, isRemoved: true });
  expect(await product('E?approved=true')).toMatchObject({ status: 404 });
});

it('readers over HTTP cannot search products, or ask for another state, with approved', async () => {
  const { url } = await badNight();
  for (const path of [
    'products?q=A&approved=true',
    'changes?approved=yes',
    'changes?approved=false',
    'products?approved=true',
  ])
    expect(await get(`${url}/api/${path}`)).toMatchObject({ status: 400 });
});

it.each(['0', 'latest'])(
  'a stream after %s with approved=true waits before an unusual run, and goes on after it',
  async (after) => {
    const night = await badNight();
    const stream = await openReader(`${night.url}/api/changes/stream?after=${after}${APPROVED}`);
    const next = async () =>
      Number(
        (
          JSON.parse((await stream.until(({ data }) => data !== undefined)).data ?? '{}') as {
            sequence?: string;
            after?: number;
          }
        ).sequence ?? -1,
      );
    if (after === 'latest') expect(await next()).toBe(-1);
    else for (const seq of [1, 2, 3, 4, 5]) expect(await next()).toBe(seq);
    let hasArrived = false;
    const rest = next().finally(() => {
      hasArrived = true;
    });
    await systemClock.sleep(700);
    expect(hasArrived).toBe(false);
    usualRun(night);
    expect(await rest).toBe(6);
    for (const seq of [7, 8, 9]) expect(await next()).toBe(seq);
  },
);

it('readers with approved=true stay where they are while a source fails for days after an unusual run is over', async () => {
  const night = await badNight();
  usualRun(night);
  const before = await night.products(APPROVED);
  for (let failed = 0; failed < 60; failed++) failedRun(night);
  expect(await night.seqs(APPROVED)).toMatchObject({ next: 9, last: 9 });
  expect(await night.products(APPROVED)).toEqual(before);
});

it('readers with approved=true get an error, and not fewer products, once the log lacks that state', async () => {
  const night = await badNight();
  writeUnder(night.store.keeperLease, Date.now(), ({ changes }) => changes.prune(7));
  expect(await get(`${night.url}/api/products?where=1${APPROVED}`)).toMatchObject({
    status: 404,
    text: expect.stringContaining('the change log no longer holds the mirror as of change 5'),
  });
  expect(await get(`${night.url}/api/products?where=1`)).toMatchObject({ status: 200 });
});
