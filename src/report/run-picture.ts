import type { Window } from '@catchword/catalog/page-types';
import type { ListEvidence, Run } from '@catchword/catalog/run-types';
import { startOf } from '../proof/plan.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { ListWatch, RunWatch, SeamState, WindowState } from './run-watch.ts';

/** Cells of one picture. Of a longer list, several windows share a cell, which shows the worst of them. */
const CELLS_MOST = 3_000;

/** The worst first. */
const WINDOW_RANK = ['d', 'x', '.', 'a', 'w'] as const satisfies readonly WindowState[];
export const SEAM_RANK = ['o', '.', 'r', 'j', ' '] as const satisfies readonly SeamState[];

/** All windows of a list that a run reads, and the seams between them. */
export type ListPicture = Readonly<ReturnType<typeof draw>>;

function tally<S extends string>(rank: readonly S[], states: readonly S[]): Record<S, number> {
  const counts = Object.fromEntries(rank.map((state) => [state, 0])) as Record<S, number>;
  for (const state of states) counts[state]++;
  return counts;
}

/** One letter for each `perCell` neighbours: that of the worst of them. */
export function cellsOf<S extends string>(rank: readonly S[], states: readonly S[], perCell: number): string {
  const cells = Array.from({ length: Math.ceil(states.length / perCell) }, (_, at) => {
    const own = states.slice(at * perCell, (at + 1) * perCell);
    return rank.find((state) => own.includes(state));
  });
  return cells.join('');
}

/** Of each window, in two digits of base 36 each: by how many products it starts after the one before, and its size. */
function placesOf(windows: readonly Window[]): string {
  const starts = windows.map(startOf);
  const numbers = windows.flatMap(({ perPage }, at) => [(starts[at] ?? 0) - (starts[at - 1] ?? 0), perPage]);
  return numbers.map((number) => number.toString(36).padStart(2, '0')).join('');
}

/** The figures of a list. `overlap`: neighbours share at least so many products; 0: plain pages. */
type Facts = Pick<Pass, 'pass' | 'kind' | 'reversed'> & Pick<ListEvidence, 'repairs' | 'overlap'> & { read: number };

/** @param letters of the seams, as the run judged them last, or a preview */
function draw(facts: Facts, states: readonly WindowState[], letters: string, windows: readonly Window[]) {
  const perCell = Math.max(1, Math.ceil(states.length / CELLS_MOST));
  const seams = letters.split('') as SeamState[];
  return {
    ...facts,
    /** One letter for each cell, in list order. */
    cells: cellsOf(WINDOW_RANK, states, perCell),
    /** One letter for each cell: the seams within it, and the one after it. The last window has no seam after it. */
    seams: cellsOf(SEAM_RANK, states.length === 0 ? [] : [...seams, ' ' as const], perCell),
    /** Windows that share a cell; 1 for most lists. */
    perCell,
    /** Empty if cells are shared, or the places are not known. */
    places: perCell === 1 && windows.length === states.length ? placesOf(windows) : '',
    windows: tally(WINDOW_RANK, states),
    joints: tally(SEAM_RANK, seams),
    /** Windows planned so far. */
    planned: states.length,
  };
}

function pictureOf(list: ListWatch, judged: string | undefined): ListPicture {
  const { pass, kind, reversed, seam: overlap } = list.pass;
  const facts = { pass, kind, reversed, overlap, read: list.read(), repairs: list.repairs() };
  return draw(facts, list.states(), judged ?? list.seams(), list.windows());
}

/** Draws the picture from the evidence, when a later run has completed and the checkpoints are gone. */
function pictureOfRecord({ windows, seams, ...record }: ListEvidence): ListPicture {
  const states = Array.from({ length: windows }, (): WindowState => 'w');
  return draw({ ...record, read: windows, reversed: false }, states, seams, []);
}

/** A picture of each list that a run has read, or reads: its seams are what the run has noted, and a preview before. */
export function picturesOf(watch: RunWatch, run: Pick<Run, 'evidence' | 'finishedAt' | 'pages'>): ListPicture[] {
  const { evidence } = run;
  if (watch.isGone(run)) return evidence?.lists.map(pictureOfRecord) ?? [];
  return watch
    .lists()
    .filter((list) => list.read() > 0 || evidence === null)
    .map((list) => pictureOf(list, watch.judged(list.pass.pass)))
    .filter(({ planned, pass }) => planned > 1 || pass === 0);
}
