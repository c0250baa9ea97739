import type { Database } from 'better-sqlite3';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import type { RejectedItem, Window } from '../catalog/page.ts';
import type { Evidence, Proof, Run, RunCounts, RunKind, RunState } from '../catalog/run.ts';
import { and, desc, eq, getTableColumns, inArray, lt, sql } from './drizzle.ts';
import { decodeIds, encodeIds } from './ids.ts';
import { checkpoints, passes, rejectedItems, runs } from './schema.ts';

export type PassKind = 'list' | 'delta' | 'catchup' | 'repair' | 'lookup' | 'settle';

/** One reading of a list, or of a part of it, within a run. See schema.ts. */
export interface Pass {
  readonly runId: number;
  readonly pass: number;
  readonly kind: PassKind;
  readonly root: number;
  readonly from: number | null;
  readonly sourceTime: number | null;
  readonly numItems: number | null;
  readonly perPage: number;
  readonly seam: number;
  readonly sizeIgnored: boolean;
  readonly reversed: boolean;
}

/** A window that was applied. */
export interface Checkpoint extends Window {
  readonly runId: number;
  readonly pass: number;
  readonly numItems: number;
  readonly totalPages: number;
  readonly requestedAt: number;
  readonly items: number;
  readonly created: number;
  readonly updated: number;
  readonly removed: number;
  readonly restored: number;
  readonly rejected: number;
  readonly requests: number;
  readonly doubt: string | null;
  /** The newest change right after the window was applied. */
  readonly seq: number;
  /** Product ids in the order of the response; 0 for a rejected item. */
  readonly ids: readonly number[];
}

/** The wait of a run that settles. */
export interface SettleWait {
  /** When it ends, for display; local clock. */
  readonly until: number;
  /** What is left of it, counted by timers; milliseconds. */
  readonly leftMs: number;
}

export interface RunEnd {
  readonly state: RunState;
  readonly finishedAt: number;
  readonly counts: RunCounts;
  readonly proof: Proof | null;
  readonly reasons: readonly string[];
  readonly error: string | null;
  readonly evidence?: Evidence;
}

/** What is decided about a run that has ended. */
export interface Decision {
  readonly state: RunState;
  readonly removed?: number;
  readonly restored?: number;
  readonly missing?: number;
  readonly error?: string;
}

export interface RunStore {
  create(run: {
    kind: RunKind;
    from: number | null;
    startedAt: number;
    tick: string | null;
    selection?: string;
  }): number;
  get(id: number): Run | undefined;
  /** Only the state: read once a page, so without the sums that `get` adds. */
  state(id: number): RunState | undefined;
  list(limit: number): Run[];
  /** What selects the products that the run reads (`selectionText`); null where it is not known. */
  selectionOf(id: number): string | null;
  unfinished(): Run | undefined;
  hasTick(tick: string): boolean;
  setState(id: number, state: RunState): void;
  /** The first page is there: pins the run's source time. A later page may only show that it was earlier. */
  pinRun(id: number, sourceTime: number): void;
  /**
   * Notes that the run waits before it settles; null: it does not.
   * @param missing products that it has not seen so far
   */
  settle(id: number, wait: SettleWait | null, missing: number): void;
  /** What the run waits for, as it was noted last; null while it does not wait. */
  settleWait(id: number): SettleWait | null;
  end(id: number, end: RunEnd): void;
  /** Changes a run that has ended: an operator decided. */
  decide(id: number, decision: Decision): void;
  /** Runs whose removals wait for a decision, oldest first. */
  held(): Run[];
  /** Sums over the run's checkpoints. `missing` is 0 there, and `removed` is what the source itself said. */
  counts(id: number): RunCounts;

  addPass(pass: Pass): void;
  /** The pass's first response is there. A later one may only show that the source time was earlier. */
  pinPass(runId: number, pass: number, sourceTime: number, numItems: number): void;
  /** Start of the pass's first request, milliseconds since 1970 of the machine that made it; null for none. */
  passStart(runId: number, pass: number): number | null;
  /** Start of the pass's last request, as `passStart`. */
  passEnd(runId: number, pass: number): number | null;
  /** The source answers pages of this size, whatever it is asked for: the pass goes on in plain pages. */
  ignoreSize(runId: number, pass: number, perPage: number): void;
  passes(runId: number): Pass[];

  hasCheckpoint(runId: number, pass: number, window: Window): boolean;
  /** A wait that the run was in begins again: it is counted from the last window. */
  addCheckpoint(checkpoint: Checkpoint): void;
  /** Without ids, which may be many. */
  checkpoints(runId: number, pass: number): Omit<Checkpoint, 'ids'>[];
  /** Ids of one window. */
  idsOf(runId: number, pass: number, window: Window): number[];
  /** Ids of one window after another, so that memory does not grow with the catalog. */
  eachIds(runId: number): Iterable<readonly number[]>;
  /** Ids of the pass's windows whose request started after `requestedAt`. */
  idsReadAfter(runId: number, pass: number, requestedAt: number): Iterable<readonly number[]>;
  addRejected(runId: number, pass: number, window: Window, items: readonly RejectedItem[]): void;
  /** The first rejected items of a run, in order. */
  rejected(runId: number, limit: number): (RejectedItem & Window)[];
  /** Drops checkpoints of runs before `runId`, and rejected items of runs that started before `rejectedBefore`. */
  prune(runId: number, rejectedBefore: number): void;
}

const { ids: _ids, ...withoutIds } = getTableColumns(checkpoints);

const UNFINISHED: RunState[] = ['planned', 'reading', 'finishing'];

type RunRow = typeof runs.$inferSelect;

function runOf(
  { fromTime, tick: _tick, selection: _selection, settleLeft: _left, ...row }: RunRow,
  counts?: RunCounts,
): Run {
  // What a run has not seen is not a sum of its checkpoints.
  return { ...row, from: fromTime, ...counts, missing: row.missing };
}

export function createRunStore(sqlite: Database, orm: BetterSQLite3Database): RunStore {
  const hasCheckpoint = sqlite
    .prepare<[number, number, number, number], number>(
      'SELECT 1 FROM checkpoints WHERE run_id = ? AND pass = ? AND page = ? AND per_page = ?',
    )
    .pluck();
  const addCheckpoint = sqlite.prepare(
    `INSERT INTO checkpoints (run_id, pass, page, per_page, num_items, total_pages, requested_at, items, created,
       updated, removed, restored, rejected, requests, ids, doubt, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const sums = sqlite.prepare<[number], RunCounts>(
    `SELECT count(*) AS pages, coalesce(sum(items), 0) AS items, coalesce(sum(created), 0) AS created,
       coalesce(sum(updated), 0) AS updated, coalesce(sum(removed), 0) AS removed, coalesce(sum(restored), 0) AS restored, 0 AS missing,
       coalesce(sum(rejected), 0) AS rejected, coalesce(sum(requests), 0) AS requests
     FROM checkpoints WHERE run_id = ?`,
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
  const endWait = sqlite.prepare(
    'UPDATE runs SET settles_at = NULL, settle_left = NULL WHERE id = ? AND settles_at IS NOT NULL',
  );
  const state = sqlite.prepare<[number], RunState>('SELECT state FROM runs WHERE id = ?').pluck();
  const later = sqlite
    .prepare<[number, number, number], Buffer>(
      'SELECT ids FROM checkpoints WHERE run_id = ? AND pass = ? AND requested_at > ?',
    )
    .pluck();

  // Drizzle takes longer to build these than SQLite to run them, and a run asks again and again.
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

  /** Row by row, not by an iterator of better-sqlite3: see statements.ts. */
  function* eachIds(runId: number): Iterable<readonly number[]> {
    for (let row = nextIds.get(0, runId); row !== undefined; row = nextIds.get(row[0], runId)) yield decodeIds(row[1]);
  }

  return {
    create: ({ kind, from, startedAt, tick, selection }) =>
      orm
        .insert(runs)
        .values({ kind, state: 'planned', fromTime: from, startedAt, tick, selection: selection ?? null })
        .returning()
        .get().id,
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
    setState: (id, state) => {
      orm.update(runs).set({ state }).where(eq(runs.id, id)).run();
    },
    pinRun: (id, sourceTime) => {
      const earliest = sql<number>`min(coalesce(${runs.sourceTime}, ${sourceTime}), ${sourceTime})`;
      orm.update(runs).set({ sourceTime: earliest, state: 'reading' }).where(eq(runs.id, id)).run();
    },
    decide: (id, { state: decided, ...rest }) => {
      orm
        .update(runs)
        .set({ ...rest, state: decided })
        .where(eq(runs.id, id))
        .run();
    },
    held: () =>
      orm
        .select()
        .from(runs)
        .where(eq(runs.state, 'held'))
        .orderBy(runs.id)
        .all()
        .map((row) => runOf(row)),
    end: (id, { counts: final, reasons, ...end }) => {
      orm
        .update(runs)
        .set({ ...end, ...final, reasons: [...reasons], settlesAt: null, settleLeft: null })
        .where(eq(runs.id, id))
        .run();
    },
    settle: (id, wait, missing) => {
      const settles = { settlesAt: wait?.until ?? null, settleLeft: wait?.leftMs ?? null, missing };
      orm.update(runs).set(settles).where(eq(runs.id, id)).run();
    },
    settleWait: (id) => {
      const { until = null, leftMs = null } =
        orm.select({ until: runs.settlesAt, leftMs: runs.settleLeft }).from(runs).where(eq(runs.id, id)).get() ?? {};
      return until === null || leftMs === null ? null : { until, leftMs };
    },
    counts,

    addPass: ({ from, ...pass }) => {
      orm
        .insert(passes)
        .values({ ...pass, fromTime: from })
        .run();
    },
    pinPass: (runId, pass, sourceTime, numItems) => {
      orm
        .update(passes)
        .set({
          numItems: sql`coalesce(${passes.numItems}, ${numItems})`,
          sourceTime: sql`min(coalesce(${passes.sourceTime}, ${sourceTime}), ${sourceTime})`,
        })
        .where(and(eq(passes.runId, runId), eq(passes.pass, pass)))
        .run();
    },
    passStart: (runId, pass) => passStart.get(runId, pass) ?? null,
    passEnd: (runId, pass) => passEnd.get(runId, pass) ?? null,
    ignoreSize: (runId, pass, perPage) => {
      orm
        .update(passes)
        .set({ perPage, seam: 0, sizeIgnored: true })
        .where(and(eq(passes.runId, runId), eq(passes.pass, pass)))
        .run();
    },
    passes: (runId) => passesOf.all({ run: runId }).map(({ fromTime, ...row }) => ({ ...row, from: fromTime })),

    hasCheckpoint: (runId, pass, { page, perPage }) => hasCheckpoint.get(runId, pass, page, perPage) !== undefined,
    addCheckpoint: (c) => {
      addCheckpoint.run(
        c.runId,
        c.pass,
        c.page,
        c.perPage,
        c.numItems,
        c.totalPages,
        c.requestedAt,
        c.items,
        c.created,
        c.updated,
        c.removed,
        c.restored,
        c.rejected,
        c.requests,
        encodeIds(c.ids),
        c.doubt,
        c.seq,
      );
      endWait.run(c.runId);
    },
    checkpoints: (runId, pass) => checkpointsOf.all({ run: runId, pass }),
    idsOf: (runId, pass, { page, perPage }) => {
      const ids = idsOf.get(runId, pass, page, perPage);
      return ids === undefined ? [] : decodeIds(ids);
    },
    eachIds,
    idsReadAfter: (runId, pass, requestedAt) => later.all(runId, pass, requestedAt).map(decodeIds),
    addRejected: (runId, pass, { page, perPage }, items) => {
      for (const item of items) {
        orm
          .insert(rejectedItems)
          .values({ runId, pass, page, perPage, ...item })
          .run();
      }
    },
    rejected: (runId, limit) =>
      orm
        .select()
        .from(rejectedItems)
        .where(eq(rejectedItems.runId, runId))
        .orderBy(rejectedItems.pass, rejectedItems.page, rejectedItems.position)
        .limit(limit)
        .all()
        .map(({ page, perPage, position, reason, body }) => ({ page, perPage, position, reason, body })),
    prune: (runId, rejectedBefore) => {
      orm.delete(checkpoints).where(lt(checkpoints.runId, runId)).run();
      const old = orm.select({ id: runs.id }).from(runs).where(lt(runs.startedAt, rejectedBefore));
      orm.delete(rejectedItems).where(inArray(rejectedItems.runId, old)).run();
    },
  };
}
