import { type Window, windowKey } from '@catchword/catalog/page-types';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  createListPlan,
  endOf,
  type Layout,
  nextWindow,
  startOf,
  type WindowRead,
  windowsFrom,
  windowsOver,
} from '../../src/proof/plan.ts';

function readOf({ page, perPage }: Window, size: number, at: number): WindowRead {
  const items = Math.max(0, Math.min(perPage, size - (page - 1) * perPage));
  return { page, perPage, items, numItems: size, requestedAt: at, doubt: null };
}

/** Reads every window that the plan asks for. */
function readAll(sizeAt: (read: number) => number, layout: Layout, reversed = false, numItems: number | null = null) {
  const plan = createListPlan({ ...layout, reversed, numItems });
  const read: WindowRead[] = [];
  for (;;) {
    const [next] = plan.missing(1, () => false);
    if (next === undefined) return read;
    const window = readOf(next, sizeAt(read.length), read.length);
    read.push(window);
    plan.note(window);
  }
}

/** The windows that cover a list whose size does not change. */
function windowsOf(size: number, layout: Layout): Window[] {
  const windows: Window[] = [];
  for (const window of windowsFrom(layout)) {
    windows.push(window);
    if (endOf(window) > size) break;
  }
  return windows;
}

function expectCover(windows: readonly Window[], size: number, { perPage, seam }: Layout): void {
  expect(windows[0]?.page).toBe(1);
  windows.forEach((window, index) => {
    expect(window.perPage).toBeLessThanOrEqual(perPage);
    const before = windows[index - 1];
    if (before === undefined) return;
    expect(startOf(window)).toBeLessThanOrEqual(endOf(before) - seam);
    expect(endOf(window)).toBeGreaterThan(endOf(before));
  });
  expect(endOf(windows.at(-1) as Window)).toBeGreaterThan(size);
}

const layout = { perPage: 1000, seam: 10 };

it('joined windows cover a list of every size up to 5,000, each sharing 10 with its neighbour', () => {
  for (let size = 0; size <= 5_000; size++) {
    const windows = readAll(() => size, layout);
    expectCover(windows, size, layout);
    expect(windows.at(-1)?.items).toBeLessThan(windows.at(-1)?.perPage ?? 0);
  }
});

it('joined windows cover lists of up to 12 million', () => {
  for (const size of [99_999, 203_975, 1_000_000, 12_345_678]) {
    const windows = windowsOf(size, layout);
    expectCover(windows, size, layout);
  }
}, 30_000);

it('joined windows are at most 5.4% more than plain pages', () => {
  expect(windowsOf(1_000_000, layout)).toHaveLength(1050);
  expect(windowsOf(200_000, layout)).toHaveLength(210);
  fc.assert(
    fc.property(fc.integer({ min: 200_000, max: 3_000_000 }), (size) => {
      expect(windowsOf(size, layout).length).toBeLessThan(1.055 * Math.ceil(size / 1000));
    }),
    { numRuns: 50 },
  );
});

it('joined windows reach as far as any window with the same overlap', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 60, max: 400 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 500, max: 20_000 }),
      (perPage, seam, reach) => {
        const chosen = nextWindow(reach, { perPage, seam });
        let best = 0;
        for (let size = 1; size <= perPage; size++) {
          for (let page = 1; (page - 1) * size <= reach - seam; page++) best = Math.max(best, page * size);
        }
        expect(startOf(chosen)).toBeLessThanOrEqual(reach - seam);
        expect(endOf(chosen)).toBe(best);
      },
    ),
    { numRuns: 40 },
  );
});

it('joined windows overlap less if no window size allows the full overlap', () => {
  for (const perPage of [1, 2, 3, 7, 10]) {
    let reach = 0;
    for (const window of windowsFrom({ perPage, seam: 10 })) {
      expect(startOf(window)).toBeLessThanOrEqual(reach);
      expect(endOf(window)).toBeGreaterThan(reach);
      reach = endOf(window);
      if (reach > 6_000) break;
    }
  }
});

it('joined windows cover a range in the middle of the list', () => {
  const windows = windowsOver(123_456, 126_000, { perPage: 1000, seam: 40 });
  expect(startOf(windows[0] as Window)).toBeLessThanOrEqual(123_456);
  expect(endOf(windows.at(-1) as Window)).toBeGreaterThanOrEqual(126_000);
  expect(windows).toHaveLength(3);
});

it('joined windows continue while the list grows, and stop early if it shrinks', () => {
  const growing = readAll((reads) => 9_000 + 300 * reads, layout);
  expect(growing.at(-1)?.items).toBeLessThan(growing.at(-1)?.perPage ?? 0);
  expect(endOf(growing.at(-1) as Window)).toBeGreaterThan(9_000 + 300 * 9);
  const shrinking = readAll((reads) => Math.max(500, 9_000 - 1_000 * reads), layout);
  expect(shrinking.length).toBeLessThan(8);
});

it('joined windows are the same when read from the end to the start', () => {
  const forward = readAll(() => 20_000, layout).map(windowKey);
  const backward = readAll(() => 20_000, layout, true, 20_000).map(windowKey);
  expect(backward).toEqual(forward.reverse());
});

it('joined windows resume from the windows that an earlier process read', () => {
  const all = readAll(() => 20_000, layout);
  const plan = createListPlan({ ...layout, reversed: false, numItems: null });
  for (const window of [...all].reverse().slice(0, 15)) plan.note(window);
  expect(plan.size).toBe(all.length);
  const left = plan.missing(100, () => false);
  expect(left.map(windowKey)).toEqual(all.slice(0, all.length - 15).map(windowKey));
  expect(plan.missing(100, () => true)).toEqual([]);
  expect(plan.has({ page: 2, perPage: 990 })).toBe(true);
  expect(plan.has({ page: 2, perPage: 991 })).toBe(false);
});

it('joined windows do not end with a page that contradicts its totals', () => {
  const plan = createListPlan({ ...layout, reversed: false, numItems: null });
  plan.note({
    ...readOf({ page: 1, perPage: 1000 }, 900, 0),
    doubt: { code: 'contradiction', said: 'it has 900 items' },
  });
  expect(plan.missing(9, () => false)).toEqual([{ page: 2, perPage: 990 }]);
});

const pages = (size: (reads: number) => number, perPage: number) => readAll(size, { perPage, seam: 0 });

it('plain pages cover a list of any size, up to a page that is not full: its total may be too low', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 1, max: 1000 }), (size, perPage) => {
      fc.pre(size / perPage < 200);
      const read = pages(() => size, perPage);
      expect(read.reduce((sum, window) => sum + window.items, 0)).toBe(size);
      expect(read.length).toBe(Math.floor(size / perPage) + 1);
    }),
  );
});

it('plain pages continue while the list grows', () => {
  const read = pages((reads) => 25 + reads * 7, 10);
  const last = read.at(-1);
  expect(read.length).toBeGreaterThan(3);
  expect(last?.numItems).toBeLessThanOrEqual(read.length * 10);
  expect(read.map((window) => window.page)).toEqual(read.map((_, index) => index + 1));
});

it('plain pages continue after a full last page whose totals do not mark the end', () => {
  const plan = createListPlan({ perPage: 10, seam: 0, reversed: false, numItems: null });
  plan.note({ ...readOf({ page: 1, perPage: 10 }, 10, 0), numItems: 9 });
  expect(plan.missing(9, () => false)).toEqual([{ page: 2, perPage: 10 }]);
});
