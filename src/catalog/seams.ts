import { endOf, holdsEnd, startOf, type WindowRead } from './plan.ts';

/*
 * Decides whether windows that were read one after another, while the list changed, hold the whole list.
 *
 * Two windows are *joined* by a product that is in both and was not modified since the first of the two reads. If a
 * chain of joined windows leads from a window at offset 0 to one that holds the end of the list, then every product
 * that existed, unmodified, during all reads is in one of the windows: docs/page-drift.md has the proof.
 *
 * Near the end of a list by time of change, every product may have been modified. Two neighbours are therefore also
 * joined if they hold exactly the same products at all offsets that both cover, at least five: to hide an unmodified
 * product, all of these would have had to move past it and return to the same place.
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
  /** Returns whether the product is still as it was in this window; default: true. */
  readonly steady?: (id: number, window: W) => boolean;
  /** The highest product id. */
  readonly highest: number;
}

/** Minimum number of equal products at equal offsets that joins two neighbours, even if all were modified. */
const STILL = 5;

/**
 * Whether neighbours hold the same products at all offsets that both cover, so nothing moved between the two reads.
 * @param shift by how many products the second one starts later
 */
export function standStill(shift: number, beforeIds: readonly number[], afterIds: readonly number[]): boolean {
  const both = Math.min(beforeIds.length - shift, afterIds.length);
  if (both < STILL) return false;
  for (let at = 0; at < both; at++) if (afterIds[at] === 0 || beforeIds[shift + at] !== afterIds[at]) return false;
  return true;
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

/**
 * Examines the seams of a list: joins the windows of the first pass with each other, in list order, then each repair with
 * the windows before it. Visits every id once and keeps 4 bytes for each product, 6 with more than 65,534 windows.
 */
export function examineSeams<W extends SeamWindow>(input: SeamInput<W>) {
  const { windows, root, idsOf, modifiedIn, steady = () => true, highest } = input;
  const byOffset = (a: W, b: W) => startOf(a) - startOf(b) || a.pass - b.pass;
  const base = windows.filter(({ pass }) => pass === root).sort(byOffset);
  const repairs = windows.filter(({ pass }) => pass !== root).sort((a, b) => a.pass - b.pass || byOffset(a, b));
  const all = [...base, ...repairs];
  const sets = createSets(all.length);
  /** For each product, one plus the index of the window that it was last found in, and its position there. */
  const owner = new (all.length < 65_535 ? Uint16Array : Uint32Array)(highest + 1);
  const place = new Uint16Array(highest + 1);
  const shared: number[] = [];
  let disorder = 0;
  let repeated = 0;

  /** Visits the products of a window that were not modified since it was read. */
  function eachUnmodified(window: W, at: number, ids: readonly number[], visit: (id: number, index: number) => void) {
    ids.forEach((id, position) => {
      if (id === 0) return;
      if (owner[id] === at + 1) repeated++;
      else if (modifiedIn(id) <= window.pass) visit(id, position);
    });
  }

  /** Joins the window with the one that the product was found in before, if the product is the same in both. */
  function joinBy(id: number, window: W, at: number): boolean {
    const otherAt = (owner[id] ?? 0) - 1;
    const other = all[otherAt];
    if (other === undefined || !steady(id, other) || !steady(id, window)) return false;
    sets.join(otherAt, at);
    return true;
  }

  let idsBefore: readonly number[] = [];
  base.forEach((window, at) => {
    const ids = idsOf(window);
    const before = base[at - 1];
    if (before !== undefined && standStill(startOf(window) - startOf(before), idsBefore, ids)) sets.join(at - 1, at);
    idsBefore = ids;
    let common = 0;
    let previous = -1;
    eachUnmodified(window, at, ids, (id, position) => {
      if (joinBy(id, window, at) && owner[id] === at) {
        const was = place[id] ?? 0;
        common++;
        if (was < previous) disorder++;
        previous = was;
      }
      owner[id] = at + 1;
      place[id] = position;
    });
    if (at > 0) shared.push(common);
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
    for (const [position, id] of ids.entries()) {
      const holder = base[(owner[id] ?? 0) - 1];
      if (holder === undefined) continue;
      const offset = startOf(holder) + (place[id] ?? 0);
      found.push({ pass: window.pass, offset, shift: offset - startOf(window) - position });
      break;
    }
    eachUnmodified(window, at, ids, (id) => {
      joinBy(id, window, at);
      // A product's place in the first pass is kept, because later repairs are compared with it.
      if (owner[id] === 0) owner[id] = at + 1;
    });
  });

  const states = joinedPairs().map((joined, at) => (joined ? (joinedAtFirst[at] ? 'j' : 'r') : 'o'));
  const heads = all.flatMap((window, at) => (window.page === 1 ? [sets.find(at)] : []));
  const ends = new Set(all.flatMap((window, at) => (holdsEnd(window) ? [sets.find(at)] : [])));
  const joined = heads.some((head) => ends.has(head));

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
    sealed: joined && disorder === 0,
    /** One for each pair of neighbours of the first pass, in list order: `j` joined, `r` joined by a repair, `o` open. */
    states,
    gaps: joined ? [] : gaps,
    /** Products whose order differs between a window and its neighbour: the list has no stable order. */
    disorder,
    /** Items that repeat a product within one window. */
    repeated,
    /** Products shared by neighbours: the minimum and the sum over all seams. */
    sharedLeast: shared.reduce((least, common) => Math.min(least, common), shared[0] ?? 0),
    sharedSum: shared.reduce((sum, common) => sum + common, 0),
  };
}
