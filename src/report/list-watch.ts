import { type Window, windowKey } from '../catalog/page.ts';
import { createListPlan, createSequence, endOf, startOf } from '../catalog/plan.ts';
import { standStill } from '../catalog/seams.ts';
import type { Reader } from '../store/reader.ts';
import type { Pass, ReadWindow } from '../store/runs.ts';

/** A window: `.` not read, `w` read, `a` read again by a repair, `x` with rejected items, `d` its totals contradict it. */
export type WindowState = '.' | 'w' | 'a' | 'x' | 'd';
/** A seam: `.` not known yet, `j` joined, `r` joined by a repair, `o` open, a space: none, because the list ends here. */
export type SeamState = '.' | 'j' | 'r' | 'o' | ' ';

/** What two neighbours have in common. */
interface Joint {
  /** The same products at the same places: nothing moved between the two reads. */
  readonly still: boolean;
  /** Products in both; at most SHARED_MOST. */
  readonly shared: readonly number[];
  /** The newest change when the first of the two was applied. */
  readonly seq: number;
}

interface Repair {
  readonly pass: number;
  readonly seq: number;
  readonly start: number;
  readonly end: number;
  readonly ids: readonly number[];
}

/** Products kept for each seam. For safety: after a large shift, neighbours may share all their products. */
const SHARED_MOST = 100;
/** Open seams that one evaluation compares with repairs. For safety. */
const EVALUATED_MOST = 300;

function sharedBy(before: readonly number[], after: readonly number[]): number[] {
  const known = new Set(before);
  return after.filter((id) => id !== 0 && known.has(id)).slice(0, SHARED_MOST);
}

/** The windows of a list, in order. */
function createListSequence(layout: Pass) {
  const { windows, index, windowAt } = createSequence(layout);
  return {
    windowAt,
    /** Undefined for a window of another plan. */
    indexOf: (window: Window): number | undefined => {
      while (startOf(windowAt(Math.max(0, windows.length - 1))) < startOf(window)) windowAt(windows.length);
      return index.get(windowKey(window));
    },
    /** Indexes of the windows that hold an offset from `start` to `end` - 1. */
    overlapping: (start: number, end: number): number[] =>
      windows.flatMap((window, at) => (startOf(window) < end && endOf(window) > start ? [at] : [])),
  };
}

/** Compares each window with its neighbours when they are read, and forgets its ids afterwards. */
function createJoints(windowAt: (at: number) => Window) {
  const waiting = new Map<number, readonly number[]>();
  const joints: (Joint | undefined)[] = [];
  const seqs: number[] = [];

  function compare(at: number, before: readonly number[] | undefined, after: readonly number[] | undefined): void {
    if (at < 0 || before === undefined || after === undefined) return;
    const shift = startOf(windowAt(at + 1)) - startOf(windowAt(at));
    const seq = Math.min(seqs[at] ?? 0, seqs[at + 1] ?? 0);
    joints[at] = { still: standStill(shift, before, after), shared: sharedBy(before, after), seq };
  }

  return {
    /** Between each window and the next; undefined while they are not compared. */
    joints,
    /** The newest change when each window was applied. */
    seqs,
    noteIds: (at: number, ids: readonly number[], seq: number): void => {
      seqs[at] = seq;
      compare(at - 1, waiting.get(at - 1), ids);
      compare(at, ids, waiting.get(at + 1));
      waiting.set(at, ids);
      for (const one of [at - 1, at, at + 1]) {
        const isCompared = (one <= 0 || joints[one - 1] !== undefined) && joints[one] !== undefined;
        if (isCompared) waiting.delete(one);
      }
    },
  };
}

/** Whether a chain of windows, each of which shares a product with the next, leads from one window to the other. */
function isChained(from: readonly number[], to: readonly number[], between: readonly (readonly number[])[]): boolean {
  const found = new Set(from);
  let rest = between;
  for (;;) {
    const joined = rest.filter((ids) => ids.some((id) => found.has(id)));
    if (joined.length === 0) return to.some((id) => found.has(id));
    for (const ids of joined) for (const id of ids) found.add(id);
    rest = rest.filter((ids) => !joined.includes(ids));
  }
}

interface ListWatchOptions {
  readonly store: Reader;
  readonly pass: Pass;
  /** The list's length as an earlier pass found it. */
  readonly foundLength: number | undefined;
  /** The last pass whose delta listed the product; -1 if none did. */
  readonly modifiedIn: (id: number) => number;
  /** Whether to compare neighbours. A run that has ended has the seams in its evidence. */
  readonly withSeams: boolean;
}

/**
 * Follows a list while it is read: which of its windows are read, and which neighbours join. Each window's ids are decoded
 * once, and kept only until both neighbours are read.
 *
 * Its seams are a preview: what the proof (catalog/seams.ts) would find now, except that the proof also joins windows that
 * are not neighbours, and compares a repair with all windows, not only with those near it. So a seam that is closed here
 * is closed there, as far as the deltas have been read.
 */
export function createListWatch({ store, pass, foundLength, modifiedIn, withSeams }: ListWatchOptions) {
  const plan = createListPlan({ ...pass, foundLength });
  const { windowAt, indexOf, overlapping } = createListSequence(pass);
  const states: WindowState[] = [];
  const again = new Set<number>();
  const { joints, seqs, noteIds } = createJoints(windowAt);
  const repairs: Repair[] = [];
  let repaired = new Set<number>();
  let isStale = false;
  let read = 0;
  let total: number | null = pass.numItems;
  let lastWithItems = -1;
  /** Offset after the last product that was found. */
  let reach = 0;

  const stateOf = (at: number): WindowState => states[at] ?? '.';

  /** Whether the product is still as it was when a window of this pass was applied; `seq`: the newest change then. */
  function isSteady(id: number, inPass: number, seq: number): boolean {
    // A change that became visible late, or of a product that was erased since, is in no delta, but the mirror has it.
    return id !== 0 && modifiedIn(id) <= inPass && store.products.changedSeq(id) <= seq;
  }

  function note(window: ReadWindow): void {
    const at = indexOf(window);
    if (at === undefined || stateOf(at) !== '.') return;
    plan.note(window);
    read++;
    total = window.numItems;
    states[at] = window.doubt !== null ? 'd' : window.rejected > 0 ? 'x' : 'w';
    if (window.items > 0) {
      lastWithItems = Math.max(lastWithItems, at);
      reach = Math.max(reach, startOf(window) + window.items);
    }
    if (withSeams && pass.seam > 0) noteIds(at, window.ids(), window.seq);
  }

  function noteRepair(window: ReadWindow): void {
    const [start, end] = [startOf(window), endOf(window)];
    for (const at of overlapping(start, end)) again.add(at);
    repairs.push({ pass: window.pass, seq: window.seq, start, end, ids: withSeams ? window.ids() : [] });
    isStale = true;
  }

  function isJoined({ shared, seq }: Joint): boolean {
    return shared.some((id) => isSteady(id, pass.pass, seq));
  }

  /** The products of a window that are still as they were then. */
  function steadyOf(at: number): number[] {
    const ids = store.runs.idsOf(pass.runId, pass.pass, windowAt(at));
    return ids.filter((id) => isSteady(id, pass.pass, seqs[at] ?? 0));
  }

  function evaluateRepairs(): void {
    if (!isStale || repairs.length === 0) return;
    isStale = false;
    repaired = new Set();
    let evaluated = 0;
    for (const [at, joint] of joints.entries()) {
      if (joint === undefined || isJoined(joint) || evaluated >= EVALUATED_MOST) continue;
      const offset = startOf(windowAt(at + 1));
      const near = repairs.filter(({ start, end }) => start <= offset + pass.perPage && end >= offset - pass.perPage);
      if (near.length === 0) continue;
      evaluated++;
      const found = near.map((repair) => repair.ids.filter((id) => isSteady(id, repair.pass, repair.seq)));
      if (isChained(steadyOf(at), steadyOf(at + 1), found)) repaired.add(at);
    }
  }

  function seamAt(at: number): SeamState {
    if (stateOf(at + 1) !== '.' && at + 1 > lastWithItems) return ' ';
    if (stateOf(at) === '.' || stateOf(at + 1) === '.') return '.';
    if (pass.seam === 0) return 'o';
    const joint = joints[at];
    if (joint === undefined) return '.';
    if (isJoined(joint)) return 'j';
    return repaired.has(at) ? 'r' : 'o';
  }

  /** Windows planned so far, and any that were read after them. */
  const size = (): number => Math.max(plan.size, states.length);

  return {
    pass,
    note,
    noteRepair,
    /** A delta showed more modified products. */
    noteModified: (): void => {
      isStale = true;
    },
    size,
    read: () => read,
    repairs: () => repairs.length,
    /** The source's own total, in the newest response; null before the first one. */
    total: () => total,
    reach: () => reach,
    /** Whether products moved between two reads of neighbours. */
    moved: () => pass.seam > 0 && joints.some((joint, at) => joint?.still === false && at + 1 <= lastWithItems),
    windows: (): Window[] => Array.from({ length: size() }, (_, at) => windowAt(at)),
    states: (): WindowState[] =>
      Array.from({ length: size() }, (_, at) => {
        const state = stateOf(at);
        return state === 'w' && again.has(at) ? 'a' : state;
      }),
    seams: (): SeamState[] => {
      evaluateRepairs();
      return Array.from({ length: Math.max(0, size() - 1) }, (_, at) => seamAt(at));
    },
  };
}

export type ListWatch = ReturnType<typeof createListWatch>;
