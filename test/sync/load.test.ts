import { systemClock } from '@catchword/base/clock';
import { describe, expect, it } from 'vitest';
import { openedStore } from '../store/opened-store.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, mutate, truthOf, withoutWithdrawn } from '../support/mirror.ts';
import { filled, place } from '../support/place.ts';
import { bodies, isDelta, numbered, rawPlace } from './raw-place.ts';

/**
 * `Date` counts whole seconds, so a source's clock may seem to lag by one. With an overlap of a second a delta then asks back
 * further than usual, which tests that count what a single delta brings must not depend on.
 */
const PATIENT = { CATCHWORD_DELTA_OVERLAP: '10s' };

function watermarkOf(db: string): number {
  return openedStore(db).watermark() ?? 0;
}

describe.each([{ details: false }, { details: true }])('20,000 products, details: $details', ({ details }) => {
  // @rule 4.4-13..14
  it('a load holds each product as the source has it, and follows its changes', { tags: ['slow'] }, async () => {
    const { sandbox, db, settings } = await place({ items: 20_000, details }, PATIENT);

    const full = await load(settings, 'full');
    expect(full).toMatchObject({
      kind: 'full',
      state: 'complete',
      items: 20_000,
      created: 20_000,
      updated: 0,
      missing: 0,
    });
    expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
    expect(expectExactLog(db)).toBe(20_000);

    await mutate(sandbox.url, { create: 30, update: 40, remove: 20, seed: 5 });
    const delta = await load(settings, 'delta');
    expect(delta).toMatchObject({
      kind: 'delta',
      state: 'complete',
      pages: 1,
      proof: null,
      created: 30,
      updated: 60,
    });
    expect(withoutWithdrawn(catalogOf(db))).toEqual(await truthOf(sandbox.url));
    expect(expectExactLog(db)).toBe(20_090);

    const again = await load(settings, 'delta');
    expect(again).toMatchObject({ created: 0, updated: 0, rejected: 0 });
    expect(expectExactLog(db)).toBe(20_090);
  });
});

it('a full run without changes writes nothing', async () => {
  const { db, settings } = await filled({ items: 5_000 });
  const second = await load(settings, 'full');
  expect(second).toMatchObject({ state: 'complete', items: 5_000, created: 0, updated: 0, missing: 0 });
  expect(expectExactLog(db)).toBe(5_000);
});

it('an empty catalog is a complete run', async () => {
  const { db, settings } = await place({ items: 0 });
  expect(await load(settings, 'full')).toMatchObject({ state: 'complete', items: 0, created: 0 });
  expect(expectExactLog(db)).toBe(0);
});

it('a delta of many pages is followed until it fits in one response', async () => {
  const { sandbox, db, settings } = await filled({ items: 5_000 });
  await mutate(sandbox.url, { create: 1_500, update: 1_800, seed: 3 });
  const delta = await load(settings, 'delta');
  expect(delta).toMatchObject({ state: 'complete', created: 1_500, updated: 1_800 });
  expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
  expectExactLog(db);
});

it('the watermark is the source time, and only moves forward', async () => {
  const { db, settings } = await place({ items: 10 });
  const watermarks: number[] = [];
  for (const kind of ['full', 'delta', 'full'] as const) {
    const run = await load(settings, kind);
    const watermark = watermarkOf(db);
    expect(watermark).toBe(Math.max(run.sourceTime ?? 0, ...watermarks));
    expect(watermark).toBeLessThanOrEqual(Date.now());
    watermarks.push(watermark);
  }
});

it('a delta from a later time than the watermark does not move it', async () => {
  const { sandbox, directory, db, settings } = await filled({ items: 10 }, PATIENT);
  const before = watermarkOf(db);
  await mutate(sandbox.url, { update: 3, seed: 1 });
  const later = new Date(Date.now() + 30_000).toISOString();
  expect((await runHere(['sync', '--from', later], settings, directory)).code).toBe(0);
  expect(watermarkOf(db)).toBe(before);
  expect(await load(settings, 'delta')).toMatchObject({ updated: 3 });
  expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
});

it('a delta that starts later than the watermark less the overlap does not move the watermark', async () => {
  let aheadMs = 0;
  const { directory, db, settings } = await filled(
    { items: 10, clock: { ...systemClock, now: () => Date.now() + aheadMs } },
    PATIENT,
  );
  const before = watermarkOf(db);
  aheadMs = 5_000;
  // A change that becomes visible now may have an earlier time, and would never be read.
  const since = new Date(before - 5_000).toISOString();
  expect((await runHere(['sync', '--from', since], settings, directory)).code).toBe(0);
  expect(watermarkOf(db)).toBe(before);
  await load(settings, 'delta');
  expect(watermarkOf(db)).toBeGreaterThan(before);
});

it('a list that never ends is an error, not an endless run', async () => {
  const { source, run } = await rawPlace([], { CATCHWORD_PER_PAGE: '50' });
  source.instead = (url) => {
    const [page, perPage] = ['page', 'per_page'].map((name) => Number(url.searchParams.get(name)));
    const totals = `"num_items":25,"page":${page},"per_page":${perPage},"total_pages":1`;
    return { status: 200, body: `{${totals},"items":[${bodies(numbered(perPage ?? 0)).join(',')}]}` };
  };
  await expect(run()).rejects.toMatchObject({
    code: 'PAGE_INVALID',
    message: expect.stringContaining('repeats the one before it') as string,
  });
});

it.each([49, 50, 51, 57])('a list of %i products whose total is too low ends with its last page', async (length) => {
  const more = { CATCHWORD_PER_PAGE: '20', CATCHWORD_SEAM: '3', CATCHWORD_MAX_PASSES: '1' };
  const { source, run } = await rawPlace(bodies(numbered(length)), more);
  source.instead = (url) => {
    const [page = 0, perPage = 0] = ['page', 'per_page'].map((name) => Number(url.searchParams.get(name)));
    const all = isDelta(url) ? [] : source.items;
    const total = Math.min(30, all.length);
    const totals = `"num_items":${total},"page":${page},"per_page":${perPage},"total_pages":${Math.ceil(total / perPage)}`;
    return { status: 200, body: `{${totals},"items":[${all.slice((page - 1) * perPage, page * perPage).join(',')}]}` };
  };
  expect(await run()).toMatchObject({ state: 'complete', proof: 'open', items: length });
});

it('a full run reads a catalog that changes while it is read', { tags: ['slow'] }, async () => {
  const changing = { items: 20_000, churnPerSecond: 200, latencyMs: 20 };
  const { db, settings } = await place(changing, { CATCHWORD_PER_PAGE: '250' });
  const run = await load(settings, 'full');
  expect(run.state).toBe('complete');
  expect(run.created).toBeGreaterThan(19_000);
  expectExactLog(db);
});
