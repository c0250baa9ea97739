import { createIdSet } from '@catchword/catalog/id-set';
import { expect, it } from 'vitest';
import { examineSeams, type SeamWindow } from '../../src/proof/seams.ts';

interface Given extends SeamWindow {
  readonly ids: readonly number[];
}

const SIZE = 10;

/** A window of size 10 with these ids. */
function window(page: number, ids: readonly number[], pass = 0): Given {
  return { page, perPage: SIZE, pass, items: ids.length, numItems: 0, doubt: null, ids };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}

/** Examines windows of ten that overlap by two. Their offsets do not affect the proof. */
function examine(
  windows: readonly Given[],
  modified: ReadonlyMap<number, number> = new Map(),
  isAlike: (id: number, a: Given, b: Given) => boolean = () => true,
) {
  return examineSeams({
    windows,
    root: 0,
    idsOf: ({ ids }) => ids,
    modifiedIn: (id) => modified.get(id) ?? -1,
    isAlike,
    highest: 100,
  });
}

const quiet = [window(1, range(1, 11)), window(2, range(9, 19)), window(3, range(17, 22))];

it('seams are joined if the list does not change, and the run is sealed', () => {
  const report = examine(quiet);
  expect(report).toMatchObject({ sealed: true, states: ['j', 'j'], gaps: [], disorder: 0, repeated: 0 });
  expect(report).toMatchObject({ sharedLeast: 2, sharedSum: 4 });
});

it('seams are open if neighbours share no product', () => {
  const report = examine([window(1, range(1, 11)), window(2, range(12, 22)), window(3, range(20, 22))]);
  expect(report).toMatchObject({ sealed: false, states: ['o', 'j'], gaps: [{ offset: 10, shift: 0 }] });
});

it('seams are not joined by a product that was modified between the reads', () => {
  const modified = new Map([
    [9, 1],
    [10, 1],
  ]);
  expect(examine(quiet, modified)).toMatchObject({ sealed: false, states: ['o', 'j'] });
  expect(examine(quiet, new Map([[9, 1]]))).toMatchObject({ sealed: true, states: ['j', 'j'], sharedLeast: 1 });
});

it('seams of a delta may be joined by products that this delta lists, but not by products of a later delta', () => {
  const told = new Map(range(1, 22).map((id) => [id, 0]));
  expect(examine(quiet, told).sealed).toBe(true);
  for (const id of [9, 10]) told.set(id, 1);
  expect(examine(quiet, told).sealed).toBe(false);
});

it('seams are closed by a repair that reaches both sides', () => {
  const gap = [window(1, range(1, 11)), window(2, range(12, 22)), window(3, range(20, 25))];
  expect(examine([...gap, window(2, range(5, 15), 2)])).toMatchObject({ sealed: true, states: ['r', 'j'] });
  // It reaches only one side; the shift says where to read next.
  const oneSide = examine([...gap, window(1, range(2, 12), 2)]);
  expect(oneSide).toMatchObject({ sealed: false, states: ['o', 'j'], gaps: [{ offset: 10, shift: 1 }] });
  // A product that was modified moved to the head: where it is now says nothing about the place.
  const moved = examine([...gap, window(1, [21, ...range(3, 12)], 2)], new Map([[21, 1]]));
  expect(moved).toMatchObject({ states: ['o', 'j'], gaps: [{ offset: 10, shift: 1 }] });
});

it('seams are open where neighbours share nothing, although a chain of other windows leads around', () => {
  const skipped = [window(1, range(1, 11)), window(2, range(40, 50)), window(3, range(9, 15))];
  expect(examine(skipped)).toMatchObject({ sealed: false, states: ['o', 'o'] });
  // A repair elsewhere leads around nothing either.
  const torn = [window(1, range(1, 11)), window(2, range(12, 22)), window(3, [...range(20, 22), ...range(30, 33)])];
  const around = window(4, [...range(30, 33), 8, 9, 10], 2);
  expect(examine([...torn, around])).toMatchObject({ sealed: false, states: ['o', 'j'] });
});

it('seams are closed by several repairs that join each other', () => {
  const torn = [window(1, range(1, 11)), window(2, range(30, 35))];
  const repairs = [window(2, range(9, 19), 2), window(3, range(17, 27), 2), window(4, range(25, 32), 2)];
  expect(examine([...torn, ...repairs])).toMatchObject({ sealed: true, states: ['r'] });
  expect(examine([...torn, ...repairs.slice(0, 2)])).toMatchObject({ sealed: false, states: ['o'] });
});

it('seams are closed by repairs over the place that lead to another end of the list, or to another head', () => {
  // What was modified stands at the end now, far from where the first pass has read it.
  const end = [window(1, range(1, 11)), window(2, range(9, 19)), window(3, range(60, 65))];
  const repairs = [window(3, range(17, 27), 2), window(4, range(25, 30), 2)];
  expect(examine([...end, ...repairs])).toMatchObject({ sealed: true, states: ['j', 'r'], gaps: [] });
  expect(examine([...end, window(3, range(17, 27), 2)])).toMatchObject({ sealed: false, states: ['j', 'o'] });
  const elsewhere = [window(3, range(17, 27), 2), window(9, range(25, 30), 2)];
  expect(examine([...end, ...elsewhere])).toMatchObject({ sealed: false, states: ['j', 'o'] });
  const head = [window(1, range(60, 70)), window(2, range(9, 19)), window(3, range(17, 22))];
  expect(examine([...head, window(1, range(1, 11), 2)])).toMatchObject({ sealed: true, states: ['r', 'j'], gaps: [] });
  // What is before the place is as open as it was.
  const torn = [window(1, range(1, 11)), window(2, range(21, 31)), window(3, range(29, 39)), window(4, range(60, 65))];
  const closed = examine([...torn, window(4, range(37, 42), 2)]);
  expect(closed).toMatchObject({ sealed: false, states: ['o', 'j', 'r'], gaps: [{ offset: 10 }] });
});

it('seams are not closed by a repair without items: it shows neither the head nor the end', () => {
  const torn = [window(1, range(1, 11)), window(2, range(12, 15))];
  expect(examine([...torn, window(1, [], 2)])).toMatchObject({ sealed: false, states: ['o'] });
  const endless = [window(1, range(1, 11)), window(2, range(9, 19))];
  expect(examine([...endless, window(1, [], 2)])).toMatchObject({ sealed: false, gaps: [{ offset: null }] });
  const hollow = [window(1, range(1, 11)), window(2, []), window(3, range(17, 22))];
  expect(examine(hollow)).toMatchObject({ sealed: false, states: ['o', 'o'] });
});

it('seams are not joined by a product that the list has at two distant places', () => {
  // 99 is the sixth product, and one in the last window; 10 to 13 are in no window.
  const first = window(1, [...range(1, 6), 99, ...range(6, 10)]);
  const twice = [first, window(2, range(14, 24)), window(3, [...range(22, 27), 99, ...range(27, 30)])];
  expect(examine(twice)).toMatchObject({ sealed: false, states: ['o', 'j'] });
  // A neighbour, too, although both hold it.
  const next = [first, window(2, [...range(14, 19), 99, ...range(19, 23)]), window(3, range(21, 25))];
  expect(examine(next)).toMatchObject({ sealed: false, states: ['o', 'j'] });
});

it('seams are joined although products vanished from the end of a window before the next one was read', () => {
  // 8, 9 and 10 are gone when the second window is read.
  expect(
    examine([
      window(1, range(1, 11)),
      window(
        2,
        range(6, 16).filter((id) => id < 8 || id > 10),
      ),
    ]),
  ).toMatchObject({
    sealed: true,
  });
});

it('seams prove nothing without the end of the list', () => {
  const full = [window(1, range(1, 11)), window(2, range(9, 19))];
  expect(examine(full)).toMatchObject({ sealed: false, states: ['j'], gaps: [{ offset: null }] });
  const doubted: Given = { ...window(3, range(17, 22)), doubt: { code: 'contradiction', said: 'it is short' } };
  expect(examine([...full, doubted]).sealed).toBe(false);
  expect(examine([...full, window(3, [])]).sealed).toBe(false);
  expect(examine([...full, window(3, []), window(4, range(17, 20), 2)]).sealed).toBe(true);
});

it('seams prove nothing without the start of the list', () => {
  expect(examine([window(2, range(9, 19)), window(3, range(17, 22))]).sealed).toBe(false);
});

it('seams are not joined by a product that the two windows show differently, although no delta tells of it', () => {
  const differently = (id: number) => id !== 9;
  expect(examine(quiet, undefined, differently)).toMatchObject({ sealed: true, sharedLeast: 1, unlike: 1 });
  const both = (id: number) => id !== 9 && id !== 10;
  expect(examine(quiet, undefined, both)).toMatchObject({ sealed: false, states: ['o', 'j'], unlike: 2 });
});

it('seams are not joined because neighbours hold the same products at the same places, if these were modified', () => {
  // Read before product 3 was withdrawn, and 16 to 20 were edited in turn: 21 is in neither window.
  const first = { ...window(1, range(1, 21)), perPage: 20 };
  const second = { ...window(2, [...range(16, 21), ...range(22, 27)]), perPage: 15 };
  const edited = new Map(range(16, 21).map((id) => [id, 1]));
  expect(examine([first, second], edited)).toMatchObject({ sealed: false, states: ['o'] });
  expect(examine([first, second])).toMatchObject({ sealed: true, states: ['j'] });
});

it('seams stood still if neighbours hold the same five products at all common offsets, and none has changed since', () => {
  const all = new Map(range(1, 40).map((id) => [id, 1]));
  // Page 1 of 12 and page 2 of 7 share the offsets 7 to 11.
  const first = { ...window(1, range(1, 13)), perPage: 12 };
  const second = (ids: readonly number[]) => ({ ...window(2, ids), perPage: 7 });
  const same = [first, second(range(8, 14))];
  expect(examine(same, all)).toMatchObject({ sealed: false, states: ['o'], stoodStill: true });
  expect(examine(same, undefined, (id) => id !== 9)).toMatchObject({ sealed: true, stoodStill: false });
  expect(examine([first, second(range(8, 14))])).toMatchObject({ sealed: true, stoodStill: true });
  // Products that are joined after a move do not show that the list stood still, nor does a repair.
  expect(examine([first, second(range(9, 15))])).toMatchObject({ sealed: true, states: ['j'], stoodStill: false });
  const repair = { ...first, ids: range(2, 14), pass: 1 };
  expect(examine([first, second(range(9, 15)), repair])).toMatchObject({ sealed: true, stoodStill: false });
  // Not if a product moved, and four products are too few.
  expect(examine([first, second([8, 9, 11, 10, 12, 13])]).stoodStill).toBe(false);
  expect(examine([first, second([0, 9, 10, 11, 12, 13])]).stoodStill).toBe(false);
  expect(examine([first, second(range(8, 12))]).stoodStill).toBe(false);
});

it('seams did not stand still if fewer products were read than one of the windows says that there are', () => {
  // 14 moved from the unread part into the first window, from which another one vanished.
  const windows = (numItems: number) => [
    { ...window(1, range(1, 13)), perPage: 12, numItems },
    { ...window(2, range(8, 14)), perPage: 7, numItems: 13 },
  ];
  expect(examine(windows(13))).toMatchObject({ sealed: true, stoodStill: true });
  expect(examine(windows(14))).toMatchObject({ sealed: true, stoodStill: false });
});

it('seams of a list without a stable order do not seal the run', () => {
  const swapped = [window(1, range(1, 11)), window(2, [10, 9, ...range(11, 15)])];
  expect(examine(swapped)).toMatchObject({ sealed: false, states: ['j'], disorder: 1 });
  // A modified product may change its place.
  expect(examine(swapped, new Map([[9, 1]]))).toMatchObject({ sealed: true, disorder: 0 });
});

it('seams ignore rejected items and count repeated products', () => {
  const rejected = [window(1, [...range(1, 10), 0]), window(2, [0, ...range(11, 15)])];
  expect(examine(rejected)).toMatchObject({ sealed: false, states: ['o'] });
  expect(examine([window(1, [1, 2, 2, 3])])).toMatchObject({ sealed: true, repeated: 1, states: [] });
  // Once, even if both neighbours show it.
  const both = [window(1, [...range(1, 9), 9, 9]), window(2, [9, 9, ...range(10, 15)])];
  expect(examine(both)).toMatchObject({ sealed: true, repeated: 1 });
});

it('seams of an empty list are sealed', () => {
  expect(examine([window(1, [])])).toMatchObject({ sealed: true, states: [], gaps: [] });
});

it('IdSet contains each added id once', () => {
  const set = createIdSet(100);
  set.addAll([1, 8, 0, 9]);
  set.addAll([100, 9]);
  expect(range(0, 101).filter((id) => set.has(id))).toEqual([1, 8, 9, 100]);
  expect(set.size).toBe(4);
});
