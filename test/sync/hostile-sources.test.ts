import type { RawSource } from '@catchword/testing/raw-source';
import { expect, it } from 'vitest';
import { catalogOf, expectExactLog } from '../support/mirror.ts';
import { isDelta, rawPlace } from './raw-place.ts';

/*
 * Small sources that change at the worst moment, so that a product which is in no window seems to be gone. Windows hold 20
 * products and share 5: the offsets 0 to 19, then 15 to 29, then 20 to 39.
 */

const SETTINGS = {
  CATCHWORD_PER_PAGE: '20',
  CATCHWORD_SEAM: '5',
  CATCHWORD_DELTA_OVERLAP: '0s',
};

function book(vbid: string, more: object = {}): Buffer {
  return Buffer.from(JSON.stringify({ vbid, title: vbid, ...more }));
}

function names(letter: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${letter}${String(at).padStart(2, '0')}`);
}

/** A mirror of these products, whose source then changes in `before`, which gets each request of the next runs. */
async function mirrored(vbids: readonly string[], more: Record<string, string> = {}) {
  const place = await rawPlace(
    vbids.map((vbid) => book(vbid)),
    { ...SETTINGS, ...more },
  );
  await place.run();
  return place;
}

/** Calls `happen` before the first window that does not begin the list is answered. */
function duringRead(source: RawSource, happen: () => void): void {
  let isOver = false;
  source.instead = (asked) => {
    if (isOver || isDelta(asked) || Number(asked.searchParams.get('page')) < 2) return null;
    isOver = true;
    happen();
    return null;
  };
}

function answerLookups(source: RawSource, isThere: (vbid: string) => boolean): void {
  source.instead = ({ pathname }) => {
    const [, vbid] = /\/products\/(.+)$/.exec(pathname) ?? [];
    if (vbid === undefined) return null;
    return isThere(vbid) ? { status: 200, body: book(vbid) } : { status: 404, body: '{"errors":["Book not found"]}' };
  };
}

const P = names('p', 15);
const G = names('G', 5);
const left = P.filter((vbid) => vbid !== 'p03');

it.each<[string, object]>([
  ['edits', { edited: true }],
  ['touches', {}],
])(
  'a living product that is in no window is kept if a job %s the products at a seam in turn, so that they return to their places',
  async (_what, edit) => {
    const { source, db, run } = await mirrored([...P, ...G, 'z']);
    duringRead(source, () => {
      const edited = G.map((vbid) => book(vbid, edit));
      source.items = [...[...left, 'z'].map((vbid) => book(vbid)), ...edited];
      source.changed = edited;
    });
    expect(await run()).toMatchObject({ proof: 'open', removed: 0 });
    expect(catalogOf(db).has('z')).toBe(true);
    expectExactLog(db);
  },
);

it('a living product that is in no window is kept if such products were edited, then erased before a delta could tell of it', async () => {
  const { source, db, run } = await mirrored([...P, ...G, 'z']);
  duringRead(source, () => {
    source.items = [...[...left, 'z'].map((vbid) => book(vbid)), ...G.map((vbid) => book(vbid, { edited: true }))];
    const shown = source.items;
    source.instead = ({ searchParams }) => {
      if (searchParams.has('from')) source.items = shown.slice(0, -G.length);
      return null;
    };
  });
  await run();
  expect(catalogOf(db).has('z')).toBe(true);
  expectExactLog(db);
});

it('a living product that is in no window is kept if it changed places with another one, and a delta shows one more that was withdrawn', async () => {
  const all = names('p', 39);
  const { source, db, run } = await mirrored([...all, 'withdrawn']);
  source.items = all.map((vbid) => book(vbid));
  source.changed = [book('withdrawn', { distributable: false })];
  const swapped = all.map((vbid) => (vbid === 'p03' ? 'p37' : vbid === 'p37' ? 'p03' : vbid));
  // Whenever the end of the list is read, the two are where they do not show that p37 is there.
  source.instead = ({ searchParams }) => {
    if (searchParams.has('from')) return null;
    const isEnd = Number(searchParams.get('page')) * Number(searchParams.get('per_page')) > 30;
    source.items = (isEnd ? swapped : all).map((vbid) => book(vbid));
    return null;
  };
  const why = [
    'the source says that it has 39 products, and 38 were read',
    'p03 is at two distant places: the list has it twice, or has no stable order',
  ];
  for (let night = 1; night <= 3; night++) {
    expect(await run()).toMatchObject({ proof: 'open', reasons: why, removed: 0 });
  }
  expect(catalogOf(db).has('p37')).toBe(true);
});

it('a run names a product that the list has twice, and removes what a lookup does not find', async () => {
  const all = names('p', 60);
  const { source, db, run } = await mirrored([...all, 'gone']);
  // A row for each territory.
  source.items = [...all, 'p05'].map((vbid) => book(vbid));
  answerLookups(source, (vbid) => vbid !== 'gone');
  const why = 'p05 is at two distant places: the list has it twice, or has no stable order';
  const night = await run();
  expect(night).toMatchObject({ proof: 'open', removed: 0, missing: 1 });
  expect(night.reasons).toContain(why);
  const lookups = { CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' };
  expect(await run('full', lookups)).toMatchObject({ proof: 'open', removed: 1, missing: 0 });
  expect(catalogOf(db).has('gone')).toBe(false);
});

it('a run is sealed although the list has a product that was withdrawn before the mirror knew it', async () => {
  const { source, db, run } = await mirrored(names('p', 45), { CATCHWORD_WITHDRAWN_AS: 'removed' });
  source.items = [...source.items.slice(0, 17), book('gone', { distributable: false }), ...source.items.slice(18)];
  expect(await run()).toMatchObject({ proof: 'sealed', removed: 1, missing: 0 });
  expect(catalogOf(db).has('gone')).toBe(false);
});

it('a delta adds nothing for a withdrawn product that a run has removed before', async () => {
  const { source, db, run } = await mirrored(names('p', 10));
  source.items = source.items.slice(0, 9);
  expect(await run()).toMatchObject({ proof: 'sealed', removed: 1 });
  source.changed = [book('p09', { distributable: false })];
  expect(await run('delta')).toMatchObject({ restored: 0, updated: 0 });
  expect(catalogOf(db).size).toBe(9);
});

it('a run removes nothing because of lookups that stop finding anything', async () => {
  const all = names('p', 45);
  const lookups = { CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid', CATCHWORD_SEAM: 'off' };
  const { source, db, run } = await mirrored(all, lookups);
  // Three living products that the list does not show.
  source.items = source.items.slice(3);
  let asked = 0;
  answerLookups(source, () => asked++ === 0);
  expect(await run()).toMatchObject({ proof: 'open', removed: 0, missing: 3 });
  expect(catalogOf(db).size).toBe(45);
  answerLookups(source, (vbid) => all.indexOf(vbid) >= 2);
  expect(await run()).toMatchObject({ proof: 'open', removed: 2, missing: 0 });
});
