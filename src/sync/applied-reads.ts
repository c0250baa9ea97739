import { createIdSet, type IdSet } from '@catchword/catalog/id-set';
import type { FetchTask, Window } from '@catchword/catalog/page-types';
import { endOf, startOf } from '../proof/plan.ts';
import type { Reader } from '../store/schema/reader.ts';

type Task = Pick<FetchTask, 'pass' | 'window' | 'from' | 'vbid'>;

/** An applied window, and the moment that it shows (`momentOf`). */
interface Read extends Window {
  readonly moment: number;
}

/**
 * The windows of a run that were applied. A page needs those that show a later moment than itself, of which there are few:
 * pages arrive nearly in order. A query for them would read every checkpoint of the pass, for each page with changes.
 */
export function createAppliedReads({ runs }: Reader, runId: number) {
  const byPass = new Map<number, Read[]>();
  /** The lowest offset at which the run's lists have shown each product, plus one; 0: none has. Null until it is needed. */
  let places: Uint32Array | null = null;
  /** Products that one answer has shown at two places. */
  const twice = new Set<number>();
  /** Products that neighbours share. Null until it is needed: this is asked for each product that has changed. */
  let seam: number | null = null;

  function place(found: Uint32Array, window: Window, ids: readonly number[]): Uint32Array {
    const highest = ids.reduce((most, id) => Math.max(most, id), 0);
    const kept = highest < found.length ? found : new Uint32Array(2 * highest + 1);
    if (kept !== found) kept.set(found);
    const inWindow = new Set<number>();
    for (const [at, id] of ids.entries()) {
      if (inWindow.has(id)) twice.add(id);
      inWindow.add(id);
      const offset = startOf(window) + at + 1;
      if (id > 0 && (kept[id] === 0 || offset < (kept[id] ?? 0))) kept[id] = offset;
    }
    return kept;
  }

  /** Readings of the list, and their repairs. */
  const listPasses = () => runs.passes(runId).filter(({ kind, from }) => from === null && kind !== 'lookup');

  function placesOf(): Uint32Array {
    let found: Uint32Array = new Uint32Array(0);
    for (const { pass } of listPasses()) {
      for (const read of runs.checkpoints(runId, pass)) found = place(found, read, runs.idsOf(runId, pass, read));
    }
    return found;
  }

  function readsOf(pass: number): Read[] {
    const known = byPass.get(pass);
    if (known !== undefined) return known;
    const reads = runs
      .checkpoints(runId, pass)
      .map(({ page, perPage, requestedAt }) => ({ page, perPage, moment: requestedAt }));
    byPass.set(pass, reads);
    return reads;
  }

  return {
    /** Notes a window. Call it before its checkpoint is written; if that fails, do not use these reads any more. */
    add: ({ pass, window, from, vbid }: Task, moment: number, ids: readonly number[]): void => {
      readsOf(pass).push({ ...window, moment });
      if (places !== null && from === null && vbid === undefined) places = place(places, window, ids);
    },
    /** Whether lists of the run have first shown the product in front of this place, or behind it; null: here, or nowhere. */
    sideOf: (id: number, offset: number): 'front' | 'behind' | null => {
      places ??= placesOf();
      const first = (places[id] ?? 0) - 1;
      seam ??= runs.passes(runId)[0]?.seam ?? 0;
      // A product that moved a little has one place, unless one answer has shown two.
      const near = twice.has(id) ? 0 : seam;
      if (first < 0 || Math.abs(first - offset) <= near) return null;
      return first < offset ? 'front' : 'behind';
    },
    /** Whether lists of the run have read everything in front of the window: a repair reads only some windows again. */
    hasFront: (window: Window): boolean => {
      let reach = 0;
      const reads = listPasses().flatMap(({ pass }) => readsOf(pass));
      const inOrder = reads.sort((a, b) => startOf(a) - startOf(b));
      for (const read of inOrder) if (startOf(read) <= reach) reach = Math.max(reach, endOf(read));
      return reach >= startOf(window);
    },
    /** The products that a window of the pass shows as of a moment later than `moment`. */
    productsAfter: (pass: number, moment: number): Pick<IdSet, 'has'> => {
      const products = createIdSet(0);
      for (const read of readsOf(pass)) if (read.moment > moment) products.addAll(runs.idsOf(runId, pass, read));
      return products;
    },
  };
}

export type AppliedReads = ReturnType<typeof createAppliedReads>;
