import { iso } from '../base/iso-time.ts';
import { type Evidence, holdOf, type Run } from '../catalog/run-types.ts';
import type { Store } from '../store/store.ts';

function evidenceJson({ numItems, lists, updatedShare, commonChange, changedSettings, inPart, ...rest }: Evidence) {
  const listed = lists.map(({ overlapLeast, ...list }) => ({ ...list, overlap_least: overlapLeast }));
  const part = inPart && { items: inPart.items, left_out: inPart.leftOut, shown: inPart.shown };
  const causes = { common_change: commonChange, changed_settings: changedSettings, in_part: part };
  return { ...rest, num_items: numItems, updated_share: updatedShare, lists: listed, ...causes };
}

/** A run with the names of the view `run_log`, and with the reasons of its proof and the evidence for it. */
export function runJson(run: Run) {
  const { from, sourceTime, startedAt, finishedAt, settlesAt, evidence, ...rest } = run;
  return {
    ...rest,
    evidence: evidence === null ? null : evidenceJson(evidence),
    from_time: iso(from),
    source_time: iso(sourceTime),
    started_at: iso(startedAt),
    finished_at: iso(finishedAt),
    settles_at: iso(settlesAt),
  };
}

/** Held runs, with how many products each would remove, and why it waits. @param most counts products up to this */
export function heldRuns({ removals }: Store, runs: readonly Run[], most?: number) {
  return runs.map((run) => {
    return { run: run.id, removals: removals.heldCount(run.id, most), reason: holdOf(run)?.why ?? null };
  });
}

/** All products that a held run would remove. */
export function heldRemovalsJson({ removals }: Store, runId: number): Record<string, unknown>[] {
  return removals.held(runId).map(({ vbid, title }) => ({ vbid, title }));
}
