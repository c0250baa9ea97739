import type { Evidence, Run } from '../catalog/run.ts';
import { iso } from '../iso-time.ts';

function evidenceJson({ numItems, lists, ...rest }: Evidence): Record<string, unknown> {
  const listed = lists.map(({ overlapLeast, ...list }) => ({ ...list, overlap_least: overlapLeast }));
  return { ...rest, num_items: numItems, lists: listed };
}

/** A run with the names and forms of the view `run_log`, the reasons of its proof and the evidence for it. */
export function runJson(run: Run): Record<string, unknown> {
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
