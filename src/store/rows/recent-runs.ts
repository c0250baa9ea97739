import { CHANGE_OPS, type ChangeOp, type Run, type RunKind } from '@catchword/catalog/run-types';
import type { Queries } from '../schema/queries.ts';

/** A run that has ended by itself. */
export type EndedRun = Pick<Run, 'id' | 'state' | 'proof' | 'error' | 'finishedAt'>;

/** A run that updated nearly every product, and the field that changed most often; see Evidence. */
export interface RestlessRun extends Pick<Run, 'id' | 'updated'> {
  readonly field: string | null;
}

/**
 * The runs that ended on a UTC day, which begins at `day`: sums (`grown`: by how many products the mirror grew), the longest
 * `full` and `delta` run, and the greatest age of the mirror before a run completed; milliseconds.
 */
export type RunDay = Readonly<
  Record<ChangeOp | 'day' | 'changes' | 'grown', number> & Record<'full' | 'delta' | 'age', number | null>
>;

/** So many of the newest runs are summed up at most. For safety: every minute of a day starts one. */
const MAX_SUMMED = 1_500;

/** What is read of runs every second or minute: few rows, and no evidence. */
export function createRecentRunReader({ number, row, rows, values }: Queries) {
  const newest = (states: string) =>
    rows<[{ kind: RunKind | null; limit: number }], EndedRun>(
      `SELECT id, state, proof, error, finished_at AS finishedAt FROM runs
       WHERE state IN (${states}) AND (:kind IS NULL OR kind = :kind) ORDER BY id DESC LIMIT :limit`,
    );
  const ended = newest("'complete', 'held', 'failed'");
  const read = newest("'complete', 'held'");
  const days = rows<[{ since: number; after: number; most: number }], RunDay>(
    `SELECT finished_at - finished_at % 86400000 AS day, total(created) AS created, total(updated) AS updated,
       total(removed) AS removed, total(restored) AS restored, total(created + updated + removed + restored) AS changes,
       total(created + restored - removed) AS grown, max(iif(isRead, finished_at - before, NULL)) AS age,
       max(iif(kind = 'full', tookMs, NULL)) AS full, max(iif(kind = 'delta', tookMs, NULL)) AS delta
     FROM (SELECT *, finished_at - started_at AS tookMs, lag(started_at) OVER (PARTITION BY isRead ORDER BY id) AS before
       FROM (SELECT id, kind, started_at, finished_at, ${CHANGE_OPS.join()}, state IN ('complete', 'held') AS isRead FROM runs
         WHERE id > :after ORDER BY id DESC LIMIT :most) WHERE finished_at > :since) GROUP BY 1 ORDER BY 1`,
  );

  return {
    /** The newest runs that have ended, newest first; those that were cancelled say nothing about the source. */
    ended: (kind: RunKind | null, limit: number) => ended({ kind, limit }),
    /** The newest runs that have read everything, newest first, however many have failed since. */
    read: (kind: RunKind | null, limit: number) => read({ kind, limit }),
    /** The days since on which a run with a number above `after` ended, of the newest `most` runs; the oldest first. */
    days: (since: number, after = 0, most = MAX_SUMMED) => days({ since, after, most }),
    /** The number of the run that filled the mirror first, or of a later one if that is not kept; 0: none has. */
    firstComplete: number<[]>("SELECT min(id) FROM runs WHERE state IN ('complete', 'held')"),
    /**
     * The newest run that ended since and updated nearly every product; undefined if none did. Not one that is unusual, that
     * follows changed settings, or that puts back the field of an unusual run, the last one before it that updated so many.
     */
    restless: row<[since: number], RestlessRun>(
      `SELECT id, updated, evidence ->> '$.commonChange' AS field
       FROM (SELECT *, lag(iif(unusual IS NULL, NULL, evidence ->> '$.commonChange')) OVER (ORDER BY id) AS undone
         FROM (SELECT * FROM runs ORDER BY id DESC LIMIT ${MAX_SUMMED})
         WHERE json_type(evidence, '$.commonChange') IS NOT NULL)
       WHERE finished_at > ? AND unusual IS NULL AND evidence ->> '$.changedSettings' IS NULL
         AND undone IS NOT evidence ->> '$.commonChange' ORDER BY id DESC LIMIT 1`,
    ),
    /** All runs whose removals wait for a decision, oldest first. */
    heldIds: values<[], number>("SELECT id FROM runs WHERE state = 'held' ORDER BY id"),
  };
}
