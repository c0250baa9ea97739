import { endOf, holdsEnd, isWhole, startOf, type WindowRead } from './plan.ts';

/*
 * Decides whether windows that were read one after another, while the list changed, hold the whole list.
 *
 * Two windows are *joined* by a product that is in both, that no delta tells of, and that both show alike: it was not
 * modified since the first of the two reads. If each window of the first pass is joined with the next one, directly or
 * through repairs, from the head of the list to its end, then every product that existed, unmodified, during all reads
 * is in one of the windows: docs/page-drift.md has the proof. Products that were modified join nothing, even where two
 * windows hold the same ones at the same places: a job that edits them in turn moves all of them past a product that
 * nothing touched.
 *
 * A source may list a product twice, and windows of both places hold it. But two pieces of one list overlap where one of
 * them ends: before what they share, and after it, one of them holds nothing. A few products that vanished from there
 * between the reads are allowed, as many as the two share and a few more.
 */

/** A window that was read in `pass`. */
export type SeamWindow = Pick<WindowRead, 'page' | 'perPage' | 'items' | 'doubt' | 'numItems'> & {
  readonly pass: number;
};

interface SeamInput<W extends SeamWindow> {
  /** All windows of the list, including repairs. */
  readonly windows: readonly W[];
  /** The first pass; windows of later passes are repairs. */
  readonly root: number;
  /** Returns a window's product ids in the order of the response; 0 for a rejected item. */
  readonly idsOf: (window: W) => readonly number[];
  /**
   * Returns the last pass whose delta listed the product, of those that can tell of what happened before the end of pass
   * `until`; -1 if none did. A delta's own products may join its windows.
   */
  readonly modifiedIn: (until: number) => (id: number) => number;
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
export function standStill(shift: number, beforeIds: readonly number[], afterIds: readonly number[]): boolean {
  const both = Math.min(beforeIds.length - shift, afterIds.length);
  if (both < STILL) return false;
  for (let at = 0; at < both; at++) if (afterIds[at] === 0 || beforeIds[shift + at] !== afterIds[at]) return false;
  return true;
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
  let notedUntil = -1;
  let size = 0;

  /** @param onHeld called with each product and the number of the window that held it before, from 1 on; 0: none did */
  function note({ window, products }: Loaded<W>, until: number, onHeld?: (id: number, holder: number) => void): void {
    const lastTold = modifiedIn(until);
    [noted, notedUntil] = [window, until];
    number++;
    size = 0;
    // Calls few functions: this runs for each product of the catalog before V8 has optimized it.
    for (let at = 0; at < products.length; at++) {
      const id = products[at] ?? 0;
      onHeld?.(id, holders[id] ?? 0);
      holders[id] = number;
      places[id] = lastTold(id) > window.pass ? MODIFIED : size++;
    }
  }

  return {
    note,
    unlike,
    /** What two windows share. `count`: products that join them. */
    overlap: (a: Loaded<W>, b: Loaded<W>) => {
      const until = Math.max(a.window.pass, b.window.pass);
      if (noted !== a.window || notedUntil !== until) note(a, until);
      const lastTold = modifiedIn(until);
      let [count, disorder, before, behind, there, here] = [0, 0, 0, 0, -1, -1];
      for (let at = 0; at < b.products.length; at++) {
        const id = b.products[at] ?? 0;
        if (lastTold(id) > b.window.pass) continue;
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
  const lastTold = input.modifiedIn(input.root);
  for (const [at, window] of base.entries()) {
    const held = load(input, window);
    const { ids, products } = held;
    if (before !== undefined) {
      const found = comparer.overlap(before, held);
      shared.push(found.count);
      joined.push(found.isJoined);
      disorder += found.disorder;
      const shift = startOf(window) - startOf(before.window);
      // Empty windows after the end show nothing.
      if (ids.length > 0 && !standStill(shift, before.ids, ids)) isStill = false;
      const [earlier, both] = [before.window, before.ids.slice(shift, shift + ids.length)];
      if (isStill && !both.every((id) => input.isAlike(id, earlier, window))) isStill = false;
    }
    comparer.note(held, window.pass, (id, holder) => {
      if (holder === 0) different++;
      else if (holder < at && lastTold(id) <= window.pass) doubled.add(id);
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
  const { windows, root } = input;
  const byOffset = (a: W, b: W) => startOf(a) - startOf(b) || a.pass - b.pass;
  const base = windows.filter(({ pass }) => pass === root).sort(byOffset);
  const { overlap, unlike, ...first } = examineFirst(base, input);
  const repairs = windows
    .filter(({ pass }) => pass !== root)
    .sort((a, b) => a.pass - b.pass || byOffset(a, b))
    .map((window) => load(input, window));

  /** Whether repairs over that place, each joined with the next one, lead from a window to one that is an end. */
  function leads(from: W, isEnd: (one: Loaded<W>) => boolean): boolean {
    const reached = [load(input, from)];
    for (const one of reached) {
      if (isEnd(one)) return true;
      const next = repairs.filter((repair) => !reached.includes(repair) && touch(one.window, repair.window));
      reached.push(...next.filter((repair) => overlap(one, repair).isJoined));
    }
    return false;
  }

  const isHead = ({ window }: Loaded<W>) => window.page === 1;
  const isEnd = ({ window }: Loaded<W>) => holdsEnd(window);
  /** Without empty windows after the end, which have no seam. */
  const filled = base.slice(0, base.findLastIndex(({ items }) => items > 0) + 1);
  const end = filled.at(-1);
  let isHeaded = base[0]?.page === 1;
  let isEnded = end !== undefined && leads(end, isEnd);
  const states = first.joined.slice(0, Math.max(0, filled.length - 1)).map((isJoined, at) => {
    const [before, after] = filled.slice(at, at + 2);
    if (isJoined || before === undefined || after === undefined) return 'j';
    const other = load(input, after);
    return leads(before, (one) => overlap(one, other).isJoined) ? 'r' : 'o';
  });
  // Repairs may lead to another head or end than the first pass has.
  for (const [at, after] of filled.slice(1).entries()) {
    if (states[at] !== 'o') continue;
    if (leads(filled[at] as W, isEnd)) {
      states.fill('r', at);
      isEnded = true;
      break;
    }
    if (leads(after, isHead)) {
      states.fill('r', 0, at + 1);
      isHeaded = true;
    }
  }

  const gaps: (number | null)[] = states.flatMap((state, at) => (state === 'o' ? [startOf(base[at + 1] as W)] : []));
  if (end !== undefined && !isEnded) gaps.push(null);
  const isChain = isHeaded && isEnded && gaps.length === 0;

  return {
    /** A chain of joined neighbours leads from the head of the list to its end, in a stable order. */
    sealed: first.disorder === 0 && (isChain || isWhole(base)),
    /**
     * Neighbours of the first pass hold the same products at the same places, each as it is in the other, and as many
     * products were read as the highest total. A source can deceive this: it shows that a run need not wait, and proves
     * nothing.
     */
    stoodStill: first.isStill && end !== undefined && holdsEnd(end),
    /** One for each pair of neighbours of the first pass, in list order: `j` joined, `r` joined by a repair, `o` open. */
    states,
    /** Offsets in the first pass of windows that are not joined with the one before; null: of the end of the list. */
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
