// @module-tag service

import { systemClock } from '@catchword/base/clock';
import { isbn10 } from '@catchword/base/isbn';
import {
  firstItem,
  get,
  getJson,
  getPage,
  type Item,
  sandboxFor,
  truth,
  withdrawnIn,
} from '@catchword/testing/sandbox-for';
import { request } from 'undici';
import { expect, it } from 'vitest';
import { NEW, put, send } from './asset-requests.ts';

const START = Date.UTC(2030, 0, 10, 12);
const DAY = 86_400_000;
const day = (offset: number) => new Date(START + offset * DAY).toISOString().slice(0, 10);

/** Starts a sandbox whose clock the test sets. */
async function calendar(items = 3, details = false) {
  const time = { now: START };
  const sandbox = await sandboxFor({ items, details, clock: { ...systemClock, now: () => time.now } });
  const listed = async () => (await getPage(sandbox)).items.map(({ vbid }) => vbid);
  const since = async (from: number) => (await getPage(sandbox, `?from=${new Date(from).toISOString()}`)).items;
  const lookup = async (vbid: string) => (await get(sandbox, `/v4/products/${vbid}`)).status;
  const read = async (vbid: string) => (await send(sandbox, 'GET', `/vital_books/${vbid}`)).body;
  return { time, sandbox, listed, since, lookup, read };
}

it.each([false, true])('4.1: the sandbox merges an update into a generated product (details: %s)', async (details) => {
  const { sandbox, time, since } = await calendar(3, details);
  const [before, other] = (await getPage(sandbox)).items;
  const vbid = before?.vbid ?? '';
  time.now += 1000;
  await put(sandbox, vbid, { title: 'Renamed', identifiers: { e_isbn_13: ['9780198526636'] } });
  const { eisbn_canonical: own, print_isbn_canonical: print } = before?.identifiers ?? {};
  const pair = (isbn: unknown) => ({ ten: isbn10(String(isbn)), thirteen: isbn });
  const lists = {
    e_isbn_10: [pair(own).ten, '0198526636'],
    e_isbn_13: [own, '9780198526636'],
    print_isbn_10: [pair(print).ten],
    print_isbn_13: [print],
  };
  const identifiers = { ...before?.identifiers, ...(details && lists) };
  const [changed, ...others] = await since(time.now);
  expect(others).toEqual([]);
  expect(changed).toMatchObject({ ...before, title: 'Renamed', identifiers });
  expect((await getPage(sandbox)).items.slice(0, 2)).toEqual([changed, other]);
});

it('4.1: the sandbox does not show a later write in the truth, even if it is read slowly', {
  tags: ['slow'],
}, async () => {
  const { sandbox } = await calendar(30_000, true);
  const first = await firstItem(sandbox);
  const reading = await request(`${sandbox.url}/_sandbox/truth`);
  await put(sandbox, first.vbid, { title: 'Renamed' });
  const [line = ''] = (await reading.body.text()).split('\n');
  expect(JSON.parse(line)).toEqual(first);
});

it.each([false, true])(
  '2.1.3: the sandbox returns the channel identifiers of a generated product (details: %s)',
  async (details) => {
    const { sandbox } = await calendar(3, details);
    const { vbid: sku } = await firstItem(sandbox);
    await put(sandbox, sku, { variants: [{ channel_ids: [{ sku, channel_id_inclusive_access: 'ia-1' }] }] });
    const [item, other] = (await getPage(sandbox)).items;
    expect(item?.variants).toMatchObject([
      { sku, channel_ids: [{ channel: 'inclusive_access', identifier: 'ia-1' }] },
      { sku: `${sku}R180` },
    ]);
    expect('variants' in (other ?? {})).toBe(details);
  },
);

it('the sandbox accepts a question mark in the query', async () => {
  const { sandbox } = await calendar();
  const { bytes } = await get(sandbox, '/v4/products?include_details=a?b');
  expect(bytes.toString()).toContain('a?b');
});

const ADDED = '9780306406157';

it('2.1.1 rule 1: the sandbox adds to the ISBNs and aliases of a generated product, in the asset and in the catalog', async () => {
  const { sandbox } = await calendar(3, true);
  const { vbid, identifiers: before } = await firstItem(sandbox);
  const own = String(before.eisbn_canonical);
  const { body } = await put(sandbox, vbid, { identifiers: { e_isbn_13: [ADDED], vbid13_alias: [ADDED] } });
  expect(body).toMatchObject({
    e_isbn: own,
    identifiers: { e_isbn_13: [own, ADDED], e_isbn_10: [isbn10(own), '0306406152'], vbid13_alias: [vbid, ADDED] },
  });
  const { identifiers } = await getJson<Item>(sandbox, `/v4/products/${vbid}`);
  expect(identifiers).toMatchObject({ ...body.identifiers, eisbn_canonical: own, e_isbn: own });
});

it('the sandbox returns the identifiers of a generated product before any write', async () => {
  const { sandbox, read } = await calendar(3, true);
  const { vbid, identifiers } = await firstItem(sandbox);
  const { eisbn_canonical: own, print_isbn_canonical: print } = identifiers;
  const lists = { e_isbn_13: [own], print_isbn_13: [print], vbid13_alias: [vbid] };
  expect(await read(vbid)).toMatchObject({ identifiers: lists });
});

it('2.1 print_isbn: the sandbox updates all members of the print ISBN', async () => {
  const { sandbox } = await calendar(3, true);
  const { vbid, identifiers: before } = await firstItem(sandbox);
  const own = String(before.print_isbn_canonical);
  const { body } = await put(sandbox, vbid, { print_isbn: ADDED });
  const { identifiers } = await getJson<Item>(sandbox, `/v4/products/${vbid}`);
  expect(identifiers).toMatchObject({
    print_isbn_canonical: ADDED,
    print_isbn: ADDED,
    eisbn_canonical: before.eisbn_canonical,
    print_isbn_13: [own, ADDED],
    print_isbn_10: [isbn10(own), '0306406152'],
  });
  expect(body).toMatchObject({ print_isbn: ADDED, identifiers: { print_isbn_13: [own, ADDED] } });
});

it('2.1.1 rule 4: the sandbox removes cleared identifiers from asset and catalog', async () => {
  const { sandbox } = await calendar(3, true);
  const { vbid } = await firstItem(sandbox);
  const { body } = await put(sandbox, vbid, { identifiers: { e_isbn_10: null, e_isbn_13: null } });
  expect([body.e_isbn, body.identifiers.e_isbn_13]).toEqual([null, []]);
  const { identifiers } = await getJson<Item>(sandbox, `/v4/products/${vbid}`);
  expect(identifiers.eisbn_canonical).toBeNull();
  for (const name of ['e_isbn', 'e_isbn_10', 'e_isbn_13']) expect(identifiers).not.toHaveProperty(name);
});

// @rule 2.1-26
it('2.1 on_sale_date: the sandbox adds the asset to the catalog on that day, without a request', async () => {
  const { sandbox, time, listed, since, lookup, read } = await calendar();
  const created = await put(sandbox, 'L-1', { ...NEW, on_sale_date: day(2) });
  expect(created.body.asset_status).toMatchObject({ distribution: 'initialized' });
  expect(await listed()).not.toContain('L-1');
  expect([await lookup('L-1'), (await truth(sandbox)).length]).toEqual([404, 3]);
  expect(await since(START)).toEqual([]);
  expect((await send(sandbox, 'GET', '/vital_books/L-1')).status).toBe(200);

  time.now = Date.parse(day(2)) - 1;
  expect(await listed()).toHaveLength(3);
  time.now += 5000;
  // It entered at midnight, not at the time of a request.
  expect(await since(Date.parse(day(2)) + 1)).toEqual([]);
  expect(await since(Date.parse(day(2)))).toMatchObject([{ vbid: 'L-1' }]);
  expect(await listed()).toContain('L-1');
  expect(await read('L-1')).toMatchObject({ asset_status: { distribution: 'distributed' } });
});

it.each([
  ['T18:30', '18:30'],
  ['T18:30:00+02:00', '16:30'],
  ['T18:30:00Z', '18:30'],
])('2.1: a date with a time of day (%s) begins at %s UTC', async (time, utc) => {
  const { sandbox, since, time: clock } = await calendar();
  await put(sandbox, 'L-1', { ...NEW, on_sale_date: `${day(1)}${time}` });
  clock.now = START + 2 * DAY;
  const begins = Date.parse(`${day(1)}T${utc}:00Z`);
  expect(await since(begins)).toMatchObject([{ vbid: 'L-1' }]);
  expect(await since(begins + 1)).toEqual([]);
});

// @rule 2.1-25
it('2.1 off_sale_date: the sandbox withdraws the asset on that day, and removes it ten days later', async () => {
  const { sandbox, time, listed, since, lookup, read } = await calendar();
  await put(sandbox, 'L-1', { ...NEW, off_sale_date: day(1) });
  expect(await listed()).toContain('L-1');
  time.now = Date.parse(day(1)) + 1000;
  expect(await listed()).not.toContain('L-1');
  expect(await since(time.now - 2000)).toMatchObject([{ vbid: 'L-1', title: 'Tides', distributable: false }]);
  expect(await getJson(sandbox, '/v4/products/L-1')).toMatchObject({ distributable: false });
  expect(await read('L-1')).toMatchObject({ asset_status: { distribution: 'withdrawn' } });
  time.now += 11 * DAY;
  expect([await lookup('L-1'), (await since(0)).length]).toEqual([404, 3]);
});

// @rule 2.1-25
it('2.1: the sandbox brings the asset back when the date is moved', async () => {
  const { sandbox, time, listed, since } = await calendar();
  const [own = ''] = await listed();
  await put(sandbox, own, { off_sale_date: day(-1) });
  expect([await listed(), withdrawnIn(sandbox.catalog)]).toEqual([expect.not.arrayContaining([own]), 1]);
  time.now += 1000;
  await put(sandbox, own, { off_sale_date: day(5) });
  expect([await listed(), withdrawnIn(sandbox.catalog)]).toEqual([expect.arrayContaining([own]), 0]);
  expect((await since(time.now))[0]).not.toHaveProperty('distributable');
  time.now = START + 6 * DAY;
  expect(await listed()).not.toContain(own);
  // Now it is gone.
  time.now = START + 40 * DAY;
  expect(await listed()).toHaveLength(2);
  await put(sandbox, own, { off_sale_date: null });
  expect(await listed()).toHaveLength(3);
});

it('2.1: the sandbox withdraws a product until a later on_sale_date', async () => {
  const { sandbox, time, listed, since } = await calendar();
  const [own = ''] = await listed();
  await put(sandbox, own, { on_sale_date: day(3), off_sale_date: day(30) });
  expect(await since(START)).toMatchObject([{ vbid: own, distributable: false }]);
  time.now = START + 31 * DAY;
  // It came and went again.
  expect(await since(START + 20 * DAY)).toMatchObject([{ vbid: own, distributable: false }]);
  await put(sandbox, own, { on_sale_date: day(3), off_sale_date: day(300) });
  expect(await listed()).toContain(own);
});

it('the sandbox does not depend on requests in between', async () => {
  const run = async (looks: boolean) => {
    const { sandbox, time } = await calendar(20);
    for (let at = 0; at < 12; at++) {
      const dates = {
        on_sale_date: day((at * 5) % 7),
        off_sale_date: at % 3 === 0 ? null : day(4 + ((at * 3) % 11)),
      };
      await put(sandbox, `L-${at}`, { ...NEW, ...dates });
    }
    for (const offset of [1, 2, 3, 4, 5, 6, 7, 9, 15, 18, 30]) {
      time.now = START + offset * DAY;
      if (looks) await getPage(sandbox, '?from=2030-01-01');
    }
    sandbox.catalog.mutate({ remove: 5, update: 5, create: 5, seed: 3 });
    const all = await getPage(sandbox, '?from=2029-01-01');
    return { all: all.items, listed: (await getPage(sandbox)).items };
  };
  expect(await run(true)).toEqual(await run(false));
});
