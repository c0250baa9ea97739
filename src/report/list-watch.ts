import type { Window } from '../catalog/page-types.ts';
import { createListPlan, endOf, startOf } from '../proof/plan.ts';
import { previewSeam } from '../proof/seams.ts';
import type { Pass, ReadWindow } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';

/** A window: `.` not read, `w` read, `a` read again by a repair, `x` with rejected items, `d` its totals contradict it. */
export type WindowState = '.' | 'w' | 'a' | 'x' | 'd';
/** A seam: `.` not known yet, `j` joined, `r` joined by a repair, `o` open, a space: none, because the list ends here. */
export type SeamState = '.' | 'j' | 'r' | 'o' | ' ';

/**
 * Follows a list while it is read: which of its windows are read, and which neighbours seem to join. The run itself judges
 * the seams, and notes them, once it has read the changes since the list began; until then, these are a preview.
 */
export function createListWatch({ runs }: Reader, pass: Pass) {
  const plan = createListPlan(pass.reversed ? { ...pass, foundLength: runs.heldUpTo(pass.runId, pass.pass) } : pass);
  const { windowAt } = plan;
  const states: WindowState[] = [];
  const again = new Set<number>();
  /** Between each window and the next. */
  const previews: ReturnType<typeof previewSeam>[] = [];
  let read = 0;
  let repairs = 0;
  let total: number | null = pass.numItems;
  let lastWithItems = -1;

  const stateOf = (at: number): WindowState => states[at] ?? '.';
  const idsOf = (at: number): number[] => runs.idsOf(pass.runId, pass.pass, windowAt(at));
  /** Windows planned so far, and any that were read after them. */
  const size = (): number => Math.max(plan.size, states.length);
  const windows = (): Window[] => Array.from({ length: size() }, (_, at) => windowAt(at));

  /** Compares a window with the next one, once both are read. Plain pages have nothing to compare. */
  function previewAt(at: number) {
    if (pass.seam === 0 || stateOf(at) === '.' || stateOf(at + 1) === '.') return undefined;
    previews[at] ??= previewSeam(startOf(windowAt(at + 1)) - startOf(windowAt(at)), idsOf(at), idsOf(at + 1));
    return previews[at];
  }

  function seamAt(at: number): SeamState {
    if (stateOf(at + 1) !== '.' && at + 1 > lastWithItems) return ' ';
    if (stateOf(at) === '.' || stateOf(at + 1) === '.') return '.';
    return (previewAt(at) ?? 'open') === 'open' ? 'o' : 'j';
  }

  return {
    pass,
    note: (window: ReadWindow): void => {
      const at = plan.indexOf(window);
      if (at === undefined || stateOf(at) !== '.') return;
      plan.note(window);
      read++;
      total = window.numItems;
      states[at] = window.doubt !== null ? 'd' : window.rejected > 0 ? 'x' : 'w';
      if (window.items > 0) lastWithItems = Math.max(lastWithItems, at);
    },
    noteRepair: (repair: Window): void => {
      repairs++;
      for (const [at, window] of windows().entries()) {
        if (startOf(window) < endOf(repair) && endOf(window) > startOf(repair)) again.add(at);
      }
    },
    size,
    read: () => read,
    repairs: () => repairs,
    /** The source's own total, in the newest response; null before the first one. */
    total: () => total,
    /** Whether products moved between two reads of neighbours. */
    moved: () => states.slice(0, Math.max(0, lastWithItems)).some((_, at) => (previewAt(at) ?? 'still') !== 'still'),
    windows,
    states: (): WindowState[] =>
      Array.from({ length: size() }, (_, at) => (stateOf(at) === 'w' && again.has(at) ? 'a' : stateOf(at))),
    /** A preview: one letter for each window and the next. */
    seams: (): string => Array.from({ length: Math.max(0, size() - 1) }, (_, at) => seamAt(at)).join(''),
  };
}

export type ListWatch = ReturnType<typeof createListWatch>;
