import { endOf, holdsEnd, startOf, type WindowRead } from './plan.ts';

/*
 * Decides whether windows that were read one after another, while the list changed, hold the whole list.
 *
 * Two windows are *joined* by a product that is in both and was not modified since the first of the two reads. If a
 * chain of joined windows leads from a window at offset 0 to one that holds the end of the list, then every product
 * that existed, unmodified, during all reads is in one of the windows: docs/page-drift.md has the proof. Products that
 * were modified join nothing, even where two windows hold the same ones at the same places: a job that edits them in
 * turn moves all of them past a product that nothing touched.
 *
 * A source may list a product twice, at two distant places, and windows of both places hold it. But two pieces of one
 * list overlap where one of them ends: before what they share, and after it, one of them holds nothing. A few products
 * that vanished from there between the reads are allowed, as many as the two share and a few more.
 */

/** A window that was read in `pass`. */
export type SeamWindow = Pick<WindowRead, 'page' | 'perPage' | 'items' | 'doubt'> & { readonly pass: number };

/** Two neighbouring windows, or a window and the list's end, that are not joined. */
export interface Gap {
  /** In the first pass; null for the end of the list. */
  readonly offset: number | null;
  /** By how much the newest repair near it found that place at a lower offset. */
  readonly shift: number;
}

interface SeamInput<W extends SeamWindow> {
  /** All windows of the list, including repairs. */
  readonly windows: readonly W[];
  /** The first pass; windows of later passes are repairs. */
  readonly root: number;
  /** Returns a window's product ids in the order of the response; 0 for a rejected item. */
  readonly idsOf: (window: W) => readonly number[];
  /** Returns the last pass whose delta listed the product; -1 if none did. A delta's own products may join its windows. */
  readonly modifiedIn: (id: number) => number;
  /** Returns whether the product is still as it was in this window. A change may be in no delta: it is late, or erased. */
  readonly steady: (id: number, window: W) => boolean;
  readonly highest: number;
}

/** Minimum number of equal products at equal offsets that shows that nothing moved. */
const STILL = 5;

/**
 * Whether neighbours hold the same products at all offsets that both cover, so nothing seems to have moved. Joins none.
 * @param shift by how many products the second one starts later
 */
function standStill(shift: number, beforeIds: readonly number[], afterIds: readonly number[]): boolean {
  const both = Math.min(beforeIds.length - shift, afterIds.length);
  if (both < STILL) return false;
  for (let at = 0; at < both; at++) if (afterIds[at] === 0 || beforeIds[shift + at] !== afterIds[at]) return false;
  return true;
}

/**
 * Compares two neighbours while their list is read for the first time: nothing moved, both hold a product, or they hold
 * none in common. For display only: no delta has told yet which of these products were modified.
 */
export function previewSeam(
  shift: number,
  beforeIds: readonly number[],
  afterIds: readonly number[],
): 'still' | 'shared' | 'open' {
  if (standStill(shift, beforeIds, afterIds)) return 'still';
  const known = new Set(beforeIds);
  return afterIds.some((id) => id !== 0 && known.has(id)) ? 'shared' : 'open';
}

/** How many more products than they share two joined windows may both hold before it, or after it. */
const VANISHED = 3;

/** What a window shares with another one: positions among the unmodified products of each, `first` and `last` in both. */
interface Shared {
  count: number;
  readonly first: readonly [there: number, here: number];
  last: readonly [there: number, here: number];
}

/** Whether two windows may be pieces of one list. @param most the positions of their last unmodified products */
function canOverlap({ count, first, last }: Shared, most: readonly [there: number, here: number]): boolean {
  const before = Math.min(...first);
  const after = Math.min(most[0] - last[0], most[1] - last[1]);
  return Math.max(before, after) <= count + VANISHED;
}

/** Union-find over the indexes 0 to `size` - 1. */
function createSets(size: number) {
  const parent = Int32Array.from({ length: size }, (_, index) => index);
  function find(index: number): number {
    let root = index;
    while (parent[root] !== root) root = parent[root] as number;
    for (let at = index; at !== root; ) {
      const next = parent[at] as number;
      parent[at] = root;
      at = next;
    }
    return root;
  }
  return {
    find,
    join: (a: number, b: number): void => {
      parent[find(a)] = find(b);
    },
  };
}

/** Joins windows, given in the order of `all`, by the unmodified products that they share. */
function createJoiner<W extends SeamWindow>(all: readonly W[], input: SeamInput<W>) {
  const { root, modifiedIn, steady, highest } = input;
  const sets = createSets(all.length);
  /** For each product, one plus the index of the window that it was last found in, and its position there. */
  const owner = new (all.length < 65_535 ? Uint16Array : Uint32Array)(highest + 1);
  /** The position among the unmodified products of that window. */
  const place = new Uint16Array(highest + 1);
  /** For each window, how many unmodified products it holds. */
  const unmodified = new Uint16Array(all.length);
  /** For each product that a window repeats, how often at most. */
  const repeats = new Map<number, number>();
  /** Unmodified products of the first pass that are in two windows which are not neighbours. */
  const doubled = new Set<number>();
  let disorder = 0;

  function productsOf(ids: readonly number[]): readonly number[] {
    // Most windows list products in the order of their ids.
    if (ids.every((id, at) => id > (ids[at - 1] ?? 0))) return ids;
    const visited = new Set<number>();
    const again = new Map<number, number>();
    for (const id of ids) {
      if (id === 0) continue;
      if (visited.has(id)) again.set(id, (again.get(id) ?? 0) + 1);
      visited.add(id);
    }
    for (const [id, times] of again) repeats.set(id, Math.max(times, repeats.get(id) ?? 0));
    return [...visited];
  }

  /**
   * Joins the window with those that its unmodified products were found in before.
   * @param isFirst whether the window is of the first pass. Later ones do not move products that it has, because further
   *   repairs are compared with their places
   * @returns how many products it shares with its neighbour
   */
  function joinAll(window: W, at: number, ids: readonly number[], isFirst: boolean): number {
    const overlaps = new Map<number, Shared>();
    let previous = -1;

    function share(id: number, otherAt: number, position: number): void {
      if (!steady(id, all[otherAt] as W) || !steady(id, window)) return;
      const there = place[id] ?? 0;
      const shared = overlaps.get(otherAt);
      if (shared === undefined) {
        overlaps.set(otherAt, { count: 1, first: [there, position], last: [there, position] });
      } else {
        shared.count++;
        shared.last = [there, position];
      }
      if (otherAt !== at - 1 || window.pass !== root) return;
      if (there < previous) disorder++;
      previous = there;
    }

    const products = productsOf(ids);
    let position = 0;
    // Calls no function for most products: this runs for each product of the catalog before V8 has optimized it.
    for (let index = 0; index < products.length; index++) {
      const id = products[index] ?? 0;
      if (modifiedIn(id) > window.pass) continue;
      const otherAt = (owner[id] ?? 0) - 1;
      if (otherAt >= 0) share(id, otherAt, position);
      if (isFirst && otherAt >= 0 && otherAt < at - 1) doubled.add(id);
      if (isFirst || otherAt < 0) {
        owner[id] = at + 1;
        place[id] = position;
      }
      position++;
    }
    unmodified[at] = position;
    for (const [otherAt, shared] of overlaps) {
      const most = [(unmodified[otherAt] ?? 0) - 1, (unmodified[at] ?? 0) - 1] as const;
      if (canOverlap(shared, most)) sets.join(otherAt, at);
    }
    return overlaps.get(at - 1)?.count ?? 0;
  }

  return {
    sets,
    owner,
    joinAll,
    doubled,
    disorder: () => disorder,
    repeated: () => [...repeats.values()].reduce((sum, times) => sum + times, 0),
  };
}

type Sets = ReturnType<typeof createSets>;

/** The sets of the windows that hold the end of the list. */
function endsOf(windows: readonly SeamWindow[], sets: Sets): ReadonlySet<number> {
  return new Set(windows.flatMap((window, at) => (holdsEnd(window) ? [sets.find(at)] : [])));
}

/** Whether a chain of joined windows leads from the head of the list to its end. */
function reachesEnd(windows: readonly SeamWindow[], sets: Sets): boolean {
  const ends = endsOf(windows, sets);
  return windows.some(({ page }, at) => page === 1 && ends.has(sets.find(at)));
}

/**
 * Examines the seams of a list: joins the windows of the first pass with each other, in list order, then each repair with
 * the windows before it. Visits every id once and keeps 4 bytes for each product, 6 with more than 65,534 windows.
 */
export function examineSeams<W extends SeamWindow>(input: SeamInput<W>) {
  const { windows, root, idsOf, steady } = input;
  const byOffset = (a: W, b: W) => startOf(a) - startOf(b) || a.pass - b.pass;
  const base = windows.filter(({ pass }) => pass === root).sort(byOffset);
  const repairs = windows.filter(({ pass }) => pass !== root).sort((a, b) => a.pass - b.pass || byOffset(a, b));
  const all = [...base, ...repairs];
  const { sets, owner, joinAll, doubled, ...counts } = createJoiner(all, input);
  const still = createSets(base.length);
  const sharedCounts: number[] = [];

  let idsBefore: readonly number[] = [];
  base.forEach((window, at) => {
    const ids = idsOf(window);
    const before = base[at - 1];
    if (before !== undefined) {
      const shift = startOf(window) - startOf(before);
      const isStill =
        standStill(shift, idsBefore, ids) &&
        idsBefore.slice(shift, shift + ids.length).every((id) => steady(id, before) && steady(id, window));
      if (isStill) still.join(at - 1, at);
    }
    idsBefore = ids;
    const common = joinAll(window, at, ids, true);
    if (at > 0) sharedCounts.push(common);
  });

  /** The last window with items: empty windows after the end have no seam. */
  const last = base.findLastIndex(({ items }) => items > 0);

  /** Whether each pair of neighbours is joined, directly or through other windows. */
  function joinedPairs(): boolean[] {
    return base.slice(1, last + 1).map((_, at) => sets.find(at) === sets.find(at + 1));
  }

  const joinedAtFirst = joinedPairs();
  /** Where repairs found products of the first pass: the offset there, and how much lower the repair's is. */
  const found: { readonly pass: number; readonly offset: number; readonly shift: number }[] = [];
  repairs.forEach((window, index) => {
    const at = base.length + index;
    const ids = idsOf(window);
    const known = ids.findIndex((id) => id > 0 && (owner[id] ?? 0) > 0 && (owner[id] ?? 0) <= base.length);
    const holder = base[(owner[ids[known] ?? 0] ?? 0) - 1];
    if (holder !== undefined) {
      const offset = startOf(holder) + idsOf(holder).indexOf(ids[known] ?? 0);
      found.push({ pass: window.pass, offset, shift: offset - startOf(window) - known });
    }
    joinAll(window, at, ids, false);
  });

  const states = joinedPairs().map((joined, at) => (joined ? (joinedAtFirst[at] ? 'j' : 'r') : 'o'));
  const ends = endsOf(all, sets);
  const joined = reachesEnd(all, sets);

  function shiftAt(offset: number): number {
    const newest = found.filter(({ pass }) => pass === found.at(-1)?.pass);
    const [near] = newest.sort((a, b) => Math.abs(a.offset - offset) - Math.abs(b.offset - offset));
    return near?.shift ?? 0;
  }

  const gaps: Gap[] = [];
  base.slice(1).forEach((window, at) => {
    const offset = startOf(window);
    if (states[at] === 'o') gaps.push({ offset, shift: shiftAt(offset) });
  });
  const end = base[last];
  if (end !== undefined && !ends.has(sets.find(last))) gaps.push({ offset: null, shift: shiftAt(endOf(end)) });

  return {
    /** A chain of joined windows leads from the head of the list to its end, in a stable order. */
    sealed: joined && counts.disorder() === 0,
    /**
     * The windows of the first pass form a chain of neighbours that hold the same products at the same places, none of
     * which has changed since. A source can deceive this: it shows that a run need not wait, and proves nothing.
     */
    stoodStill: reachesEnd(base, still),
    /** One for each pair of neighbours of the first pass, in list order: `j` joined, `r` joined by a repair, `o` open. */
    states,
    /** None if a chain of other windows leads around them: the proof needs no more than one. */
    gaps: joined ? [] : gaps,
    /** Products whose order differs between a window and its neighbour: the list has no stable order. */
    disorder: counts.disorder(),
    /** Items that repeat a product within one window; each once, even if neighbours share them. */
    repeated: counts.repeated(),
    /** Products at two distant places: the list holds them twice, or they moved although they were not modified. */
    doubled: [...doubled],
    /** Products shared by neighbours: the minimum and the sum over all seams. */
    sharedLeast: sharedCounts.reduce((least, common) => Math.min(least, common), sharedCounts[0] ?? 0),
    sharedSum: sharedCounts.reduce((sum, common) => sum + common, 0),
  };
}
