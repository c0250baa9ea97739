import type { RejectedItem, Window } from '@catchword/catalog/page-types';
import type { Doubt } from '@catchword/catalog/reasons';
import type {
  ChangeOp,
  Evidence,
  InPart,
  ListEvidence,
  Run,
  RunCounts,
  RunKind,
  RunState,
  Unusual,
} from '@catchword/catalog/run-types';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import { getTableColumns, sql } from '../schema/drizzle.ts';
import { inRange, onFirstUse, type Queries, type Range } from '../schema/queries.ts';
import { COUNTS, checkpoints, passes, runs } from '../schema/schema.ts';
import { decodeIds, decodeShown } from './ids.ts';

/** How large the mirror was when a run ended. */
export interface FileSize {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** In use: without free pages. */
  readonly bytes: number;
}

/** So many of the newest runs of each kind are always kept: more than anything looks at to judge the present. */
const KEPT_RUNS = 100;

/** Which runs may be deleted, and what is known of them afterwards. */
function createKeptRunReader({ row, rows, values, number }: Queries) {
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

/** One reading of a list, or of part of it, within a run. See schema.ts. */
export type Pass = Readonly<typeof passes.$inferSelect>;

export type PassKind = Pass['kind'];

/** A window that was applied. See schema.ts. */
export interface Checkpoint extends Readonly<Omit<typeof checkpoints.$inferSelect, 'ids'>> {
  /** Product ids in the order of the response; 0 for a rejected item. Digests as in ids.ts. */
  readonly ids: readonly number[];
}

export type RunFilter = { readonly [K in 'kind' | 'state' | 'proof']?: Run[K] | undefined };

/** The wait of a run that settles. */
export interface SettleWait {
  /** When it ends, for display; local clock. */
  readonly until: number;
  /** How much of it is left, counted by timers; milliseconds. */
  readonly leftMs: number;
}

/** A checkpoint as `after` reads it: only what a picture of the run needs. `rowid` grows with each. */
export type ReadWindow = Omit<Checkpoint, 'runId' | 'ids' | 'seq' | ChangeOp> & { readonly rowid: number };

type StoredWindow = Omit<ReadWindow, 'doubt'> & { readonly doubt: string | null };

function windowOf({ doubt, ...row }: StoredWindow): ReadWindow {
  return { ...row, doubt: doubt === null ? null : (JSON.parse(doubt) as Doubt) };
}

/** A rejected item; its body may be cut. */
export interface RejectedRow extends RejectedItem, Window {
  readonly id: number;
  readonly run: number;
  /** Of the whole body, in characters. */
  readonly length: number;
}

/** A run as it is stored: before it ends, it has only the seams that it has noted. */
type RunRow = Omit<Run, 'evidence'> & { readonly evidence: Run['evidence'] | Pick<Evidence, 'lists'> };

const { ids: _ids, ...checkpointColumns } = getTableColumns(checkpoints);
const {
  tick: _tick,
  selection: _selection,
  settleLeft: _left,
  usedBytes: _used,
  ...runColumns
} = getTableColumns(runs);

/** Which rejected items: of a run, and those whose reason contains a text. */
export interface RejectedFilter {
  readonly run?: number | undefined;
  readonly reason?: string | undefined;
}

/** Rejected items that are searched, of all runs. For safety: to read all of a month may take seconds. */
const SEARCHED = 50_000;
const REJECTED = `SELECT rowid AS id, run_id AS run, page, per_page AS perPage, position, reason, substr(body, 1, ?) AS body,
  length(body) AS length FROM rejected`;
/** More characters than any body has. */
const WHOLE = 2 ** 31;
const OF_PASS = 'FROM checkpoints WHERE run_id = ? AND pass = ?';
const OF_WINDOW = `${OF_PASS} AND page = ? AND per_page = ?`;
const only = sql.placeholder('only');
const LISTED = sql`id < ${sql.placeholder('before')} AND id > ${sql.placeholder('after')} AND kind = coalesce(${only} ->> 'kind', kind)
  AND state = coalesce(${only} ->> 'state', state) AND proof IS coalesce(${only} ->> 'proof', proof)`;
/** SQLite would not choose the index, and read every later run. */
const UNUSUAL = 'FROM runs INDEXED BY runs_unusual WHERE unusual IS NOT NULL';

/** SQL: the number of the newest unusual run; 0 if there is none. */
export const LAST_UNUSUAL = `coalesce((SELECT max(id) ${UNUSUAL}), 0)`;
type OfWindow = [runId: number, pass: number, page: number, perPage: number];

export type RunReader = ReturnType<typeof createRunReader>;

/** What runs have found about the form of deltas. */
function createDeltaFormReader({ values }: Queries) {
  const inPart = values<[since: number, to: number], string>(
    `SELECT evidence ->> '$.inPart' FROM runs WHERE id BETWEEN ? AND ? AND evidence ->> '$.inPart' IS NOT NULL ORDER BY id`,
  );
  const inParts = (since: number, to: number) => inPart(since, to).map((text) => JSON.parse(text) as InPart);
  return {
    /** What a run has found so far. */
    inPart: (id: number): InPart => inParts(id, id)[0] ?? { items: 0, leftOut: [], shown: [] },
    /** Members that deltas leave out, as runs have found, and no later one has found otherwise. */
    leftOut: (): ReadonlySet<string> => {
      const found = new Set<string>();
      for (const { leftOut, shown } of inParts(0, Number.MAX_SAFE_INTEGER)) {
        for (const name of shown) found.delete(name);
        for (const name of leftOut) found.add(name);
      }
      return found;
    },
  };
}

/** Reads items that runs could not use. */
function createRejectedReader({ rows }: Queries) {
  const among = (which: string) =>
    inRange((order) =>
      rows<[chars: number, Required<Range> & { limit: number; run: number; reason: string }], RejectedRow>(
        `${REJECTED} WHERE rowid < :before AND rowid > :after AND ${which}
           AND instr(lower(reason), lower(:reason)) > 0 ORDER BY rowid ${order} LIMIT :limit`,
      ),
    );
  const ofAll = among(`rowid > (SELECT max(rowid) FROM rejected) - ${SEARCHED}`);
  // A run has at most 1,000, which the key finds.
  const ofRun = among('run_id = :run');
  return {
    /** Items within a range that are so: of a run, or of the newest 50,000. @param chars of each body, at most */
    rejected: (limit: number, { run, reason = '', ...only }: Range & RejectedFilter = {}, chars = WHOLE) => {
      const { query, range } = (run === undefined ? ofAll : ofRun)(only);
      return query(chars, { ...range, limit, run: run ?? 0, reason });
    },
  };
}

export function createRunReader(queries: Queries, orm: BetterSQLite3Database) {
  const { number, row, rows, tuple, tuples, value } = queries;
  /** Sums over the run's checkpoints. `missing` is 0 here, and `removed` counts what the source itself withdrew. */
  const counts = row<[id: number], RunCounts>(
    `SELECT count(*) AS pages, total(items) AS items, total(created) AS created, total(updated) AS updated,
       total(removed) AS removed, total(restored) AS restored, 0 AS missing, total(rejected) AS rejected,
       total(requests) AS requests FROM checkpoints WHERE run_id = ?`,
  ) as (id: number) => RunCounts;
  const checkpointOf = value<OfWindow, number>(`SELECT 1 ${OF_WINDOW}`);
  const idsOf = value<OfWindow, Buffer>(`SELECT ids ${OF_WINDOW}`);
  const nextIds = tuple<[number, number], [rowid: number, ids: Buffer]>(
    'SELECT rowid, ids FROM checkpoints WHERE rowid > ? AND run_id = ? ORDER BY rowid LIMIT 1',
  );
  const readAfter = rows<[rowid: number, runId: number, limit: number], StoredWindow>(
    `SELECT rowid, pass, page, per_page AS perPage, num_items AS numItems, total_pages AS totalPages,
       requested_at AS requestedAt, items, rejected, requests, doubt
     FROM checkpoints WHERE rowid > ? AND run_id = ? ORDER BY rowid LIMIT ?`,
  );
  const runOfTick = value<[string], number>('SELECT id FROM runs WHERE tick = ?');
  const notedSeams = value<[number], string>("SELECT evidence ->> '$.lists' FROM runs WHERE id = ?");
  const unusualAfter = tuple<[number], [run: number, unusual: string]>(
    `SELECT id, unusual ${UNUSUAL} AND id > ? ORDER BY id LIMIT 1`,
  );
  const settleWait = row<[number], SettleWait>(
    `SELECT settles_at AS until, settle_left AS leftMs FROM runs
     WHERE id = ? AND settles_at IS NOT NULL AND settle_left IS NOT NULL`,
  );

  // Prepared once: drizzle takes longer to build these than SQLite to run them, and a run repeats them often.
  const selectRuns = (rest: ReturnType<typeof sql>) =>
    onFirstUse(() => orm.select(runColumns).from(runs).where(rest).prepare());
  const get = selectRuns(sql`id = ${sql.placeholder('id')}`);
  const list = inRange((order) =>
    selectRuns(sql`${LISTED} ORDER BY id ${sql.raw(order)} LIMIT ${sql.placeholder('limit')}`),
  );
  const unfinished = selectRuns(sql`state IN ('planned', 'reading') ORDER BY id DESC LIMIT 1`);
  const held = selectRuns(sql`state = 'held' ORDER BY id`);
  const ofRun = sql`run_id = ${sql.placeholder('run')} ORDER BY pass`;
  const passesOf = onFirstUse(() => orm.select().from(passes).where(ofRun).prepare());
  const ofPass = sql`run_id = ${sql.placeholder('run')} AND pass = ${sql.placeholder('pass')} ORDER BY rowid`;
  const checkpointsOf = onFirstUse(() => orm.select(checkpointColumns).from(checkpoints).where(ofPass).prepare());

  /** The row has the counts of a run that has ended; `missing` is not a sum over checkpoints. */
  function runOf({ evidence: noted, ...row }: RunRow): Run {
    const evidence = noted !== null && 'requests' in noted ? noted : null;
    return row.finishedAt === null
      ? { ...row, ...counts(row.id), missing: row.missing, evidence }
      : { ...row, evidence };
  }

  return {
    get: (id: number): Run | undefined => get().all({ id }).map(runOf)[0],
    /** Only the state: read once per batch, so without the sums that `get` adds. */
    state: value<[id: number], RunState>('SELECT state FROM runs WHERE id = ?'),
    /** Runs within a range that are so. */
    list: (limit: number, only: Range & RunFilter = {}): Run[] => {
      const { query, range } = list(only);
      return query()
        .all({ ...range, limit, only: JSON.stringify(only) })
        .map(runOf);
    },
    /** Which products the run reads (`selectionText`); null for a run that is not kept. */
    selectionOf: value<[id: number], string>('SELECT selection FROM runs WHERE id = ?'),
    unfinished: (): Run | undefined => unfinished().all().map(runOf)[0],
    /** The oldest unusual run with a higher number. It takes microseconds: the relay asks before each batch. */
    unusual: (afterRun: number): (Unusual & { readonly run: number }) | undefined => {
      const [run = 0, unusual] = unusualAfter(afterRun) ?? [];
      return unusual === undefined ? undefined : { run, ...(JSON.parse(unusual) as Unusual) };
    },
    /** Of how many products runs before this one, since a time and after the newest unusual run, emptied each field. */
    emptiedBefore: tuples<[runId: number, sinceMs: number], [field: string, products: number]>(
      `SELECT key, sum(value) FROM runs, json_each(emptied)
       WHERE runs.id < ? AND runs.id > ${LAST_UNUSUAL} AND started_at >= ? GROUP BY key`,
    ),
    /** The number of the newest unusual run; 0 if there is none. */
    lastUnusual: number<[]>(`SELECT ${LAST_UNUSUAL}`),
    hasTick: (tick: string) => runOfTick(tick) !== null,
    /** The wait as it was last noted; null while the run does not wait. */
    settleWait: (id: number) => settleWait(id) ?? null,
    /** Runs whose removals wait for a decision, oldest first. */
    held: (): Run[] => held().all().map(runOf),
    counts,
    /** Of each list: its seams as the run judged them last. None before it first judged them. */
    notedSeams: (id: number): readonly ListEvidence[] => JSON.parse(notedSeams(id) ?? '[]') as ListEvidence[],
    ...createDeltaFormReader(queries),
    ...createKeptRunReader(queries),
    /** Start of the pass's first request, milliseconds since 1970 of the machine that made it; null for none. */
    passStart: value<[runId: number, pass: number], number | null>(`SELECT min(requested_at) ${OF_PASS}`),
    passEnd: value<[runId: number, pass: number], number | null>(`SELECT max(requested_at) ${OF_PASS}`),
    /** The offset after the last product that readings of the list before this pass found; 0 if they found none. */
    heldUpTo: number<[runId: number, beforePass: number]>(
      `SELECT max((page - 1) * checkpoints.per_page + items) FROM checkpoints JOIN passes USING (run_id, pass)
       WHERE run_id = ? AND pass < ? AND kind = 'list' AND items > 0`,
    ),
    passes: (runId: number): Pass[] => passesOf().all({ run: runId }),

    hasCheckpoint: (runId: number, pass: number, { page, perPage }: Window) =>
      checkpointOf(runId, pass, page, perPage) !== null,
    /** In the order in which they were applied. Without ids, which may be many. */
    checkpoints: (runId: number, pass: number): Omit<Checkpoint, 'ids'>[] => checkpointsOf().all({ run: runId, pass }),
    idsOf: (runId: number, pass: number, { page, perPage }: Window): number[] =>
      decodeIds(idsOf(runId, pass, page, perPage) ?? new Uint8Array()),
    /** Digests of what the window shows of products, where the mirror does not hold the same content. */
    shownIn: (runId: number, pass: number, { page, perPage }: Window): ReadonlyMap<number, number> =>
      decodeShown(idsOf(runId, pass, page, perPage) ?? new Uint8Array()),
    /** The ids of each window in turn, so that memory does not grow with the catalog. */
    eachIds: function* (runId: number): Generator<readonly number[]> {
      for (let next = nextIds(0, runId); next !== undefined; next = nextIds(next[0], runId)) yield decodeIds(next[1]);
    },
    /** At most `limit` of the run's checkpoints after `rowid`, in the order in which they were written. */
    after: (runId: number, rowid: number, limit: number) => readAfter(rowid, runId, limit).map(windowOf),
    ...createRejectedReader(queries),
  };
}
