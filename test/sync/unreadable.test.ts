import type { RawSource } from '@catchword/testing/raw-source';
import { expect, it } from 'vitest';
import { catalogOf, expectExactLog } from '../support/mirror.ts';
import { bodies, isDelta, numbered, rawPlace } from './raw-place.ts';

const BOOKS = numbered(900);

interface Asked {
  readonly from: boolean;
  readonly page: number;
  readonly perPage: number;
  readonly start: number;
  readonly end: number;
}

function askedOf(url: URL): Asked {
  const { searchParams } = url;
  const [page, perPage] = [Number(searchParams.get('page')), Number(searchParams.get('per_page'))];
  return { from: isDelta(url), page, perPage, start: (page - 1) * perPage, end: page * perPage };
}

/** Answers these requests with an error. */
function refuse(source: RawSource, status: number, isRefused: (asked: Asked) => boolean): void {
  source.instead = (url) => (isRefused(askedOf(url)) ? { status } : null);
}

/** The page that was asked for, with this total. */
function pageOf({ page, perPage, start, end }: Asked, items: readonly Buffer[], total: number) {
  const totals = `"num_items":${total},"page":${page},"per_page":${perPage},"total_pages":${Math.ceil(total / perPage)}`;
  return { status: 200, body: `{${totals},"items":[${items.slice(start, end).join(',')}]}` };
}

const holds =
  (...offsets: number[]) =>
  ({ from, start, end }: Asked): boolean =>
    !from && offsets.some((offset) => start <= offset && offset < end);

const begin = (more: Record<string, string> = {}) =>
  rawPlace(bodies(BOOKS), { CATCHWORD_PER_PAGE: '100', CATCHWORD_DELTA_OVERLAP: '0s', ...more });

it.each<[string, number]>([
  ['in the first page', 3],
  ['in the middle', 437],
  ['at the end', 899],
])('a product whose pages fail %s is named, and all others are read', async (_where, offset) => {
  const { source, db, run } = await begin();
  refuse(source, 500, holds(offset));
  const ended = await run();
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', created: 899 });
  expect(ended.reasons[0]).toMatch(new RegExp(`^offset ${offset} cannot be read: .*answered 500`));
  expect(catalogOf(db).has(`B${offset}`)).toBe(false);
  // Eight attempts, then two or three for each narrower window.
  expect(source.requests.length).toBeLessThan(120);
  source.instead = () => null;
  expect(await run()).toMatchObject({ proof: 'sealed', created: 1 });
  expectExactLog(db);
});

it('a product whose pages fail is kept, and no other product is removed meanwhile', { tags: ['slow'] }, async () => {
  const { source, db, run } = await begin();
  await run();
  source.items = bodies(BOOKS.filter((_, at) => at !== 500));
  refuse(source, 500, holds(437));
  for (let night = 1; night <= 3; night++) {
    expect(await run()).toMatchObject({ state: 'complete', proof: 'open', removed: 0, missing: 2 });
  }
  source.changed = bodies(['B3']);
  expect(await run('delta')).toMatchObject({ state: 'complete' });
  expect(catalogOf(db).size).toBe(900);
  source.instead = () => null;
  expect(await run()).toMatchObject({ proof: 'sealed', removed: 1 });
  expect(catalogOf(db).has('B437')).toBe(true);
});

it('a product whose pages fail is one of several', async () => {
  const { source, run } = await begin();
  refuse(source, 500, holds(10, 437, 438, 700));
  const ended = await run();
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', created: 896 });
  expect(
    ended.reasons.filter((reason) => reason.includes('cannot be read')).map((reason) => reason.slice(0, 10)),
  ).toEqual(['offset 10 ', 'offset 437', 'offset 438', 'offset 700']);
});

it('a product whose pages fail is in a delta, whose other products are read; the next delta asks from no later time', async () => {
  const { source, db, run } = await begin();
  await run();
  source.changed = bodies(['N1', 'N2', 'N3', 'N4']);
  refuse(source, 500, ({ from, start, end }) => from && start <= 2 && 2 < end);
  const ended = await run('delta');
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', created: 3 });
  expect(ended.reasons[0]).toMatch(/^offset 2 cannot be read: .*the delta since/);
  source.instead = () => null;
  const next = await run('delta');
  expect(next).toMatchObject({ state: 'complete', created: 1 });
  expect(next.from).toBeLessThanOrEqual(Number(ended.from));
  expect(catalogOf(db).has('N3')).toBe(true);
});

it('a run with more than 20 products whose pages fail ends with an error', async () => {
  const { source, run } = await begin();
  await run();
  refuse(source, 500, holds(...Array.from({ length: 21 }, (_, at) => 210 + at)));
  await expect(run()).rejects.toMatchObject({
    code: 'PAGE_INVALID',
    retryable: false,
    message: expect.stringContaining('more than 20 offsets cannot be read') as string,
  });
  // The run does not stand in the way of the next ones.
  source.changed = bodies(['N1']);
  expect(await run('delta')).toMatchObject({ id: 3, kind: 'delta', created: 1 });
});

/** Refuses these pages, and all after the end of the list and of deltas. */
function refuseAfterEnd(source: RawSource, isRefused: (asked: Asked) => boolean): void {
  source.instead = (url) => {
    const asked = askedOf(url);
    const { length } = asked.from ? source.changed : source.items;
    if (asked.start >= Math.max(1, length)) return { status: 404 };
    return isRefused(asked) ? { status: 500 } : null;
  };
}

it('a product that fails the only page of a list is named, if pages after the end are refused before any is answered', async () => {
  const { source, run } = await begin();
  source.items = bodies(BOOKS.slice(0, 60));
  refuseAfterEnd(source, holds(3));
  const ended = await run();
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', created: 59 });
  expect(ended.reasons[0]).toMatch(/^offset 3 cannot be read: /);
});

it.each([2, 12, 47])(
  'a product that fails the only page of a list is named in a delta, although the list cannot be read there either: offset %i',
  async (offset) => {
    const { source, run } = await begin();
    source.items = bodies(BOOKS.slice(0, 60));
    await run();
    source.changed = [...source.items];
    refuseAfterEnd(source, ({ start, end }) => start <= offset && offset < end);
    const ended = await run('delta');
    expect(ended).toMatchObject({ state: 'complete', proof: 'open' });
    expect(ended.reasons[0]).toMatch(new RegExp(`^offset ${offset} cannot be read: .*the delta since`));
    refuse(source, 500, ({ start, end }) => start <= offset && offset < end);
    expect((await run('delta')).reasons[0]).toMatch(/^offset \d+ cannot be read: /);
  },
);

it.each([
  [401, 'SOURCE_UNAVAILABLE'],
  [429, 'SOURCE_RATE_LIMITED'],
])('a run takes no product for unreadable because narrower windows are refused with %i', async (status, code) => {
  const { source, run } = await begin();
  source.instead = (url) => {
    const asked = askedOf(url);
    return holds(437)(asked) ? { status: asked.perPage > 40 ? 500 : status } : null;
  };
  await expect(run()).rejects.toMatchObject({ code, status });
});

it('a run fails if the source stops answering at all, and goes on with its pages later', async () => {
  const { source, run } = await begin();
  let left = 4;
  refuse(source, 503, ({ from }) => !from && left-- <= 0);
  await expect(run()).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE', status: 503 });
  const before = source.requests.length;
  source.instead = () => null;
  expect(await run()).toMatchObject({ id: 1, state: 'complete', proof: 'sealed', created: 900 });
  expect(source.requests.length - before).toBeLessThan(14);
});

it('a run fails if a delta cannot be read at all, with few requests', async () => {
  const { source, run } = await begin({ CATCHWORD_PER_PAGE: '1000' });
  await run();
  const before = source.requests.length;
  refuse(source, 500, ({ from }) => from);
  await expect(run('delta')).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE', status: 500 });
  expect(source.requests.length - before).toBeLessThan(120);
  source.instead = () => null;
  expect(await run()).toMatchObject({ state: 'complete', proof: 'sealed' });
});

it('a full run does not fail because deltas do not reach back to the watermark', { tags: ['slow'] }, async () => {
  const { source, run } = await begin();
  await run();
  source.instead = (url) => {
    const from = url.searchParams.get('from');
    return from !== null && Date.parse(from) < oldest ? { status: 400 } : null;
  };
  await new Promise((resolve) => setTimeout(resolve, 4_500));
  const oldest = Date.now() - 4_500;
  await expect(run('delta')).rejects.toMatchObject({ status: 400 });
  expect(await run()).toMatchObject({ state: 'complete', proof: 'sealed' });
  expect(await run('delta')).toMatchObject({ state: 'complete' });
});

it('a run fails if the source answers each plain page with its first one', async () => {
  const { source, run } = await begin({ CATCHWORD_SEAM: 'off' });
  source.instead = (url) => {
    const asked = askedOf(url);
    return asked.from ? null : pageOf({ ...asked, start: 0, end: asked.perPage }, source.items, 900);
  };
  await expect(run()).rejects.toMatchObject({ code: 'PAGE_INVALID' });
});

it.each<[string, readonly number[], number]>([
  ['two in the first page', [1, 70], 898],
  ['the last ones', [897, 898, 899], 897],
  ['five in a row', [430, 431, 432, 433, 434], 895],
])('a run reads all but %s, if pages after the end are refused, too', async (_what, offsets, created) => {
  const { source, run } = await begin();
  refuseAfterEnd(source, holds(...offsets));
  expect(await run()).toMatchObject({ state: 'complete', proof: 'open', created });
  // Nor does it end the deltas.
  source.changed = bodies(['N1', 'N2', 'N3']);
  expect(await run('delta')).toMatchObject({ state: 'complete', created: 3 });
});

it('a run goes on after a window at the end by a total that is too low, which is read in narrower ones', {
  tags: ['slow'],
}, async () => {
  const { source, db, run } = await begin();
  source.items = bodies(BOOKS.slice(0, 680));
  await run();
  source.instead = (url) => {
    const asked = askedOf(url);
    if (asked.from) return null;
    if (asked.start < 490 && asked.end > 490 && asked.perPage > 60) return { status: 502 };
    return pageOf(asked, source.items, 490);
  };
  for (let night = 1; night <= 3; night++) expect(await run()).toMatchObject({ removed: 0, missing: 0 });
  expect(catalogOf(db).size).toBe(680);
});

it('a run leaves a gap open whose repair cannot be read, and deltas go on', async () => {
  const { source, db, run } = await begin();
  await run();
  let isTorn = false;
  source.instead = (url) => {
    const { from, start, end } = askedOf(url);
    if (!from && start >= 300 && !isTorn) {
      isTorn = true;
      source.items = bodies(BOOKS.slice(60));
    }
    // From then on.
    return isTorn && !from && start <= 290 && 290 < end && source.requests.length > 25 ? { status: 500 } : null;
  };
  const ended = await run();
  expect(ended).toMatchObject({ state: 'complete', removed: 0 });
  source.changed = bodies(['N1']);
  expect(await run('delta')).toMatchObject({ state: 'complete', created: 1 });
  expect(catalogOf(db).size).toBe(901);
});

it('a run reads a page that fails as a whole in narrower windows, and proves the list', async () => {
  const { source, run } = await begin();
  refuse(source, 504, ({ page, perPage }) => page === 3 && perPage > 80);
  expect(await run()).toMatchObject({ state: 'complete', proof: 'sealed', created: 900 });
});

it.each<[number, number, number]>([
  [400, 120, 100],
  [413, 70, 50],
  [422, 30, 25],
  [504, 300, 250],
])('pages that are too large are asked for with half the size: %i above %i products', async (status, most, size) => {
  const { source, run } = await begin({ CATCHWORD_PER_PAGE: size === 250 ? '1000' : '400' });
  refuse(source, status, ({ perPage }) => perPage > most);
  expect(await run()).toMatchObject({ state: 'complete', proof: 'sealed', created: 900 });
  const sizes = source.requests.map((url) => askedOf(url).perPage);
  expect(Math.max(...sizes.slice(-5))).toBe(size);
});

it.each([400, 404, 500])(
  'a list that the source does not show beyond some offset is read up to there, which the run names (%i), and deltas go on',
  async (status) => {
    const { source, db, run } = await begin();
    refuse(source, status, ({ from, end }) => !from && end > 500);
    const ended = await run();
    expect(ended).toMatchObject({ state: 'complete', proof: 'open' });
    expect(ended.reasons).toContainEqual(expect.stringMatching(/^offset 500 and everything after it cannot be read/));
    expect(catalogOf(db).size).toBe(500);
    source.changed = bodies(['B1', 'N1']);
    expect(await run('delta')).toMatchObject({ state: 'complete', created: 1 });
    // Not for each of the products after it.
    expect(source.requests.length).toBeLessThan(150);
  },
);

it('a run removes nothing that is beyond the last offset that the source shows and counts', async () => {
  const { source, db, run } = await begin();
  source.items = bodies(BOOKS.slice(0, 540));
  await run();
  source.instead = (url) => {
    const asked = askedOf(url);
    if (asked.from) return null;
    return asked.end > 500 ? { status: 400 } : pageOf(asked, source.items, 500);
  };
  for (let night = 1; night <= 3; night++) {
    const ended = await run();
    expect(ended).toMatchObject({ proof: 'open', removed: 0 });
    expect(ended.reasons[0]).toMatch(/^offset 500 and everything after it cannot be read/);
  }
  expect(catalogOf(db).size).toBe(540);
});

/** At most 100 products a page, and totals that stop at `cap`. */
function capTotals(source: RawSource, cap: number, beyond: number | 'the last page' | null): void {
  source.instead = (url) => {
    const { from, page } = askedOf(url);
    const listed = from ? source.changed : source.items;
    const isAfter = page > 1 && (page - 1) * 100 >= listed.length;
    if (isAfter && typeof beyond === 'number') return { status: beyond };
    const start = isAfter && beyond !== null ? listed.length - 100 : (page - 1) * 100;
    const shown = { from, page, perPage: 100, start, end: start + 100 };
    return pageOf(shown, listed, Math.min(cap, listed.length));
  };
}

it.each([null, 404, 400, 'the last page'] as const)(
  'totals that are too low do not end the reading of plain pages; after the end: %s',
  async (beyond) => {
    const { source, db, run } = await begin({ CATCHWORD_PER_PAGE: '1000' });
    source.items = bodies(BOOKS.slice(0, 800));
    capTotals(source, 10_000, beyond);
    expect(await run()).toMatchObject({ state: 'complete', created: 800 });
    // The cap appears later.
    capTotals(source, 500, beyond);
    for (let night = 1; night <= 3; night++) {
      expect(await run()).toMatchObject({ state: 'complete', removed: 0, missing: 0 });
    }
    expect(catalogOf(db).size).toBe(800);
  },
);
