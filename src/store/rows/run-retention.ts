import type { RunCounts, RunKind } from '../../catalog/run-types.ts';
import type { Queries } from '../schema/queries.ts';

/** How large the mirror was when a run ended. */
export interface FileSize {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** In use: without free pages. */
  readonly bytes: number;
}

/** So many of the newest runs of each kind are always kept: more than anything looks at to judge the present. */
const KEPT_RUNS = 100;

export const COUNTS = [
  'pages',
  'items',
  'created',
  'updated',
  'removed',
  'restored',
  'missing',
  'rejected',
  'requests',
] as const satisfies readonly (keyof RunCounts)[];

/** Which runs may be deleted, and what is known of them afterwards. */
export function createKeptRunReader({ row, rows, values, number }: Queries) {
  const total = (name: keyof RunCounts): string =>
    `total(${name}) + coalesce((SELECT pruned_counts ->> '${name}' FROM mirror), 0) AS ${name}`;
  const newestOf = (kind: RunKind): string =>
    `SELECT id FROM (SELECT id FROM runs WHERE kind = '${kind}' ORDER BY id DESC LIMIT ${KEPT_RUNS})`;
  const sizes = rows<[{ spanMs: number }], FileSize>(
    `WITH sized AS (SELECT id, finished_at AS at, used_bytes AS bytes FROM runs WHERE used_bytes IS NOT NULL),
       newest AS (SELECT * FROM sized ORDER BY id DESC LIMIT 1)
     SELECT at, bytes FROM (SELECT sized.* FROM sized, newest WHERE sized.at >= newest.at - :spanMs ORDER BY sized.id LIMIT 1)
     UNION ALL SELECT at, bytes FROM newest`,
  );

  return {
    /** Runs that ended before, milliseconds since 1970, and that may be deleted unless a kept change names them. */
    old: values<[before: number], number>(
      `SELECT id FROM runs WHERE max(started_at, finished_at) < ? AND state <> 'held' AND unusual IS NULL
         AND id NOT IN (${newestOf('full')} UNION ALL ${newestOf('delta')})
         AND id NOT IN (SELECT max(id) FROM runs WHERE state = 'complete' GROUP BY kind)
         AND CAST(id AS TEXT) NOT IN (SELECT target FROM actions) ORDER BY id`,
    ),
    /** The number of the newest run, whether it is kept or not; 0 if there was none. */
    lastId: number("SELECT seq FROM sqlite_sequence WHERE name = 'runs'"),
    /** The sizes that the first and the last run of the newest `spanMs` noted; both are the same if only one did. */
    sizes: (spanMs: number): { readonly first: FileSize; readonly last: FileSize } | null => {
      const [first, last] = sizes({ spanMs });
      return first === undefined || last === undefined ? null : { first, last };
    },
    /** Sums over the runs that have ended, those that were deleted included. */
    totals: row<[], RunCounts>(
      `SELECT ${COUNTS.map(total).join(', ')} FROM runs WHERE finished_at IS NOT NULL`,
    ) as () => RunCounts,
  };
}
