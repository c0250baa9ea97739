import { endOf, holdsEnd, isWhole, startOf, type WindowRead } from './plan.ts';

/*
 * Decides whether windows that were read one after another, while the list changed, hold the whole list: docs/page-drift.md
 * has the proof. Two windows are *joined* by a product that is in both, that no delta tells of, and that both show alike.
 *
 * A source may list a product twice, and windows of both places hold it. But two pieces of one list overlap where one of
 * them ends: before what they share, and after it, one of them holds nothing. A few products that vanished from there
 * between the reads are allowed, as many as the two share and a few more.
 */

/** A window that was read in `pass`. */
export type SeamWindow = Pick<WindowRead, 'page' | 'perPage' | 'items' | 'doubt' | 'numItems'> & {
  readonly pass: number;
};

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
  /** Returns whether both windows show the product alike. A change may be in no delta: it is late, or erased. */
  readonly isAlike: (id: number, a: W, b: W) => boolean;
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

/** A window with its products. */
interface Loaded<W> {
  readonly window: W;
  readonly ids: readonly number[];
  /** Its products, each once. */
  readonly products: readonly number[];
}

function load<W extends SeamWindow>({ idsOf }: SeamInput<W>, window: W): Loaded<W> {
  const ids = idsOf(window);
  // Most windows list products in the order of their ids.
  const isDistinct = ids.every((id, at) => id > (ids[at - 1] ?? 0));
  return { window, ids, products: isDistinct ? ids : [...new Set(ids)].filter((id) => id > 0) };
}

/** The place of a product that a delta tells of. No window holds so many. */
const MODIFIED = 65_535;

/** Compares windows by the products in both that no delta tells of. Keeps 6 bytes for each product. */
function createComparer<W extends SeamWindow>({ modifiedIn, isAlike, highest }: SeamInput<W>) {
  /** For each product, the number of the window that was noted last with it, and its place there among the unmodified. */
  const holders = new Uint32Array(highest + 1);
  const places = new Uint16Array(highest + 1);
  /** Products that two windows show differently. */
  const unlike = new Set<number>();
  let number = 0;
  let noted: W | null = null;
  let size = 0;

  /** @param onHeld called with each product and the number of the window that held it before, from 1 on; 0: none did */
  function note({ window, products }: Loaded<W>, onHeld?: (id: number, holder: number) => void): void {
    noted = window;
    number++;
    size = 0;
    // Calls few functions: this runs for each product of the catalog before V8 has optimized it.
    for (let at = 0; at < products.length; at++) {
      const id = products[at] ?? 0;
      onHeld?.(id, holders[id] ?? 0);
      holders[id] = number;
      places[id] = modifiedIn(id) > window.pass ? MODIFIED : size++;
    }
  }

  return {
    note,
    /** The number of the window that was noted last with the product; 0 for none. */
    holderOf: (id: number): number => holders[id] ?? 0,
    unlike,
    /** What two windows share. `count`: products that join them. */
    overlap: (a: Loaded<W>, b: Loaded<W>) => {
      if (noted !== a.window) note(a);
      let [count, disorder, before, behind, there, here] = [0, 0, 0, 0, -1, -1];
      for (let at = 0; at < b.products.length; at++) {
        const id = b.products[at] ?? 0;
        if (modifiedIn(id) > b.window.pass) continue;
        here++;
        behind++;
        const place = places[id] ?? MODIFIED;
        if (holders[id] !== number || place === MODIFIED) continue;
        if (!isAlike(id, a.window, b.window)) {
          unlike.add(id);
          continue;
        }
        if (count++ === 0) before = Math.min(place, here);
        if (place < there) disorder++;
        there = place;
        behind = 0;
      }
      const outside = Math.max(before, Math.min(behind, size - 1 - there));
      return { count, disorder, isJoined: count > 0 && outside <= count + VANISHED };
    },
  };
}

/** Whether the offsets of two windows overlap, or follow each other. */
function touch(a: SeamWindow, b: SeamWindow): boolean {
  return startOf(a) <= endOf(b) && startOf(b) <= endOf(a);
}

/** Examines the windows of the first pass, in list order, each with the next one. Visits every id once. */
function examineFirst<W extends SeamWindow>(base: readonly W[], input: SeamInput<W>) {
  const comparer = createComparer(input);
  /** For each product that a window repeats, how often at most. */
  const repeats = new Map<number, number>();
  /** Unmodified products that are in two windows which are not neighbours. */
  const doubled = new Set<number>();
  const shared: number[] = [];
  const joined: boolean[] = [];
  let [different, disorder] = [0, 0];
  let isStill = base[0]?.page === 1;
  let before: Loaded<W> | undefined;
  for (const [at, window] of base.entries()) {
    const held = load(input, window);
    const { ids, products } = held;
    if (before !== undefined) {
      const found = comparer.overlap(before, held);
      shared.push(found.count);
      joined.push(found.isJoined);
      disorder += found.disorder;
      const [earlier, shift] = [before.window, startOf(window) - startOf(before.window)];
      const both = before.ids.slice(shift, shift + ids.length);
      const isAlike = (id: number) => input.isAlike(id, earlier, window);
      // Empty windows after the end show nothing.
      isStill &&= ids.length === 0 || (standStill(shift, before.ids, ids) && both.every(isAlike));
    }
    comparer.note(held, (id, holder) => {
      if (holder === 0) different++;
      else if (holder < at && input.modifiedIn(id) <= window.pass) doubled.add(id);
    });
    const rejected = ids.filter((id) => id === 0).length;
    different += rejected;
    if (ids.length - rejected > products.length) {
      const times = new Map<number, number>();
      for (const id of ids) if (id > 0) times.set(id, (times.get(id) ?? -1) + 1);
      for (const [id, more] of times) if (more > 0) repeats.set(id, Math.max(more, repeats.get(id) ?? 0));
    }
    before = held;
  }
  const total = base.reduce((most, { numItems }) => Math.max(most, numItems), 0);
  return { ...comparer, repeats, doubled, shared, joined, disorder, isStill: isStill && different >= total };
}

/**
 * Examines the seams of a list: whether each window of the first pass is joined with the next one, directly or through
 * repairs.
 */
export function examineSeams<W extends SeamWindow>(input: SeamInput<W>) {
  const { windows, root, idsOf } = input;
  const byOffset = (a: W, b: W) => startOf(a) - startOf(b) || a.pass - b.pass;
  const base = windows.filter(({ pass }) => pass === root).sort(byOffset);
  const { overlap, holderOf, unlike, ...first } = examineFirst(base, input);
  const repairs = windows
    .filter(({ pass }) => pass !== root)
    .sort((a, b) => a.pass - b.pass || byOffset(a, b))
    .map((window) => load(input, window));

  /** Where repairs found products of the first pass that kept their places: the offset there, and how much lower it is now. */
  const found = repairs.flatMap(({ window, ids }) => {
    const known = ids.findIndex((id) => id > 0 && holderOf(id) > 0 && input.modifiedIn(id) <= root);
    const holder = base[holderOf(ids[known] ?? 0) - 1];
    if (holder === undefined) return [];
    const offset = startOf(holder) + idsOf(holder).indexOf(ids[known] ?? 0);
    return [{ pass: window.pass, offset, shift: offset - startOf(window) - known }];
  });

  /** Whether repairs, each joined with the next one, lead from a window to one that is an end. */
  function leads(from: W, isEnd: (one: Loaded<W>) => boolean, mayFollow = (_a: W, _b: W) => true): boolean {
    const reached = [load(input, from)];
    for (const one of reached) {
      if (isEnd(one)) return true;
      const next = repairs.filter((repair) => !reached.includes(repair) && mayFollow(one.window, repair.window));
      reached.push(...next.filter((repair) => overlap(one, repair).isJoined));
    }
    return false;
  }

  /** The last window with items: empty windows after the end have no seam. */
  const last = base.findLastIndex(({ items }) => items > 0);
  const end = base[last];
  const isEnd = ({ window }: Loaded<W>) => holdsEnd(window);
  let isEnded = end !== undefined && leads(end, isEnd);
  let isHeaded = base[0]?.page === 1;
  const pairs = base.slice(0, Math.max(0, last)).map((before, at) => [before, base[at + 1] as W] as const);
  const states = pairs.map(([before, after], at) => {
    if (first.joined[at] === true) return 'j';
    const other = load(input, after);
    return leads(before, (one) => overlap(one, other).isJoined) ? 'r' : 'o';
  });
  // Repairs over a place may lead to another head or end than the first pass has read: edits move products there.
  for (const [at, [before, after]] of pairs.entries()) {
    if (states[at] !== 'o') continue;
    const toEnd = leads(before, isEnd, touch);
    const toHead = !toEnd && leads(after, ({ window }) => window.page === 1, touch);
    isEnded ||= toEnd;
    isHeaded ||= toHead;
    for (const [other, state] of states.entries())
      if (state === 'o' && ((toEnd && other >= at) || (toHead && other <= at))) states[other] = 'r';
  }

  function shiftAt(offset: number): number {
    const newest = found.filter(({ pass }) => pass === found.at(-1)?.pass);
    const [near] = newest.sort((a, b) => Math.abs(a.offset - offset) - Math.abs(b.offset - offset));
    return near?.shift ?? 0;
  }

  const gaps = pairs.flatMap(([, after], at): Gap[] => {
    const offset = startOf(after);
    return states[at] === 'o' ? [{ offset, shift: shiftAt(offset) }] : [];
  });
  if (end !== undefined && !isEnded) gaps.push({ offset: null, shift: shiftAt(endOf(end)) });
  const isChain = isHeaded && isEnded && gaps.length === 0;

  return {
    /** A chain of joined neighbours leads from the head of the list to its end, in a stable order. */
    sealed: first.disorder === 0 && (isChain || isWhole(base)),
    /** It seems that nothing moved. A source can deceive this: it shows that a run need not wait, and proves nothing. */
    stoodStill: first.isStill && end !== undefined && holdsEnd(end),
    /** One for each pair of neighbours of the first pass, in list order: `j` joined, `r` joined by a repair, `o` open. */
    states,
    gaps,
    /** Products whose order differs between a window and its neighbour: the list has no stable order. */
    disorder: first.disorder,
    /** How many products two windows show differently, although no delta tells of them. */
    unlike: unlike.size,
    /** Items that repeat a product within one window; each once, even if neighbours share them. */
    repeated: [...first.repeats.values()].reduce((sum, times) => sum + times, 0),
    /** Products at two distant places: the list holds them twice, or they moved although they were not modified. */
    doubled: [...first.doubled],
    /** Products shared by neighbours: the minimum and the sum over all seams. */
    sharedLeast: first.shared.reduce((least, common) => Math.min(least, common), first.shared[0] ?? 0),
    sharedSum: first.shared.reduce((sum, common) => sum + common, 0),
  };
}
