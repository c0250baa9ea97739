import type { Window } from './page.ts';
import { endOf, holdsEnd, startOf } from './plan.ts';

/**
 * Whether windows that were read one after another, while the list changed, hold all of it.
 *
 * Two windows are *joined* by a product that is in both and was not modified from the first of the two reads on. If
 * joined windows lead from one that begins at offset 0 to one that holds the end of the list, then each product that was
 * there all the time, unmodified, is in one of them. (Let y₁ … yₙ be the products that join them, in turn. A product
 * before y₁ is in the first window, one behind yₙ in the last. Any other stands between two that follow each other, and
 * the window that holds these two is a contiguous piece of the list at one moment, in which unmodified products keep
 * their order: so it holds that one too.) It does not matter in which order the windows were read, nor how many lie
 * between.
 *
 * Where most products near a seam were modified, as at the end of a list by time of change, there may be no such product.
 * There two neighbours are joined, too, if they hold the very same products at all offsets that both cover, five or more:
 * for one to slip by unmodified, all of these would have had to move past it and come to stand exactly where they stood.
 *
 * What may not be believed is noticed: products that come in different orders, which shows a list without a stable one.
 */
export interface SeamWindow extends Window {
  readonly pass: number;
  readonly items: number;
  readonly doubt: string | null;
}

/** `j` joined, `r` joined with the help of a repair, `o` open. */
export type SeamState = 'j' | 'r' | 'o';

/** Two neighbouring windows, or a window and the list's end, that are not joined. */
export interface Gap {
  /** Where it is, in the offsets of the first reading; null: the end of the list. */
  readonly offset: number | null;
  /** How much lower that place was found by the newest repair that came near it. */
  readonly shift: number;
}

export interface SeamReport {
  /** A chain of joined windows leads from the head of the list to its end, in a stable order. */
  readonly sealed: boolean;
  /** One for each pair of neighbours of the first reading, in the order of the list. */
  readonly states: readonly SeamState[];
  readonly gaps: readonly Gap[];
  /** Products that came in one order in a window and in another in its neighbour. */
  readonly disorder: number;
  /** Items that repeat a product of the same window. */
  readonly repeated: number;
  /** Of two neighbours that are joined, products in both: the least and the sum. */
  readonly sharedLeast: number;
  readonly sharedSum: number;
}

/** A set of product ids. Costs a bit for each id up to the highest. */
export interface IdSet {
  readonly size: number;
  has(id: number): boolean;
  add(id: number): void;
}

/** @param highest the highest id, as far as it is known: room for it is made at once */
export function createIdSet(highest: number): IdSet {
  let bits = new Uint8Array((highest >> 3) + 1);
  let size = 0;
  return {
    get size() {
      return size;
    },
    has: (id) => ((bits[id >> 3] ?? 0) & (1 << (id & 7))) !== 0,
    add: (id) => {
      if (id >> 3 >= bits.length) {
        const grown = new Uint8Array(2 * (id >> 3) + 1);
        grown.set(bits);
        bits = grown;
      }
      const byte = bits[id >> 3] ?? 0;
      const bit = 1 << (id & 7);
      if ((byte & bit) !== 0) return;
      bits[id >> 3] = byte | bit;
      size++;
    },
  };
}

/** Equal products at equal offsets, at least, that join two neighbours whatever was modified. */
const STILL = 5;

/** Whether neighbours hold the same products wherever both reach, so that nothing moved between the two reads. */
function standStill(before: Window, beforeIds: readonly number[], after: Window, afterIds: readonly number[]): boolean {
  const shift = startOf(after) - startOf(before);
  const both = Math.min(beforeIds.length - shift, afterIds.length);
  if (both < STILL) return false;
  for (let at = 0; at < both; at++) if (afterIds[at] === 0 || beforeIds[shift + at] !== afterIds[at]) return false;
  return true;
}

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

export interface SeamInput<W extends SeamWindow = SeamWindow> {
  /** All windows of the list, those of its repairs included. */
  readonly windows: readonly W[];
  /** The pass that read the list first; windows of later passes are repairs. */
  readonly root: number;
  /** Product ids of a window, in the order of the response; 0 for a rejected item. */
  readonly idsOf: (window: W) => readonly number[];
  /** The last pass whose delta told of the product; -1 for none. A delta's own windows may be joined by what it tells. */
  readonly modifiedIn: (id: number) => number;
  /** Whether the product is now what it was in this window; default: yes. */
  readonly steady?: (id: number, window: W) => boolean;
  /** The highest product id. */
  readonly highest: number;
}

/** Items of a window are numbered in 16 bits, so are windows where that is enough: 4 bytes a product. */
function createPlaces(windows: number, highest: number) {
  const Owner = windows < 65_535 ? Uint16Array : Uint32Array;
  return { owner: new Owner(highest + 1), place: new Uint16Array(highest + 1) };
}

/** Reads every id once; the cost is that of the windows, and 4 bytes for each product. */
export function examineSeams<W extends SeamWindow>(input: SeamInput<W>): SeamReport {
  const { windows, root, idsOf, modifiedIn, steady = () => true, highest } = input;
  const byOffset = (a: W, b: W) => startOf(a) - startOf(b) || a.pass - b.pass;
  const base = windows.filter(({ pass }) => pass === root).sort(byOffset);
  const repairs = windows.filter(({ pass }) => pass !== root).sort((a, b) => a.pass - b.pass || byOffset(a, b));
  const all = [...base, ...repairs];
  const sets = createSets(all.length);
  const { owner, place } = createPlaces(all.length, highest);
  /** Where products of the first reading were found by a repair: the difference of offsets. */
  const found: { readonly pass: number; readonly offset: number; readonly shift: number }[] = [];
  const shared: number[] = [];
  let disorder = 0;
  let repeated = 0;
  let idsBefore: readonly number[] = [];

  function visit(window: W, at: number): void {
    const isRepair = at >= base.length;
    const ids = idsOf(window);
    const neighbour = isRepair ? undefined : base[at - 1];
    if (neighbour !== undefined && standStill(neighbour, idsBefore, window, ids)) sets.join(at - 1, at);
    idsBefore = ids;
    let previous = -1;
    let common = 0;
    let sighting: { offset: number; shift: number } | undefined;
    ids.forEach((id, position) => {
      if (id === 0) return;
      const holder = (owner[id] ?? 0) - 1;
      if (holder === at) {
        repeated++;
        return;
      }
      const holding = all[holder];
      const was = place[id] ?? 0;
      if (isRepair && holding !== undefined && holder < base.length) {
        const offset = startOf(holding) + was;
        sighting ??= { offset, shift: offset - startOf(window) - position };
      }
      if (modifiedIn(id) > window.pass) return;
      if (holding !== undefined && steady(id, holding) && steady(id, window)) {
        sets.join(holder, at);
        if (holder === at - 1 && !isRepair) {
          common++;
          if (was < previous) disorder++;
          previous = was;
        }
      }
      // What the first reading found stays where it was found, or its place would be lost.
      if (isRepair && holding !== undefined) return;
      owner[id] = at + 1;
      place[id] = position;
    });
    if (!isRepair && at > 0) shared.push(common);
    if (sighting !== undefined) found.push({ pass: window.pass, ...sighting });
  }

  const states: SeamState[] = [];
  all.forEach((window, at) => {
    visit(window, at);
    if (at === base.length - 1) states.push(...pairs().map((joined) => (joined ? 'j' : 'o') as SeamState));
  });

  /** Whether each pair of neighbours is joined, by whatever way. Empty windows behind the end have no seam. */
  function pairs(): boolean[] {
    const full = base.findLastIndex(({ items }) => items > 0);
    return base.slice(1, full + 1).map((_, at) => sets.find(at) === sets.find(at + 1));
  }

  pairs().forEach((joined, at) => {
    if (joined && states[at] === 'o') states[at] = 'r';
  });

  const heads = all.flatMap((window, at) => (window.page === 1 ? [sets.find(at)] : []));
  const ends = new Set(all.flatMap((window, at) => (holdsEnd(window) ? [sets.find(at)] : [])));
  const joined = heads.some((head) => ends.has(head));

  function shiftAt(offset: number): number {
    const newest = found.filter(({ pass }) => pass === found.at(-1)?.pass);
    const near = newest.sort((a, b) => Math.abs(a.offset - offset) - Math.abs(b.offset - offset))[0];
    return near?.shift ?? 0;
  }

  function gaps(): Gap[] {
    const open: Gap[] = states.flatMap((state, at) => {
      const offset = startOf(base[at + 1] as W);
      return state === 'o' ? [{ offset, shift: shiftAt(offset) }] : [];
    });
    const last = base.findLastIndex(({ items }) => items > 0);
    if (last >= 0 && !ends.has(sets.find(last))) {
      open.push({ offset: null, shift: shiftAt(endOf(base[last] as W)) });
    }
    return open;
  }

  return {
    sealed: joined && disorder === 0,
    states,
    gaps: joined ? [] : gaps(),
    disorder,
    repeated,
    sharedLeast: shared.reduce((least, common) => Math.min(least, common), shared[0] ?? 0),
    sharedSum: shared.reduce((sum, common) => sum + common, 0),
  };
}
