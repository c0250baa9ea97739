import type { RejectedItem, Window } from '@catchword/catalog/page-types';
import type { Evidence, InPart, ListEvidence, Run, RunCounts, Unusual } from '@catchword/catalog/run-types';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import type { Clocks } from '../../proof/watermark.ts';
import { eq } from '../schema/drizzle.ts';
import type { Queries } from '../schema/queries.ts';
import { COUNTS, passes, runs } from '../schema/schema.ts';
import { encodeIds } from './ids.ts';
import type { Checkpoint, Pass, RunReader, SettleWait } from './runs.ts';

export interface NewRun extends Pick<Run, 'kind' | 'from' | 'startedAt'> {
  readonly tick: string | null;
  readonly selection: string;
}

export interface RunEnd extends Pick<Run, 'state' | 'finishedAt' | 'proof' | 'reasons' | 'error'> {
  readonly counts: RunCounts;
  readonly evidence?: Evidence;
}

export type RunWriter = ReturnType<typeof createRunWriter>;

export function createRunWriter({ number, write }: Queries, orm: BetterSQLite3Database, reader: RunReader) {
  const create = number<[NewRun]>(
    `INSERT INTO runs (kind, state, from_time, started_at, tick, selection)
     VALUES (:kind, 'planned', :from, :startedAt, :tick, :selection) RETURNING id`,
  );
  const resize = write(
    'UPDATE passes SET per_page = :perPage, seam = iif(:isFixed, 0, seam), size_ignored = :isFixed WHERE run_id = :runId AND pass = :pass',
  );
  const addCheckpoint = write(
    `INSERT INTO checkpoints (run_id, pass, page, per_page, num_items, total_pages, requested_at, items, created, updated,
       removed, restored, rejected, requests, ids, doubt, seq)
     VALUES (:runId, :pass, :page, :perPage, :numItems, :totalPages, :requestedAt, :items, :created, :updated,
       :removed, :restored, :rejected, :requests, :ids, :doubt, :seq)`,
  );
  const noteEvidence = write(`UPDATE runs SET evidence = json_patch(coalesce(evidence, '{}'), :noted) WHERE id = :id`);
  const endWait = write(
    'UPDATE runs SET settles_at = NULL, settle_left = NULL WHERE id = ? AND settles_at IS NOT NULL',
  );
  const addRejected = write(
    `INSERT INTO rejected (run_id, pass, page, per_page, position, reason, body)
     VALUES (:runId, :pass, :page, :perPage, :position, :reason, :body)`,
  );
  const listed = 'IN (SELECT value FROM json_each(?))';
  const countPruned = write<[ids: string]>(
    `UPDATE mirror SET pruned_counts = (SELECT json_object(${COUNTS.map(
      (name) => `'${name}', coalesce(mirror.pruned_counts ->> '${name}', 0) + total(${name})`,
    ).join(', ')}) FROM runs WHERE id ${listed}) WHERE id = 1`,
  );
  const dropParts = ['passes', 'checkpoints', 'rejected'].map((table) =>
    write<[ids: string]>(`DELETE FROM ${table} WHERE run_id ${listed}`),
  );
  const dropRuns = write<[ids: string]>(`DELETE FROM runs WHERE id ${listed}`);

  function update(id: number, values: Partial<typeof runs.$inferInsert>): void {
    orm.update(runs).set(values).where(eq(runs.id, id)).run();
  }

  return {
    ...reader,
    create,
    /** Notes that a page has arrived, and the clocks at the earliest one. */
    setReading: write<[{ id: number } & Clocks]>(
      `UPDATE runs SET state = 'reading', source_time = :source, answered_at = :local WHERE id = :id`,
    ),
    /** Notes that the run waits before it settles; null: it does not. @param missing products that it has not seen so far */
    settle: (id: number, wait: SettleWait | null, missing: number) =>
      update(id, { settlesAt: wait?.until ?? null, settleLeft: wait?.leftMs ?? null, missing }),
    end: (id: number, { counts, ...end }: RunEnd) =>
      update(id, { ...end, ...counts, settlesAt: null, settleLeft: null }),
    /** Notes how the lists that the run has read are joined. They stay if it fails; `end` replaces them otherwise. */
    noteSeams: (id: number, lists: readonly ListEvidence[]) => noteEvidence({ id, noted: JSON.stringify({ lists }) }),
    noteInPart: (id: number, inPart: InPart) => noteEvidence({ id, noted: JSON.stringify({ inPart }) }),
    /** Notes of how many products the run emptied each field, and what of that is unusual. */
    noteLosses: (id: number, emptied: Readonly<Record<string, number>>, unusual: Unusual | null) =>
      update(id, { emptied, unusual }),
    /** Changes a run that has ended. */
    amend: (
      id: number,
      change: Partial<Pick<Run, 'state' | 'reasons' | 'removed' | 'restored' | 'missing' | 'error'>>,
    ) => update(id, change),
    addPass: (pass: Pass): void => {
      orm.insert(passes).values(pass).run();
    },
    /** Notes the total of the pass's first response, and the source time of the earliest one. */
    noteResponse: write<[{ runId: number; pass: number; sourceTime: number; numItems: number }]>(
      `UPDATE passes SET num_items = coalesce(num_items, :numItems),
         source_time = min(coalesce(source_time, :sourceTime), :sourceTime) WHERE run_id = :runId AND pass = :pass`,
    ),
    /** Changes the page size of a pass. @param isFixed the source answers it whatever is requested: plain pages follow */
    resize: (runId: number, pass: number, perPage: number, isFixed: boolean) =>
      resize({ runId, pass, perPage, isFixed: Number(isFixed) }),
    /** Restarts the run's settling wait, which is counted from its last window. */
    addCheckpoint: (checkpoint: Checkpoint): void => {
      const doubt = checkpoint.doubt && JSON.stringify(checkpoint.doubt);
      addCheckpoint({ ...checkpoint, doubt, ids: encodeIds(checkpoint.ids) });
      endWait(checkpoint.runId);
    },
    addRejected: (runId: number, pass: number, window: Window, items: readonly RejectedItem[]): void => {
      for (const item of items) addRejected({ runId, pass, page: window.page, perPage: window.perPage, ...item });
    },
    /** Notes how much of the file is in use, with what this transaction has written. */
    noteSize: write<[runId: number]>(
      `UPDATE runs SET used_bytes = (SELECT (page_count - freelist_count) * page_size
         FROM pragma_page_count, pragma_freelist_count, pragma_page_size) WHERE id = ?`,
    ),
    dropCheckpoints: write<[beforeRun: number]>('DELETE FROM checkpoints WHERE run_id < ?'),
    /** Drops at most `limit` rejected items of runs that started before. @returns how many */
    dropRejected: write<[startedBefore: number, limit: number]>(
      `DELETE FROM rejected WHERE rowid IN
         (SELECT rejected.rowid FROM runs JOIN rejected ON rejected.run_id = runs.id WHERE runs.started_at < ? LIMIT ?)`,
    ),
    /** Deletes runs with all that is noted of them. `totals` still counts them. */
    drop: (ids: readonly number[]): void => {
      const list = JSON.stringify(ids);
      countPruned(list);
      for (const dropPart of dropParts) dropPart(list);
      dropRuns(list);
    },
  };
}
