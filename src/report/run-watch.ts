import type { Run } from '../catalog/run.ts';
import type { Reader } from '../store/reader.ts';
import type { Pass, ReadWindow } from '../store/runs.ts';
import { createListWatch, type ListWatch } from './list-watch.ts';

/** Checkpoints that one rendering reads, in batches: the thread may be the loader's. 500 take about 40 ms. */
const READ_MOST = 500;
const BATCH = 250;
/** Modified products that are remembered. For safety: a delta may list the whole catalog. */
const MODIFIED_MOST = 200_000;
/** Runs that are followed at once. */
const RUNS_MOST = 4;

/** What happened in one second. */
interface Second {
  requests: number;
  windows: number;
}

/** Passes that show what was modified while the run read. */
function isDelta({ kind }: Pass): boolean {
  return kind === 'delta' || kind === 'settle';
}

const layoutOf = (passes: readonly Pass[]): string =>
  passes.map(({ kind, perPage, seam }) => `${kind}${perPage}/${seam}`).join(' ');

/** @param withSeams whether to compare neighbours: a run that has ended has the seams in its evidence */
export function createRunWatch(store: Reader, runId: number, withSeams: boolean) {
  const lists = new Map<number, ListWatch>();
  const modified = new Map<number, number>();
  const seconds = new Map<number, Second>();
  let passes: readonly Pass[] = [];
  let upTo = 0;
  let lookups = 0;
  let noted = 0;
  let isCurrent = false;

  function reset(): void {
    lists.clear();
    modified.clear();
    seconds.clear();
    upTo = 0;
    lookups = 0;
    noted = 0;
  }

  /** The list that this pass reads first; undefined for a repair or a lookup. */
  function listOf(pass: Pass): ListWatch | undefined {
    if (pass.kind === 'repair' || pass.kind === 'lookup') return undefined;
    const known = lists.get(pass.pass);
    if (known !== undefined) return known;
    const earlier = [...lists.values()].filter((list) => list.pass.kind === 'list').map((list) => list.reach());
    const foundLength = pass.reversed ? Math.max(0, ...earlier) : undefined;
    const modifiedIn = (id: number): number => modified.get(id) ?? -1;
    const list = createListWatch({ store, pass, foundLength, modifiedIn, withSeams });
    lists.set(pass.pass, list);
    return list;
  }

  function noteModified(root: number, ids: readonly number[]): void {
    for (const id of ids) if (id !== 0 && modified.size < MODIFIED_MOST) modified.set(id, root);
    if (ids.length > 0) for (const list of lists.values()) list.noteModified();
  }

  function note(read: ReadWindow): void {
    upTo = read.rowid;
    noted++;
    const second = Math.floor(read.requestedAt / 1000);
    const sum = seconds.get(second) ?? { requests: 0, windows: 0 };
    sum.requests += read.requests;
    sum.windows++;
    seconds.set(second, sum);
    const pass = passes.find((one) => one.pass === read.pass);
    if (pass === undefined) return;
    if (pass.kind === 'lookup') lookups++;
    else if (pass.kind === 'repair') lists.get(pass.root)?.noteRepair(read);
    else listOf(pass)?.note(read);
    const root = passes.find((one) => one.pass === pass.root);
    // A list that is read before every delta is compared with what they list.
    if (withSeams && root !== undefined && root.pass > 0 && isDelta(root)) noteModified(root.pass, read.ids());
  }

  return {
    withSeams,
    /** Reads the checkpoints that are new. @returns whether all of them were read */
    update: (): boolean => {
      const now = store.runs.passes(runId);
      // The source ignored the page size: the pass has other windows now.
      if (!layoutOf(now).startsWith(layoutOf(passes))) reset();
      passes = now;
      for (const pass of passes) listOf(pass);
      for (let left = READ_MOST; left > 0; left -= BATCH) {
        const batch = store.runs.after(runId, upTo, BATCH);
        for (const read of batch) note(read);
        isCurrent = batch.length < BATCH;
        if (isCurrent) return true;
      }
      return false;
    },
    /**
     * Whether a run that has ended made requests that are not known here: a later run has completed, and their
     * checkpoints were dropped before they were read.
     */
    isGone: ({ finishedAt, pages }: Pick<Run, 'finishedAt' | 'pages'>): boolean =>
      finishedAt !== null && isCurrent && noted < pages,
    passes: () => passes,
    /** In the order in which they were read. */
    lists: () => [...lists.values()],
    lookups: () => lookups,
    /** By second since 1970, by the clock of the machine that made the requests. */
    seconds: (): ReadonlyMap<number, Readonly<Second>> => seconds,
  };
}

export type RunWatch = ReturnType<typeof createRunWatch>;

const watches = new WeakMap<Reader, Map<number, RunWatch>>();

/**
 * What a run has read so far. Each checkpoint is read once, however often this is called; the newest RUNS_MOST runs that
 * were asked for are kept in memory (about 3 MB for a million products).
 */
export function watchRun(store: Reader, { id, evidence }: Pick<Run, 'id' | 'evidence'>): RunWatch {
  const known = watches.get(store) ?? new Map<number, RunWatch>();
  watches.set(store, known);
  const withSeams = evidence === null;
  const kept = known.get(id);
  const watch = kept !== undefined && (kept.withSeams || !withSeams) ? kept : createRunWatch(store, id, withSeams);
  known.delete(id);
  known.set(id, watch);
  for (const old of [...known.keys()].slice(0, -RUNS_MOST)) known.delete(old);
  return watch;
}
