import { describe, expect, it, onTestFinished } from 'vitest';
import { windowsFrom, windowsOver } from '../../src/catalog/plan.ts';
import { picturesOf } from '../../src/report/run-picture.ts';
import { createRunWatch, watchRun } from '../../src/report/run-watch.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { assessRun } from '../../src/sync/assess-run.ts';
import { load } from '../support/load.ts';
import { filled, place } from '../support/place.ts';
import { ids, type PassSketch, sketchRun, type WindowSketch } from '../sync/run-sketch.ts';

const LIST = { perPage: 10, seam: 2 };
const UNFINISHED = { evidence: null, finishedAt: null, pages: 0 };

/** Letters of the preview of each list of several windows, by its pass, without what follows the list's end. */
function previewOf(store: Store, id: number): Map<number, string> {
  const watch = watchRun(store, { id, evidence: null });
  while (!watch.update());
  return new Map(picturesOf(watch, UNFINISHED).map(({ pass, seams }) => [pass, seams.trimEnd()]));
}

/** A generator of whole numbers from 0 to `below` - 1 that gives the same numbers for the same seed. */
function createDice(seed: number) {
  let state = seed;
  return (below: number): number => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A list of 60 products that moves while its windows are read, what changed meanwhile, and repairs. */
function randomPasses(seed: number): PassSketch[] {
  const dice = createDice(seed);
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
  const delta = (): PassSketch => ({
    kind: 'delta',
    windows: [{ ids: ids(1, 60).filter(() => dice(10) < drift) }],
    perPage: 100,
  });
  const passes: PassSketch[] = [{ windows, ...LIST }, delta()];
  for (let round = dice(3); round > 0; round--) {
    const from = dice(50);
    const repairs = windowsOver(from, from + 8, { perPage: 10, seam: 2 }).map(({ page, perPage }) =>
      read(page, perPage),
    );
    passes.push({ kind: 'repair', root: 0, windows: repairs, ...LIST }, delta());
  }
  return passes;
}

describe('the preview of seams', () => {
  it('closes none that the proof leaves open, and nearly all that it closes', () => {
    const tally = { same: 0, others: 0, repaired: 0, open: 0 };
    for (let seed = 1; seed <= 80; seed++) {
      const { store, run } = sketchRun({ products: 60, passes: randomPasses(seed) });
      const proof = assessRun(store, run.id).lists[0]?.seams?.states ?? [];
      const preview = previewOf(store, run.id).get(0) ?? '';
      expect(preview).toHaveLength(proof.length);
      for (const [at, letter] of proof.entries()) {
        if (preview[at] === 'j') expect(letter, `seed ${seed}, seam ${at}`).toBe('j');
        if (preview[at] === 'r') expect(letter, `seed ${seed}, seam ${at}`).not.toBe('o');
        tally[preview[at] === letter ? 'same' : 'others']++;
        if (letter === 'r') tally.repaired++;
        if (letter === 'o') tally.open++;
      }
    }
    expect(tally.repaired).toBeGreaterThan(3);
    expect(tally.open).toBeGreaterThan(10);
    // The proof also joins windows that are not neighbours.
    expect(tally.others).toBeLessThan(0.1 * tally.same);
  });

  it.each([
    ['a quiet list', { churnPerSecond: 0 }],
    ['a list by key, while it moves', { churnPerSecond: 300 }],
    ['a list by time of change, newest first', { churnPerSecond: 200, order: 'updated-desc' as const }],
    ['a list by time of change, oldest first', { churnPerSecond: 200, order: 'updated-asc' as const }],
  ])('agrees with the proof of a real load: %s', async (_name, options) => {
    const here = await place({ items: 10_000, latencyMs: 20, details: false, ...options });
    const run = await load({ ...here.settings, CATCHWORD_CONCURRENCY: '2' }, 'full');
    await here.sandbox.stop();
    const store = openStore(here.db);
    onTestFinished(() => store.close());
    const preview = previewOf(store, run.id);
    const [list] = run.evidence?.lists ?? [];
    expect(list?.seams).toHaveLength(10);
    for (const [at, letter] of (list?.seams ?? '').split('').entries()) {
      if (letter === 'o') expect(preview.get(0)?.[at]).toBe('o');
      if (preview.get(0)?.[at] === 'j') expect(letter).toBe('j');
    }
  });

  it('is the same whether checkpoints are read one by one or all at once', async () => {
    const here = await filled({ items: 6_000, details: false });
    const store = openStore(here.db);
    onTestFinished(() => store.close());
    const after: typeof store.runs.after = (run, rowid) => store.runs.after(run, rowid, 1);
    const watch = createRunWatch({ ...store, runs: { ...store.runs, after } }, 1, true);
    const closed: number[] = [];
    for (const _row of store.runs.after(1, 0, 100)) {
      watch.update();
      closed.push(picturesOf(watch, UNFINISHED)[0]?.joints.j ?? 0);
    }
    expect(closed).toEqual(closed.toSorted((a, b) => a - b));
    expect(picturesOf(watch, UNFINISHED)[0]?.seams.trimEnd()).toBe(previewOf(store, 1).get(0));
    expect(closed.at(-1)).toBeGreaterThan(4);
  });
});

describe('the picture of a run that was followed only in part', () => {
  it('is drawn from its record when a later run has completed', async () => {
    const here = await filled({ items: 6_000, details: false, churnPerSecond: 0 });
    const store = openStore(here.db);
    onTestFinished(() => store.close());
    const after: typeof store.runs.after = (run, rowid) => store.runs.after(run, rowid, 1);
    const watch = createRunWatch({ ...store, runs: { ...store.runs, after } }, 1, true);
    watch.update();
    expect(picturesOf(watch, UNFINISHED)[0]).toMatchObject({ read: 1, preview: true });
    const run = store.runs.get(1) ?? expect.fail();
    await load(here.settings, 'full');
    expect(watch.update()).toBe(true);
    const seams = run.evidence?.lists[0]?.seams ?? '';
    expect(seams).toMatch(/^j{5,}$/);
    const expected = { read: seams.length + 1, planned: seams.length + 1, seams: `${seams} `, preview: false };
    expect(picturesOf(watch, run)).toMatchObject([expected]);
  });
});

describe('the picture of a long list', () => {
  it('shows the worst of the windows that share a cell', () => {
    const windows = Array.from({ length: 4_000 }, (_, at) => ({
      page: at + 1,
      perPage: 1,
      ids: at === 2_001 ? [] : [1],
      total: 6_500,
      rejected: at === 2_001 ? 1 : 0,
    }));
    const { store, run } = sketchRun({ products: 1, passes: [{ windows, perPage: 1, seam: 0 }] });
    const watch = watchRun(store, run);
    while (!watch.update());
    const [picture] = picturesOf(watch, UNFINISHED);
    expect(picture).toMatchObject({ perCell: 3, planned: 6_501, read: 4_000, places: '' });
    expect(picture?.cells).toBe(`${'w'.repeat(667)}x${'w'.repeat(665)}${'.'.repeat(834)}`);
    expect(picture?.windows).toMatchObject({ w: 3_999, x: 1, '.': 2_501 });
  });
});
