import type { Window } from './page.ts';
import { endOf, holdsEnd, startOf } from './plan.ts';

/**
 * Decides whether windows that were read one after another, while the list changed, hold the whole list.
 *
 * Two windows are *joined* by a product that is in both and was not modified since the first of the two reads. Claim:
 * if a chain of joined windows leads from a window at offset 0 to one that holds the end of the list, then every
 * product that existed, unmodified, during all reads is in one of the windows. Proof: let y₁ … yₙ be the products that
 * join successive windows of the chain. A product before y₁ is in the first window, and one after yₙ is in the last.
 * Any other product is between two successive joining products. One window holds both of these; it is a contiguous part
 * of the list at one moment, in which unmodified products keep their order, so it holds that product too. The order of
 * the reads and the number of reads between them do not matter.
 *
 * If most products near a seam were modified, as at the end of a list sorted by time of change, there may be no joining
 * product. Two neighbours are therefore also joined if they hold exactly the same products at all offsets that both
 * cover, at least five: to hide an unmodified product, all of these would have had to move past it and return to the
 * same place.
 *
 * A list without a stable order is detected by products whose order differs between two windows.
 */
export interface SeamWindow extends Window {
  readonly pass: number;
  readonly items: number;
  readonly doubt: string | null;
}

/** `j` joined, `r` joined by a repair, `o` open. */
export type SeamState = 'j' | 'r' | 'o';

/** Two neighbouring windows, or a window and the list's end, that are not joined. */
export interface Gap {
  /** Offset in the first pass; null: the end of the list. */
  readonly offset: number | null;
  /** By how much the newest repair near it found that place at a lower offset. */
  readonly shift: number;
}

export interface SeamReport {
  /** A chain of joined windows leads from the head of the list to its end, in a stable order. */
  readonly sealed: boolean;
  /** One for each pair of neighbours of the first pass, in list order. */
  readonly states: readonly SeamState[];
  readonly gaps: readonly Gap[];
  /** Products whose order differs between a window and its neighbour. */
  readonly disorder: number;
  /** Items that repeat a product within one window. */
  readonly repeated: number;
  /** Products shared by neighbours: the minimum and the sum over all seams. */
  readonly sharedLeast: number;
  readonly sharedSum: number;
}

/** Minimum number of equal products at equal offsets that joins two neighbours, even if all were modified. */
const STILL = 5;

/** Whether neighbours hold the same products at all offsets that both cover, so nothing moved between the two reads. */
function standStill(before: Window, beforeIds: readonly number[], after: Window, afterIds: readonly number[]): boolean {
  const shift = startOf(after) - startOf(before);
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

export interface SeamInput<W extends SeamWindow = SeamWindow> {
  /** All windows of the list, including repairs. */
  readonly windows: readonly W[];
  /** The first pass; windows of later passes are repairs. */
  readonly root: number;
  /** Returns a window's product ids in the order of the response; 0 for a rejected item. */
  readonly idsOf: (window: W) => readonly number[];
  /**
   * Returns the last pass whose delta listed the product; -1 if none did. A delta's windows may be joined by products
   * it lists.
   */
  readonly modifiedIn: (id: number) => number;
  /** Returns whether the product is still as it was in this window; default: true. */
  readonly steady?: (id: number, window: W) => boolean;
  /** The highest product id. */
  readonly highest: number;
}

/** Which window holds a product, and where: 4 bytes a product, 6 if there are more than 65,534 windows. */
function createPlaces(windows: number, highest: number) {
  const Owner = windows < 65_535 ? Uint16Array : Uint32Array;
  return { owner: new Owner(highest + 1), place: new Uint16Array(highest + 1) };
}

/** Examines the seams of a list. Visits every id once and keeps 4 bytes for each product. */
export function examineSeams<W extends SeamWindow>(input: SeamInput<W>): SeamReport {
  const { windows, root, idsOf, modifiedIn, steady = () => true, highest } = input;
  const byOffset = (a: W, b: W) => startOf(a) - startOf(b) || a.pass - b.pass;
  const base = windows.filter(({ pass }) => pass === root).sort(byOffset);
  const repairs = windows.filter(({ pass }) => pass !== root).sort((a, b) => a.pass - b.pass || byOffset(a, b));
  const all = [...base, ...repairs];
  const sets = createSets(all.length);
  const { owner, place } = createPlaces(all.length, highest);
  /** Where repairs found products of the first pass: the difference of offsets. */
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
      const otherAt = (owner[id] ?? 0) - 1;
      if (otherAt === at) {
        repeated++;
        return;
      }
      const other = all[otherAt];
      const was = place[id] ?? 0;
      if (isRepair && other !== undefined && otherAt < base.length) {
        const offset = startOf(other) + was;
        sighting ??= { offset, shift: offset - startOf(window) - position };
      }
      if (modifiedIn(id) > window.pass) return;
      if (other !== undefined && steady(id, other) && steady(id, window)) {
        sets.join(otherAt, at);
        if (otherAt === at - 1 && !isRepair) {
          common++;
          if (was < previous) disorder++;
          previous = was;
        }
      }
      // A product's place in the first pass is kept, because repairs are compared with it.
      if (isRepair && other !== undefined) return;
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

  /**
   * Whether each pair of neighbours is joined, directly or through other windows. Empty windows after the end have no
   * seam.
   */
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
