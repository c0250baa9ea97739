import type { Database } from 'better-sqlite3';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import type { RejectedItem, Window } from '../catalog/page.ts';
import type { Run, RunCounts, RunState } from '../catalog/run.ts';
import { and, desc, eq, getTableColumns, inArray, sql } from './drizzle.ts';
import { decodeIds } from './ids.ts';
import { checkpoints, passes, rejectedItems, runs } from './schema.ts';

/** One reading of a list, or of part of it, within a run. See schema.ts. */
export interface Pass extends Readonly<Omit<typeof passes.$inferSelect, 'fromTime'>> {
  readonly from: number | null;
}

export type PassKind = Pass['kind'];

/** A window that was applied. See schema.ts. */
export interface Checkpoint extends Readonly<Omit<typeof checkpoints.$inferSelect, 'ids'>> {
  /** Product ids in the order of the response; 0 for a rejected item. */
  readonly ids: readonly number[];
}

/** The wait of a run that settles. */
export interface SettleWait {
  /** When it ends, for display; local clock. */
  readonly until: number;
  /** How much of it is left, counted by timers; milliseconds. */
  readonly leftMs: number;
}

export interface RunReader {
  get(id: number): Run | undefined;
  /** Only the state: read once per batch, so without the sums that `get` adds. */
  state(id: number): RunState | undefined;
  /** The newest runs first. */
  list(limit: number): Run[];
  /** Which products the run reads (`selectionText`); null if unknown. */
  selectionOf(id: number): string | null;
  unfinished(): Run | undefined;
  hasTick(tick: string): boolean;
  /** The wait as it was last noted; null while the run does not wait. */
  settleWait(id: number): SettleWait | null;
  /** Runs whose removals wait for a decision, oldest first. */
  held(): Run[];
  /** Sums over all runs. */
  totals(): RunCounts;
  /** Sums over the run's checkpoints. `missing` is 0 here, and `removed` counts what the source itself withdrew. */
  counts(id: number): RunCounts;

  /** Start of the pass's first request, milliseconds since 1970 of the machine that made it; null for none. */
  passStart(runId: number, pass: number): number | null;
  /** Start of the pass's last request, as `passStart`. */
  passEnd(runId: number, pass: number): number | null;
  passes(runId: number): Pass[];

  hasCheckpoint(runId: number, pass: number, window: Window): boolean;
  /** Without ids, which may be many. */
  checkpoints(runId: number, pass: number): Omit<Checkpoint, 'ids'>[];
  /** Ids of one window. */
  idsOf(runId: number, pass: number, window: Window): number[];
  /** The ids of each window in turn, so that memory does not grow with the catalog. */
  eachIds(runId: number): Iterable<readonly number[]>;
  /** Ids of the pass's windows whose request started after `requestedAt`. */
  idsReadAfter(runId: number, pass: number, requestedAt: number): Iterable<readonly number[]>;
  /** The first rejected items of a run, in order. */
  rejected(runId: number, limit: number): (RejectedItem & Window)[];
}

const { ids: _ids, ...withoutIds } = getTableColumns(checkpoints);

const COUNTS = [
  'pages',
  'items',
  'created',
  'updated',
  'removed',
  'restored',
  'missing',
  'rejected',
  'requests',
] as const;

const UNFINISHED: RunState[] = ['planned', 'reading'];

type RunRow = typeof runs.$inferSelect;

function runOf(
  { fromTime, tick: _tick, selection: _selection, settleLeft: _left, ...row }: RunRow,
  counts?: RunCounts,
): Run {
  // `missing` is not a sum over checkpoints.
  return { ...row, from: fromTime, ...counts, missing: row.missing };
}

export function createRunReader(sqlite: Database, orm: BetterSQLite3Database): RunReader {
  const hasCheckpoint = sqlite
    .prepare<[number, number, number, number], number>(
      'SELECT 1 FROM checkpoints WHERE run_id = ? AND pass = ? AND page = ? AND per_page = ?',
    )
    .pluck();
  const sums = sqlite.prepare<[number], RunCounts>(
    `SELECT count(*) AS pages, coalesce(sum(items), 0) AS items, coalesce(sum(created), 0) AS created,
       coalesce(sum(updated), 0) AS updated, coalesce(sum(removed), 0) AS removed, coalesce(sum(restored), 0) AS restored, 0 AS missing,
       coalesce(sum(rejected), 0) AS rejected, coalesce(sum(requests), 0) AS requests
     FROM checkpoints WHERE run_id = ?`,
  );
  const totals = sqlite.prepare<[], RunCounts>(
    `SELECT ${COUNTS.map((name) => `coalesce(sum(${name}), 0) AS ${name}`).join(', ')} FROM runs`,
  );
  const idsOf = sqlite
    .prepare<[number, number, number, number], Buffer>(
      'SELECT ids FROM checkpoints WHERE run_id = ? AND pass = ? AND page = ? AND per_page = ?',
    )
    .pluck();
  const nextIds = sqlite
    .prepare<[number, number], [number, Buffer]>(
      'SELECT rowid, ids FROM checkpoints WHERE rowid > ? AND run_id = ? ORDER BY rowid LIMIT 1',
    )
    .raw();
  const passStart = sqlite
    .prepare<[number, number], number | null>('SELECT min(requested_at) FROM checkpoints WHERE run_id = ? AND pass = ?')
    .pluck();
  const passEnd = sqlite
    .prepare<[number, number], number | null>('SELECT max(requested_at) FROM checkpoints WHERE run_id = ? AND pass = ?')
    .pluck();
  const state = sqlite.prepare<[number], RunState>('SELECT state FROM runs WHERE id = ?').pluck();
  const later = sqlite
    .prepare<[number, number, number], Buffer>(
      'SELECT ids FROM checkpoints WHERE run_id = ? AND pass = ? AND requested_at > ?',
    )
    .pluck();

  // Prepared once: drizzle takes longer to build these than SQLite to run them, and a run repeats them often.
  const placeholder = { id: sql.placeholder('id'), run: sql.placeholder('run'), pass: sql.placeholder('pass') };
  const get = orm.select().from(runs).where(eq(runs.id, placeholder.id)).prepare();
  const unfinished = orm
    .select()
    .from(runs)
    .where(inArray(runs.state, UNFINISHED))
    .orderBy(desc(runs.id))
    .limit(1)
    .prepare();
  const passesOf = orm.select().from(passes).where(eq(passes.runId, placeholder.run)).orderBy(passes.pass).prepare();
  const checkpointsOf = orm
    .select(withoutIds)
    .from(checkpoints)
    .where(and(eq(checkpoints.runId, placeholder.run), eq(checkpoints.pass, placeholder.pass)))
    .prepare();

  function counts(id: number): RunCounts {
    return sums.get(id) as RunCounts;
  }

  function whole(row: RunRow): Run {
    return row.finishedAt === null ? runOf(row, counts(row.id)) : runOf(row);
  }

  /** Reads row by row instead of with an iterator of better-sqlite3: see statements.ts. */
  function* eachIds(runId: number): Iterable<readonly number[]> {
    for (let row = nextIds.get(0, runId); row !== undefined; row = nextIds.get(row[0], runId)) yield decodeIds(row[1]);
  }

  return {
    get: (id) => {
      const row = get.get({ id });
      return row === undefined ? undefined : whole(row);
    },
    state: (id) => state.get(id),
    selectionOf: (id) =>
      orm.select({ selection: runs.selection }).from(runs).where(eq(runs.id, id)).get()?.selection ?? null,
    list: (limit) => orm.select().from(runs).orderBy(desc(runs.id)).limit(limit).all().map(whole),
    unfinished: () => {
      const row = unfinished.get();
      return row === undefined ? undefined : whole(row);
    },
    hasTick: (tick) => orm.select({ id: runs.id }).from(runs).where(eq(runs.tick, tick)).get() !== undefined,
    held: () =>
      orm
        .select()
        .from(runs)
        .where(eq(runs.state, 'held'))
        .orderBy(runs.id)
        .all()
        .map((row) => runOf(row)),
    settleWait: (id) => {
      const { until = null, leftMs = null } =
        orm.select({ until: runs.settlesAt, leftMs: runs.settleLeft }).from(runs).where(eq(runs.id, id)).get() ?? {};
      return until === null || leftMs === null ? null : { until, leftMs };
    },
    counts,
    totals: () => {
      const ended = totals.get() as RunCounts;
      const row = unfinished.get();
      if (row === undefined) return ended;
      // The row of an unfinished run has no counts yet.
      const running = counts(row.id);
      return Object.fromEntries(COUNTS.map((name) => [name, ended[name] + running[name]])) as unknown as RunCounts;
    },

    passStart: (runId, pass) => passStart.get(runId, pass) ?? null,
    passEnd: (runId, pass) => passEnd.get(runId, pass) ?? null,
    passes: (runId) => passesOf.all({ run: runId }).map(({ fromTime, ...row }) => ({ ...row, from: fromTime })),

    hasCheckpoint: (runId, pass, { page, perPage }) => hasCheckpoint.get(runId, pass, page, perPage) !== undefined,
    checkpoints: (runId, pass) => checkpointsOf.all({ run: runId, pass }),
    idsOf: (runId, pass, { page, perPage }) => {
      const ids = idsOf.get(runId, pass, page, perPage);
      return ids === undefined ? [] : decodeIds(ids);
    },
    eachIds,
    idsReadAfter: (runId, pass, requestedAt) => later.all(runId, pass, requestedAt).map(decodeIds),
    rejected: (runId, limit) =>
      orm
        .select()
        .from(rejectedItems)
        .where(eq(rejectedItems.runId, runId))
        .orderBy(rejectedItems.pass, rejectedItems.page, rejectedItems.position)
        .limit(limit)
        .all()
        .map(({ page, perPage, position, reason, body }) => ({ page, perPage, position, reason, body })),
  };
}
