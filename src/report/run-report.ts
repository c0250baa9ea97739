import { holdOf } from '@catchword/catalog/reasons';
import type { Run } from '@catchword/catalog/run-types';
import type { Store } from '../store/store.ts';
import { holdText } from './reason-text.ts';

/** Held runs, with how many products each would remove, and why it waits. @param most counts products up to this */
export function heldRuns({ removals }: Store, runs: readonly Run[], most?: number) {
  return runs.map((run) => {
    const hold = holdOf(run);
    return { run: run.id, removals: removals.heldCount(run.id, most), reason: hold ? holdText(hold.why) : null };
  });
}

/** All products that a held run would remove. */
export function heldRemovalsJson({ removals }: Store, runId: number): Record<string, unknown>[] {
  return removals.held(runId).map(({ vbid, title }) => ({ vbid, title }));
}
