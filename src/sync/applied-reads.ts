import { createIdSet, type IdSet } from '../catalog/id-set.ts';
import type { Window } from '../catalog/page-types.ts';
import type { Reader } from '../store/schema/reader.ts';

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
    add: (pass: number, { page, perPage }: Window, moment: number): void => {
      readsOf(pass).push({ page, perPage, moment });
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
