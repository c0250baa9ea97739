import type { Window } from '@catchword/catalog/page-types';
import type { Run } from '@catchword/catalog/run-types';
import { createListPlan, endOf, startOf } from '../proof/plan.ts';
import { previewSeam } from '../proof/seams.ts';
import type { Pass, ReadWindow } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';

/** Runs that are followed at once. */
const RUNS_MOST = 4;
/** Checkpoints of one reading: other requests wait for it, about 0.1 s if windows have a thousand products (measured). */
const READ_MOST = 500;

/** A window: `.` not read, `w` read, `a` read again by a repair, `x` with rejected items, `d` its totals contradict it. */
export type WindowState = '.' | 'w' | 'a' | 'x' | 'd';
/** A seam: `.` not known yet, `j` joined, `r` joined by a repair, `o` open, a space: none, because the list ends here. */
export type SeamState = '.' | 'j' | 'r' | 'o' | ' ';

/**
 * Follows a list while it is read: which of its windows are read, and which neighbours seem to join, until the run itself
 * has judged the seams.
 */
function createListWatch({ runs }: Reader, pass: Pass) {
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
    /** Compares it with its neighbours now, so that no drawing compares all windows at once. */
    note: (window: ReadWindow): void => {
      const at = plan.indexOf(window);
      if (at === undefined || stateOf(at) !== '.') return;
      plan.note(window);
      read++;
      total = window.numItems;
      states[at] = window.doubt !== null ? 'd' : window.rejected > 0 ? 'x' : 'w';
      if (window.items > 0) lastWithItems = Math.max(lastWithItems, at);
      previewAt(at - 1);
      previewAt(at);
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

const layoutOf = (passes: readonly Pass[]): string =>
  passes.map(({ kind, perPage, seam }) => `${kind}${perPage}/${seam}`).join(' ');

/** The part of a run that a watch has read. */
const nothing = () => ({
  /** By pass, in the order in which they were read. */
  lists: new Map<number, ListWatch>(),
  /** Requests and windows by second since 1970, by the clock of the machine that made the requests. */
  seconds: new Map<number, { requests: number; windows: number }>(),
  /** The newest checkpoint, and how many there were. */
  upTo: 0,
  noted: 0,
  isCurrent: false,
});

export function createRunWatch(store: Reader, runId: number) {
  let seen = nothing();
  let passes: readonly Pass[] = [];
  /** For each list that the run has judged, its seams. */
  let judged: ReadonlyMap<number, string> = new Map();

  function note(read: ReadWindow): void {
    const { lists, seconds } = seen;
    const second = Math.floor(read.requestedAt / 1000);
    const sum = seconds.get(second) ?? { requests: 0, windows: 0 };
    sum.requests += read.requests;
    sum.windows++;
    seconds.set(second, sum);
    const pass = passes.find((one) => one.pass === read.pass);
    if (pass?.kind === 'repair') lists.get(pass.root)?.noteRepair(read);
    else lists.get(read.pass)?.note(read);
  }

  return {
    /** Reads what the run has noted of its seams, and new checkpoints. @returns whether all of them were read */
    update: (): boolean => {
      const now = store.runs.passes(runId);
      // The source ignored the page size: the pass has other windows now.
      if (!layoutOf(now).startsWith(layoutOf(passes))) seen = nothing();
      passes = now;
      judged = new Map(store.runs.notedSeams(runId).map(({ pass, seams }) => [pass, seams]));
      for (const pass of passes) {
        const isList = pass.kind !== 'repair' && pass.kind !== 'lookup';
        if (isList && !seen.lists.has(pass.pass)) seen.lists.set(pass.pass, createListWatch(store, pass));
      }
      const fresh = store.runs.after(runId, seen.upTo, READ_MOST);
      for (const read of fresh) note(read);
      seen.upTo = fresh.at(-1)?.rowid ?? seen.upTo;
      seen.noted += fresh.length;
      seen.isCurrent = fresh.length < READ_MOST;
      return seen.isCurrent;
    },
    /** Whether a later run has completed, so that checkpoints of this one were dropped before they were read. */
    isGone: ({ finishedAt, pages }: Pick<Run, 'finishedAt' | 'pages'>): boolean =>
      finishedAt !== null && seen.isCurrent && seen.noted < pages,
    passes: () => passes,
    /** The seams of a list as the run judged them last, one letter each; undefined before. */
    judged: (pass: number) => judged.get(pass),
    lists: () => [...seen.lists.values()],
    seconds: (): ReadonlyMap<number, Readonly<Record<'requests' | 'windows', number>>> => seen.seconds,
  };
}

export type RunWatch = ReturnType<typeof createRunWatch>;

const watches = new WeakMap<Reader, Map<number, RunWatch>>();

/** Follows a run. The runs that were asked for last are kept in memory, about 3 MB each for a million products. */
export function watchRun(store: Reader, id: number): RunWatch {
  const known = watches.get(store) ?? new Map<number, RunWatch>();
  watches.set(store, known);
  const watch = known.get(id) ?? createRunWatch(store, id);
  known.delete(id);
  known.set(id, watch);
  for (const old of [...known.keys()].slice(0, -RUNS_MOST)) known.delete(old);
  return watch;
}
