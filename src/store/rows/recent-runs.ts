import type { ChangeOp, Run, RunKind } from '../../catalog/run-types.ts';
import type { Queries } from '../schema/queries.ts';

/** A run that has ended by itself. */
export type EndedRun = Pick<Run, 'id' | 'state' | 'proof' | 'error' | 'finishedAt'>;

/** A run that updated nearly every product, and the field that changed most often; see Evidence. */
export interface RestlessRun extends Pick<Run, 'id' | 'updated'> {
  readonly field: string | null;
}

/** So many of the newest runs are summed up at most. For safety: every minute of a day starts one. */
const MAX_SUMMED = 1_500;

/** What is read of runs every second or minute: few rows, and no evidence. */
export function createRecentRunReader({ row, rows, values }: Queries) {
  const ended = rows<[{ kind: RunKind | null; limit: number }], EndedRun>(
    `SELECT id, state, proof, error, finished_at AS finishedAt FROM runs
     WHERE state IN ('complete', 'held', 'failed') AND (:kind IS NULL OR kind = :kind) ORDER BY id DESC LIMIT :limit`,
  );
  const changes = row<[{ since: number }], Record<ChangeOp, number>>(
    `SELECT total(created) AS created, total(updated) AS updated, total(removed) AS removed, total(restored) AS restored
     FROM (SELECT * FROM runs ORDER BY id DESC LIMIT ${MAX_SUMMED}) WHERE finished_at > :since`,
  );
  const restless = row<[{ since: number }], RestlessRun>(
    `SELECT id, updated, evidence ->> '$.commonChange' AS field
     FROM (SELECT * FROM runs ORDER BY id DESC LIMIT ${MAX_SUMMED})
     WHERE finished_at > :since AND json_type(evidence, '$.commonChange') IS NOT NULL ORDER BY id DESC LIMIT 1`,
  );
  const held = rows<[number], { readonly id: number; readonly reasons: string }>(
    "SELECT id, reasons FROM runs WHERE state = 'held' ORDER BY id LIMIT ?",
  );

  return {
    /** The newest runs that have ended, newest first; those that were cancelled say nothing about the source. */
    ended: (kind: RunKind | null, limit: number) => ended({ kind, limit }),
    /** Changes by runs that have ended since; of the newest MAX_SUMMED runs. */
    changesSince: (since: number) => changes({ since }) as Record<ChangeOp, number>,
    /** The newest run that ended since and updated nearly every product; undefined if none did. */
    restless: (since: number) => restless({ since }),
    /** The first runs whose removals wait for a decision. */
    held: (limit: number): Pick<Run, 'id' | 'reasons'>[] =>
      held(limit).map(({ id, reasons }) => ({ id, reasons: JSON.parse(reasons) as string[] })),
    /** All runs whose removals wait for a decision, oldest first. */
    heldIds: values<[], number>("SELECT id FROM runs WHERE state = 'held' ORDER BY id"),
  };
}
