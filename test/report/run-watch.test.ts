import { createRandom } from '@catchword/sandbox/catalog/random';
import { expect, it } from 'vitest';
import { windowsFrom, windowsOver } from '../../src/proof/plan.ts';
import { picturesOf } from '../../src/report/run-picture.ts';
import { createRunWatch, watchRun } from '../../src/report/run-watch.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { Reader } from '../../src/store/schema/reader.ts';
import type { Store } from '../../src/store/store.ts';
import { assessRun } from '../../src/sync/evidence.ts';
import { seamsOf } from '../../src/sync/verdict.ts';
import { reading } from '../operate/daemon.ts';
import { load } from '../support/load.ts';
import { filled, place } from '../support/place.ts';
import { ids, type PassSketch, START, sketchRun, type WindowSketch } from '../sync/run-sketch.ts';

const LIST = { perPage: 10, seam: 2 };
const UNFINISHED = { evidence: null, finishedAt: null, pages: 0 };

/** The letters of the seams of each list of several windows, by its pass, without what follows the list's end. */
function seamsIn(store: Reader, id: number, watch = createRunWatch(store, id)): Map<number, string> {
  watch.update();
  return new Map(picturesOf(watch, UNFINISHED).map(({ pass, seams }) => [pass, seams.trimEnd()]));
}

/** The same as if the run had judged no seam yet. */
function previewOf(store: Store, id: number): Map<number, string> {
  return seamsIn({ ...store, runs: { ...store.runs, notedSeams: () => [] } }, id);
}

/** A list of 60 products that moves while its windows are read, what changed meanwhile, and repairs. */
function randomPasses(seed: number): PassSketch[] {
  const random = createRandom(seed);
  const dice = (below: number): number => Math.floor(random() * below);
  const drift = dice(4);
  let order = ids(1, 60);
  function move(): void {
    for (let left = dice(drift + 1); left > 0; left--) {
      const [one] = order.splice(dice(order.length), 1);
      if (one !== undefined) order.push(one);
    }
    if (dice(4) < drift) order = order.slice(dice(3));
  }
  function read(page: number, perPage: number): WindowSketch {
    move();
    return { page, perPage, ids: order.slice((page - 1) * perPage, page * perPage), total: order.length };
  }
  const windows: WindowSketch[] = [];
  for (const { page, perPage } of windowsFrom(LIST)) {
    const window = read(page, perPage);
    windows.push(window);
    if (window.ids.length < perPage) break;
  }
  const changed = () => ids(1, 60).filter(() => dice(10) < drift);
  const delta = (): PassSketch => ({ kind: 'delta', windows: [{ ids: changed() }], perPage: 100 });
  const passes: PassSketch[] = [{ windows, ...LIST }, delta()];
  for (let round = dice(3); round > 0; round--) {
    const from = dice(50);
    const repairs = windowsOver(from, from + 8, LIST).map(({ page, perPage }) => read(page, perPage));
    passes.push({ kind: 'repair', root: 0, windows: repairs, ...LIST }, delta());
  }
  return passes;
}

it('seams close between neighbours that share a product, until the run has noted how it judged them', {
  tags: ['slow'],
}, () => {
  const tally = { j: 0, r: 0, o: 0 };
  for (let seed = 1; seed <= 80; seed++) {
    const passes = randomPasses(seed);
    const { store, run } = sketchRun({ products: 60, passes });
    const watch = watchRun(store, run.id);
    const windows = passes[0]?.windows.filter((window) => window.ids.length > 0) ?? [];
    const shared = windows.slice(1).map(({ ids: after }, at) => windows[at]?.ids.some((id) => after.includes(id)));
    expect(seamsIn(store, run.id, watch).get(0)).toBe(shared.map((some) => (some ? 'j' : 'o')).join(''));

    const assessment = assessRun(store, run.id);
    writeUnder(store.keeperLease, START, ({ runs }) => runs.noteSeams(run.id, seamsOf(assessment)));
    const judged = assessment.lists[0]?.seams?.states ?? [];
    expect(seamsIn(store, run.id, watch).get(0)).toBe(judged.join(''));
    // A process that starts after a crash has not watched the run before.
    expect(seamsIn(store, run.id).get(0)).toBe(judged.join(''));
    for (const letter of judged) tally[letter as keyof typeof tally]++;
    expect(store.runs.get(run.id)?.evidence).toBeNull();
  }
  expect(tally.r).toBeGreaterThan(3);
  expect(tally.o).toBeGreaterThan(10);
});

it.each([
  ['a list by key', {}],
  ['a list by time of change, newest first', { order: 'updated-desc' as const }],
  ['a list by time of change, oldest first', { order: 'updated-asc' as const }],
])(
  'the seams are the same after a crash while it waits, and in its evidence: %s',
  { tags: ['slow'] },
  async (_name, options) => {
    const here = await place({ items: 10_000, latencyMs: 20, details: false, churnPerSecond: 200, ...options });
    const stop = new AbortController();
    const crashed = load({ ...here.settings, CATCHWORD_DELTA_OVERLAP: '1h' }, 'full', stop.signal).catch(() => {});
    const store = reading(here.db);
    await expect.poll(() => store.runs.get(1)?.settlesAt ?? null).not.toBeNull();
    const before = seamsIn(store, 1);
    stop.abort();
    await crashed;
    expect(before.get(0)).toMatch(/^[jro]{10,}$/);
    expect(store.runs.notedSeams(1)[0]?.seams).toBe(before.get(0));
    expect(seamsIn(store, 1)).toEqual(before);

    const run = await load({ ...here.settings, CATCHWORD_DELTA_OVERLAP: '1s' }, 'full');
    await here.sandbox.stop();
    expect(run.id).toBe(1);
    expect(seamsIn(store, 1).get(0)).toBe(run.evidence?.lists[0]?.seams);
  },
);

it('the picture is the same whether checkpoints are read one by one or all at once', async () => {
  const here = await filled({ items: 6_000, details: false });
  const store = reading(here.db);
  const after: typeof store.runs.after = (run, rowid) => store.runs.after(run, rowid, 1);
  const runs = { ...store.runs, after, notedSeams: () => [] };
  const watch = createRunWatch({ ...store, runs }, 1);
  const closed: number[] = [];
  for (const _row of store.runs.after(1, 0, 1_000)) {
    watch.update();
    closed.push(picturesOf(watch, UNFINISHED)[0]?.joints.j ?? 0);
  }
  expect(closed).toEqual(closed.toSorted((a, b) => a - b));
  expect(picturesOf(watch, UNFINISHED)[0]?.seams.trimEnd()).toBe(previewOf(store, 1).get(0));
  expect(closed.at(-1)).toBeGreaterThan(4);
});

it('the picture is drawn from its record when a later run has completed', async () => {
  const here = await filled({ items: 6_000, details: false, churnPerSecond: 0 });
  const store = reading(here.db);
  const after: typeof store.runs.after = (run, rowid) => store.runs.after(run, rowid, 1);
  const watch = createRunWatch({ ...store, runs: { ...store.runs, after } }, 1);
  watch.update();
  expect(picturesOf(watch, UNFINISHED)[0]).toMatchObject({ read: 1 });
  const run = store.runs.get(1) ?? expect.fail();
  await load(here.settings, 'full');
  watch.update();
  const seams = run.evidence?.lists[0]?.seams ?? '';
  expect(seams).toMatch(/^j{5,}$/);
  const expected = { read: seams.length + 1, planned: seams.length + 1, seams: `${seams} ` };
  expect(picturesOf(watch, run)).toMatchObject([expected]);
});

it('the picture of a list that is read from its end plans up to where the first reading found products, even if only the second one is watched', () => {
  const list = { perPage: 10, seam: 2, numItems: 60 };
  const windows = [
    { ids: ids(1, 10), total: 60 },
    { page: 2, perPage: 8, ids: ids(9, 13), total: 60 },
  ];
  const passes: PassSketch[] = [
    { ...list, windows },
    { kind: 'delta', windows: [{ ids: [] }] },
  ];
  const { store, run } = sketchRun({ products: 13, passes: [...passes, { ...list, reversed: true, windows: [] }] });
  const watch = createRunWatch(store, run.id);
  watch.update();
  expect(picturesOf(watch, UNFINISHED)).toMatchObject([
    { pass: 0, planned: 2, read: 2 },
    { pass: 2, planned: 2, read: 0, reversed: true },
  ]);
});

it('the picture of a long list, which is read in steps, shows the worst of the windows that share a cell', () => {
  const windows = Array.from({ length: 4_000 }, (_, at) => ({
    page: at + 1,
    perPage: 1,
    ids: at === 2_001 ? [] : [1],
    total: 6_500,
    rejected: at === 2_001 ? 1 : 0,
  }));
  const { store, run } = sketchRun({ products: 1, passes: [{ windows, perPage: 1, seam: 0 }] });
  const watch = watchRun(store, run.id);
  let steps = 1;
  while (!watch.update()) {
    steps++;
    expect(watch.isGone({ finishedAt: START, pages: 4_000 })).toBe(false);
  }
  expect(steps).toBeGreaterThan(4);
  const [picture] = picturesOf(watch, UNFINISHED);
  expect(picture).toMatchObject({ perCell: 3, planned: 6_501, read: 4_000, places: '' });
  expect(picture?.cells).toBe(`${'w'.repeat(667)}x${'w'.repeat(665)}${'.'.repeat(834)}`);
  expect(picture?.windows).toMatchObject({ w: 3_999, x: 1, '.': 2_501 });
});
