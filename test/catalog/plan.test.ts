import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type WindowRead, windowsOfPass } from '../../src/catalog/plan.ts';

function readOf(page: number, size: number, perPage: number, at: number): WindowRead {
  const items = Math.max(0, Math.min(perPage, size - (page - 1) * perPage));
  return { page, perPage, items, numItems: size, totalPages: Math.ceil(size / perPage), requestedAt: at };
}

/** Reads whatever the plan asks for, until it asks for nothing. */
function readAll(sizeAt: (read: number) => number, perPage: number): WindowRead[] {
  const read: WindowRead[] = [];
  for (;;) {
    const next = windowsOfPass(read, perPage).find(({ page }) => !read.some((window) => window.page === page));
    if (next === undefined) return read;
    read.push(readOf(next.page, sizeAt(read.length), perPage, read.length));
  }
}

describe('plain pages', () => {
  it('asks for page 1 when nothing is known', () => {
    expect(windowsOfPass([], 1000)).toEqual([{ page: 1, perPage: 1000 }]);
  });

  it('covers a list of any size with as few pages as there are', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 1, max: 1000 }), (size, perPage) => {
        fc.pre(size / perPage < 200);
        const read = readAll(() => size, perPage);
        expect(read.reduce((sum, window) => sum + window.items, 0)).toBe(size);
        expect(read.length).toBe(Math.max(1, Math.ceil(size / perPage)));
      }),
    );
  });

  it('goes on while the list grows', () => {
    const read = readAll((reads) => 25 + reads * 7, 10);
    const last = read.at(-1);
    expect(read.length).toBeGreaterThan(3);
    expect(last?.numItems).toBeLessThanOrEqual(read.length * 10);
    expect(read.map((window) => window.page)).toEqual(read.map((_, index) => index + 1));
  });

  it('reads on behind a full last page whose totals do not say that it is the end', () => {
    const full = { ...readOf(1, 10, 10, 0), numItems: 9 };
    expect(windowsOfPass([full], 10)).toHaveLength(2);
  });
});
