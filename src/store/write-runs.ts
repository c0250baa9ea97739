import type { Database } from 'better-sqlite3';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import type { RejectedItem, Window } from '../catalog/page.ts';
import type { Evidence, Proof, RunCounts, RunKind, RunState } from '../catalog/run.ts';
import { and, eq, inArray, lt, sql } from './drizzle.ts';
import { encodeIds } from './ids.ts';
import type { Checkpoint, Pass, RunReader, SettleWait } from './runs.ts';
import { checkpoints, passes, rejectedItems, runs } from './schema.ts';

export interface NewRun {
  readonly kind: RunKind;
  readonly from: number | null;
  readonly startedAt: number;
  readonly tick: string | null;
  readonly selection?: string;
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

/** How an operator's decision changes a run that has ended. */
export interface Decision {
  readonly state: RunState;
  readonly removed?: number;
  readonly restored?: number;
  readonly missing?: number;
  readonly error?: string;
}

export interface RunWriter extends RunReader {
  /** @returns the run's id */
  create(run: NewRun): number;
  /** Pins the run's source time, when its first page arrives. A later page may only move it back. */
  pinRun(id: number, sourceTime: number): void;
  /**
   * Notes that the run waits before it settles; null: it does not wait.
   * @param missing products that it has not seen so far
   */
  settle(id: number, wait: SettleWait | null, missing: number): void;
  end(id: number, end: RunEnd): void;
  /** Changes a run that has ended. */
  decide(id: number, decision: Decision): void;

  addPass(pass: Pass): void;
  /** Pins the pass's source time, when its first response arrives. A later response may only move it back. */
  pinPass(runId: number, pass: number, sourceTime: number, numItems: number): void;
  /**
   * Notes that the source answers pages of this size, whatever size is requested: the pass continues in plain pages.
   */
  ignoreSize(runId: number, pass: number, perPage: number): void;

  /** Restarts the run's settling wait, which is counted from its last window. */
  addCheckpoint(checkpoint: Checkpoint): void;
  addRejected(runId: number, pass: number, window: Window, items: readonly RejectedItem[]): void;
  /** Drops checkpoints of runs before `runId`, and rejected items of runs that started before `rejectedBefore`. */
  prune(runId: number, rejectedBefore: number): void;
}

function isPass(runId: number, pass: number) {
  return and(eq(passes.runId, runId), eq(passes.pass, pass));
}

export function createRunWriter(sqlite: Database, orm: BetterSQLite3Database, reader: RunReader): RunWriter {
  const addCheckpoint = sqlite.prepare(
    `INSERT INTO checkpoints (run_id, pass, page, per_page, num_items, total_pages, requested_at, items, created, updated,
       removed, restored, rejected, requests, ids, doubt, seq)
     VALUES (:runId, :pass, :page, :perPage, :numItems, :totalPages, :requestedAt, :items, :created, :updated,
       :removed, :restored, :rejected, :requests, :ids, :doubt, :seq)`,
  );
  const endWait = sqlite.prepare(
    'UPDATE runs SET settles_at = NULL, settle_left = NULL WHERE id = ? AND settles_at IS NOT NULL',
  );

  return {
    ...reader,
    create: ({ kind, from, startedAt, tick, selection }) =>
      orm
        .insert(runs)
        .values({ kind, state: 'planned', fromTime: from, startedAt, tick, selection: selection ?? null })
        .returning()
        .get().id,
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
        .where(isPass(runId, pass))
        .run();
    },
    ignoreSize: (runId, pass, perPage) => {
      orm.update(passes).set({ perPage, seam: 0, sizeIgnored: true }).where(isPass(runId, pass)).run();
    },
    addCheckpoint: (checkpoint) => {
      addCheckpoint.run({ ...checkpoint, ids: encodeIds(checkpoint.ids) });
      endWait.run(checkpoint.runId);
    },
    addRejected: (runId, pass, { page, perPage }, items) => {
      for (const item of items) {
        orm
          .insert(rejectedItems)
          .values({ runId, pass, page, perPage, ...item })
          .run();
      }
    },
    prune: (runId, rejectedBefore) => {
      orm.delete(checkpoints).where(lt(checkpoints.runId, runId)).run();
      const old = orm.select({ id: runs.id }).from(runs).where(lt(runs.startedAt, rejectedBefore));
      orm.delete(rejectedItems).where(inArray(rejectedItems.runId, old)).run();
    },
  };
}
