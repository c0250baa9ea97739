import type { Run } from '../catalog/run-types.ts';
import type { Pass, ReadWindow } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import { createListWatch, type ListWatch } from './list-watch.ts';

/** Checkpoints that one rendering reads: the thread may be the loader's. To compare 500 windows takes about 40 ms. */
const READ_MOST = 500;
/** Runs that are followed at once. */
const RUNS_MOST = 4;

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
  /** Whether no later checkpoint was there. */
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
    /** Reads what the run has noted of its seams, and the checkpoints that are new. @returns whether all of them were read */
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
      const batch = store.runs.after(runId, seen.upTo, READ_MOST);
      for (const read of batch) note(read);
      const upTo = batch.at(-1)?.rowid ?? seen.upTo;
      seen = { ...seen, upTo, noted: seen.noted + batch.length, isCurrent: batch.length < READ_MOST };
      return seen.isCurrent;
    },
    /**
     * Whether a run that has ended made requests that are not known here: a later run has completed, and their
     * checkpoints were dropped before they were read.
     */
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

/**
 * Follows a run. Each checkpoint is read once, however often this is called; the newest RUNS_MOST runs that were asked
 * for are kept in memory (about 3 MB for a million products).
 */
export function watchRun(store: Reader, id: number): RunWatch {
  const known = watches.get(store) ?? new Map<number, RunWatch>();
  watches.set(store, known);
  const watch = known.get(id) ?? createRunWatch(store, id);
  known.delete(id);
  known.set(id, watch);
  for (const old of [...known.keys()].slice(0, -RUNS_MOST)) known.delete(old);
  return watch;
}
