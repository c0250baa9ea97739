import { setTimeout as delay } from 'node:timers/promises';
import { execute } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { openedStore } from '../store/opened-store.ts';
import { runHere } from '../support/in-process.ts';
import { catalogOf, expectExactLog } from '../support/mirror.ts';
import { isDelta } from './raw-place.ts';
import { fromOf, names, scripted } from './scripted-place.ts';

/*
 * Histories in which a run was sealed over a product that it had not read, or moved its watermark past one. Windows hold 20
 * products and share 5: the offsets 0 to 19, then 15 to 29, then 20 to 39.
 */

it('a living product is kept although the settling delta moved while its pages were read', async () => {
  const { shelf, fill, run, has, db } = await scripted(names(200).reverse());
  await fill();
  const edited = Array.from({ length: 25 }, (_, at) => `p${293 - 7 * at}`);
  shelf.onList = (before) => {
    if (before !== 1) return;
    // p100 is edited, and deltas do not tell it yet; p290 was read.
    shelf.edit('p100', { edition: 2 });
    shelf.list = ['p100', ...shelf.list.filter((vbid) => vbid !== 'p100')];
    shelf.erase('p290');
  };
  shelf.onDelta = (before, page) => {
    if (before === 1) {
      for (const vbid of edited) shelf.edit(vbid, { edition: 2 });
      shelf.told = [...edited, 'p100'];
      shelf.list = [...edited, ...shelf.list.filter((vbid) => !edited.includes(vbid))];
    }
    if (before === 2 && page === 2) {
      shelf.edit('p100', { edition: 3 });
      shelf.told = ['p100', ...edited];
      shelf.erase('p272');
    }
    // What was modified since the settling delta began.
    if (before > 2) shelf.told = ['p100'];
  };
  // p290 was read before it was erased.
  expect(await run()).toMatchObject({ proof: 'sealed', missing: 0, removed: 0 });
  expect(has('p100')).toBe(true);
  expectExactLog(db);
});

/** p100 moves to the end while p101 to p111 are erased, so that p130 and p131 slip between two windows. */
async function slipping(more: Record<string, string>, change: object, hasControl: boolean) {
  const place = await scripted(names(200), more);
  const { shelf } = place;
  for (const vbid of names(200)) shelf.edit(vbid, { stock: 1 });
  await place.fill(hasControl);
  shelf.onList = (before) => {
    if (before !== 2) return;
    shelf.edit('p100', change);
    shelf.list = [...shelf.list.filter((vbid) => vbid !== 'p100'), 'p100'];
    shelf.erase(...names(11, 101));
  };
  return place;
}

async function expectKept({ run, has, db }: Awaited<ReturnType<typeof slipping>>): Promise<void> {
  const night = await run();
  expect(has('p130') && has('p131')).toBe(true);
  // p100 to p111 were read before they were erased.
  expect(night).toMatchObject({ missing: 0, proof: 'sealed', removed: 0 });
  expectExactLog(db);
}

it('living products are kept although a product whose change is ignored joins two distant windows', async () => {
  const place = await slipping({ CATCHWORD_IGNORE_FIELDS: '/stock' }, { stock: 2 }, false);
  place.shelf.onDelta = () => place.shelf.erase('p100');
  await expectKept(place);
});

it('living products are kept although only the control of the deltas tells of a product that joins two windows', async () => {
  const place = await slipping({}, {}, true);
  const { shelf } = place;
  shelf.onDelta = (before) => {
    shelf.told = before === 1 ? ['p100'] : [];
    if (before > 1) shelf.erase('p100');
  };
  await expectKept(place);
});

it('living products are kept although a window of a repair is answered as if the list were empty', async () => {
  const { shelf, run, has } = await slipping({ CATCHWORD_MAX_PASSES: '1' }, { edition: 2 }, false);
  let windows = Number.POSITIVE_INFINITY;
  shelf.onDelta = () => {
    shelf.told = ['p100'];
    windows = 0;
  };
  shelf.isBlank = (before) => before > windows;
  expect(await run()).toMatchObject({ proof: 'open', removed: 0 });
  expect(has('p130') && has('p131')).toBe(true);
});

it('a delta run reads a change that slipped out of a long delta of products that a run has removed', async () => {
  const gone = names(20, 300);
  const { shelf, fill, run, db } = await scripted(['p100', ...gone], { CATCHWORD_WITHDRAWN_AS: 'removed' });
  await fill();
  for (const vbid of gone) shelf.edit(vbid, { distributable: false });
  shelf.list = ['p100'];
  shelf.told = gone;
  await run('delta');
  expect(catalogOf(db).size).toBe(1);
  shelf.edit('p100', { edition: 2 });
  shelf.told = [...gone, 'p100'];
  shelf.onDelta = (_before, page) => {
    if (page === 1) return;
    shelf.onDelta = () => {};
    // Those that both windows show are edited in turn, and move behind p100.
    for (const vbid of gone.slice(15)) shelf.edit(vbid, { edition: 2 });
    shelf.told = [...gone.slice(1, 15), 'p100', ...gone.slice(15)];
  };
  expect(await run('delta')).toMatchObject({ state: 'complete', updated: 1 });
  expect(JSON.stringify(catalogOf(db).get('p100'))).toContain('edition');
});

it.each<[string, object]>([
  ['touches', {}],
  ['changes of an ignored field', { stock: 2 }],
])('a first load waits for deltas that tell late of %s, as a later full run would', async (_what, change) => {
  const [before, moved] = [names(15), names(5, 200)];
  const place = await scripted([...before, ...moved, 'z'], { CATCHWORD_IGNORE_FIELDS: '/stock' });
  const { shelf, run, has } = place;
  shelf.onList = (at) => {
    if (at !== 1) return;
    for (const vbid of moved) shelf.edit(vbid, change);
    shelf.list = [...before.filter((vbid) => vbid !== 'p103'), 'z', ...moved];
  };
  shelf.onDelta = (at) => {
    if (at > 0) shelf.told = moved;
  };
  await run();
  expect(has('z')).toBe(true);
});

it('a delta of plain pages that moved does not move the watermark', { tags: ['slow'] }, async () => {
  const all = names(40);
  const { shelf, run, db } = await scripted(all, { CATCHWORD_SEAM: 'off' });
  await run();
  const store = openedStore(db);
  const watermark = store.watermark();
  const edited = all.slice(0, 25);
  for (const vbid of edited) shelf.edit(vbid, { edition: 2 });
  shelf.told = edited;
  let isFirst = true;
  shelf.onDelta = (_before, page) => {
    if (page === 2) shelf.told = edited.slice(1);
    // Later deltas of the run start later.
    else if (!isFirst) shelf.told = [];
    isFirst = false;
  };
  // `Date` counts whole seconds, and Node.js keeps its text for one: after two, the deltas of this run start later.
  await delay(2_500);
  expect(await run('delta')).toMatchObject({ proof: 'open', updated: 24 });
  expect(store.watermark()).toBe(watermark);
  shelf.onDelta = () => {};
  shelf.told = edited.slice(10, 25);
  expect(await run('delta')).toMatchObject({ updated: 1 });
  expect(store.watermark()).toBeGreaterThan(watermark ?? 0);
});

it('the first watermark passes no change of a product that only a run which failed has read', async () => {
  const { shelf, run, db, source } = await scripted(names(60), { CATCHWORD_SEAM: 'off', CATCHWORD_MAX_PASSES: '1' });
  const { instead } = source;
  source.instead = (asked) => (asked.searchParams.get('page') === '2' ? { status: 401, body: '{}' } : instead(asked));
  await expect(run()).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE' });
  source.instead = instead;
  execute(db, 'UPDATE runs SET source_time = source_time - 60000, answered_at = answered_at - 60000');
  shelf.edit('p100', { edition: 2 });
  const editedAt = Date.now() - 30_000;
  shelf.onDelta = (_before, _page, from) => {
    shelf.told = from <= editedAt ? ['p100'] : [];
  };
  // p100 slips to the first page when that was read.
  shelf.list = [...names(20, 101), 'p100', ...names(39, 121)];
  let lists = 0;
  shelf.onList = () => {
    if (++lists === 2) shelf.erase('p101');
  };
  expect(await run()).toMatchObject({ id: 2, proof: 'open', missing: 1, updated: 0 });
  expect(await run('delta')).toMatchObject({ kind: 'delta', updated: 1 });
});

it('a source with links that change with each answer is read whole if the settings name them', async () => {
  const vbids = names(60);
  const links = { CATCHWORD_IGNORE_FIELDS: '/cover' };
  const { shelf, fill, run } = await scripted(vbids, { ...links, CATCHWORD_VOLATILE_FIELDS: '/cover' });
  shelf.onList = (before) => {
    for (const vbid of vbids) shelf.edit(vbid, { cover: `https://cdn.example/${vbid}?signed=${before}` });
  };
  await fill();
  expect(await run()).toMatchObject({ proof: 'sealed', updated: 0 });
  const open = await run('full', { ...links, CATCHWORD_VOLATILE_FIELDS: '' });
  expect(open).toMatchObject({ proof: 'open', updated: 0, removed: 0 });
  expect(open.reasons[0]).toBe(
    '5 of 6 seams did not close: each product that two windows share has another content in the second one',
  );
});

it('products whose withdrawal was undone are withdrawn again by the next delta', { tags: ['slow'] }, async () => {
  const gone = names(3);
  const { shelf, fill, run, settings, directory, has, source } = await scripted(names(30), {
    CATCHWORD_WITHDRAWN_AS: 'removed',
    CATCHWORD_DELTA_OVERLAP: '10s',
  });
  await fill();
  for (const vbid of gone) shelf.edit(vbid, { distributable: false });
  shelf.told = gone;
  expect(await run('delta')).toMatchObject({ removed: 3 });
  const told = Math.min(...source.requests.filter(isDelta).map(fromOf));
  // The withdrawal is older than the overlap when it is undone.
  shelf.onDelta = (_before, _page, from) => {
    shelf.told = from <= told ? gone : [];
  };
  expect(await runHere(['runs', 'undo', '2'], settings, directory)).toMatchObject({ code: 0 });
  expect(has('p100')).toBe(true);
  expect(await run('delta')).toMatchObject({ removed: 3 });
  expect(has('p100')).toBe(false);
});

const HOUR = 3_600_000;

/** A source whose deltas tell that p100 was edited only if they ask from an hour ago, or before. */
async function backAnHour() {
  const place = await scripted(names(60), { CATCHWORD_DELTA_OVERLAP: '10s' });
  await place.fill();
  const { shelf, source, db } = place;
  const isEdited = () => JSON.stringify(catalogOf(db).get('p100')).includes('edition');
  const turnBack = () => {
    source.aheadMs = -HOUR;
    shelf.edit('p100', { edition: 2 });
  };
  const tells = (from: number) => from <= Date.now() - HOUR;
  return { ...place, isEdited, turnBack, tells };
}

it('a delta run reads what was edited after the clock of the source was put back, although its deltas stay long', async () => {
  const { shelf, run, isEdited, turnBack, tells } = await backAnHour();
  turnBack();
  const others = names(50, 105);
  shelf.onDelta = (before, page, from) => {
    // Each delta has three pages, and moves while it is read.
    if (page === 1) shelf.told = [...(tells(from) ? ['p100'] : []), ...others.slice(before % 7)];
    else shelf.told = shelf.told.slice(1);
  };
  await run('delta');
  expect(isEdited()).toBe(true);
});

it('the next delta reads what was edited while the clock of the source was back, although it was forward again', async () => {
  const { shelf, source, run, isEdited, turnBack, tells } = await backAnHour();
  shelf.onList = (before) => {
    // After the only window that shows p100.
    if (before === 1) turnBack();
    if (before === 2) source.aheadMs = 0;
  };
  expect(await run('full', { CATCHWORD_SEAM: 'off' })).toMatchObject({ proof: 'open' });
  shelf.onDelta = (_before, _page, from) => {
    shelf.told = tells(from) ? ['p100'] : [];
  };
  await run('delta');
  expect(isEdited()).toBe(true);
});
