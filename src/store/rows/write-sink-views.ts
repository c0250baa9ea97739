import { randomBytes } from 'node:crypto';
import type { Queries } from '../schema/queries.ts';
import type { HeldSink } from '../schema/sink-tables.ts';
import { LAST_SEQ } from './changes.ts';
import type { SinkRow, SinkView } from './sink-rows.ts';

/** Random bytes of a tag: two views of a store get the same ones once in 2^48. */
const TAG_BYTES = 6;

type ViewText = Pick<SinkView, 'where' | 'fields'>;

/** How far a store is. */
export type From = Pick<SinkView, 'fromGeneration' | 'fromCursor' | 'fromBackfill' | 'fromRemoved' | 'exact'>;

/** How far the mirror believes that it is. */
export function fromOf({ beganGeneration, cursor, backfillTo, backfillRemoved }: SinkRow): From {
  return {
    fromGeneration: beganGeneration,
    fromCursor: cursor,
    fromBackfill: backfillTo,
    fromRemoved: backfillRemoved,
    exact: true,
  };
}

/** Writes what holds a sink, and what moves its store from one view, or one moment, to another, in a new generation. */
export function createViewWriter({ write }: Queries) {
  /** Every product is sent. */
  const NOTHING = { fromGeneration: null, fromCursor: 0, fromBackfill: 0, fromRemoved: false };
  const restart = write(
    `UPDATE sinks SET generation = generation + 1, began_generation = generation + 1, began_cursor = :cursor,
       cursor = :cursor, backfill_to = coalesce(:to, ${LAST_SEQ}), backfill_removed = 1, held = NULL, state = 'running',
       retry_at = NULL, error = NULL, error_at = NULL, view_failures = 0, view_failure = NULL WHERE id = :id`,
  );
  const add = write(
    `INSERT INTO sink_views (sink_id, generation, where_sql, fields, tag, from_generation, from_cursor, from_backfill,
       from_removed, to_cursor, unsure)
     SELECT :id, generation, :where, :fields, :tag, :fromGeneration, :fromCursor, :fromBackfill, :fromRemoved, backfill_to,
       (SELECT json_group_array(DISTINCT vbid) FROM parked WHERE sink_id = :id AND state <> 'delivered')
     FROM sinks WHERE id = :id`,
  );
  // Only a filter hides products that are there.
  const addMayHave = write(
    `INSERT INTO sink_views (sink_id, generation, where_sql, fields, tag, from_generation, from_cursor, from_backfill,
       from_removed, to_cursor, unsure)
     SELECT :id, (SELECT generation FROM sinks WHERE id = :id), where_sql, fields, tag, :fromGeneration, :fromCursor,
       :fromBackfill, :fromRemoved, -1, :unsure
     FROM sink_views WHERE sink_id = :id AND where_sql IS NOT NULL
       AND generation = (SELECT max(generation) FROM sink_views WHERE sink_id = :id)`,
  );
  const begin = write<[id: number]>(
    `UPDATE sinks SET generation = generation + 1, began_generation = generation + 1, began_cursor = 0 WHERE id = ?`,
  );
  // Skipped ones, too: what the store gets of those products now is something else.
  const forgetParked = write('DELETE FROM parked WHERE sink_id = ?');
  const placeTransition = write(
    `UPDATE sink_views SET from_cursor = coalesce(:cursor, from_cursor), exact = :cursor IS NOT NULL,
       to_cursor = max(to_cursor, coalesce(:cursor, ${LAST_SEQ})) WHERE sink_id = :id AND generation = :generation`,
  );
  const skipTransition = write(
    `UPDATE sink_views AS view SET (from_generation, from_backfill, from_removed, unsure) =
       (SELECT earlier.from_generation, earlier.from_backfill, earlier.from_removed,
          (SELECT json_group_array(DISTINCT value) FROM (SELECT value FROM json_each(view.unsure)
            UNION ALL SELECT value FROM json_each(earlier.unsure)))
        FROM sink_views AS earlier WHERE earlier.sink_id = :id AND earlier.generation = view.from_generation)
     WHERE sink_id = :id AND generation = :generation`,
  );
  const extendFill = write(
    `UPDATE sinks SET backfill_to = (SELECT to_cursor FROM sink_views WHERE sink_id = :id AND generation = :generation)
       WHERE id = :id`,
  );
  const hold = write("UPDATE sinks SET state = 'held', held = ? WHERE id = ? AND state = 'running'");
  const newTag = (): string => randomBytes(TAG_BYTES).toString('hex');

  function addView({ id }: SinkRow, view: ViewText & Pick<SinkView, 'tag'>, from: Omit<From, 'exact'>): void {
    add({ ...view, ...from, id, fromRemoved: from.fromRemoved ? 1 : 0 });
  }

  return {
    /** Notes the view of a sink that has not got anything. */
    beginView: (sink: SinkRow, view: ViewText): void => {
      begin(sink.id);
      addView(sink, { ...view, tag: newTag() }, NOTHING);
    },
    /** Sends what differs to a store that has the products as of its cursor under its view. */
    changeView: (sink: SinkRow, view: ViewText): void => {
      restart({ id: sink.id, cursor: 0, to: Math.max(sink.cursor, sink.backfillTo) });
      addView(sink, { ...view, tag: newTag() }, fromOf(sink));
      forgetParked(sink.id);
    },
    /** Sends what differs between the products as of the cursor and as they are now. @param view as it is; undefined: none */
    sendNewest: (sink: SinkRow, view: SinkView | undefined): void => {
      restart({ id: sink.id, cursor: sink.cursor, to: null });
      addView(sink, view ?? { where: null, fields: null, tag: null }, fromOf(sink));
    },
    /**
     * Notes what the store of a sink may have before a fill that begins now: what it had at its position, and more.
     * @param sink as it was before
     */
    noteMayHave: (sink: SinkRow, unsure: readonly string[]): void => {
      const from = fromOf(sink);
      addMayHave({ ...from, id: sink.id, fromRemoved: from.fromRemoved ? 1 : 0, unsure: JSON.stringify(unsure) });
    },
    /** What the store has is not known any more: every product, or removal, is sent. */
    forgetTransition: write<[id: number]>('UPDATE sink_views SET from_generation = NULL WHERE sink_id = ?'),
    /** Lets a fill send, too, which products are not to be there. */
    fillRemoved: write<[id: number]>('UPDATE sinks SET backfill_removed = 1 WHERE id = ?'),
    /**
     * Notes how far a store is that is to be brought to a view.
     * @param cursor null if the store does not keep its position: it may have got what it has not confirmed
     */
    placeTransition: (id: number, generation: number, cursor: number | null): void => {
      placeTransition({ id, generation, cursor });
      extendFill({ id, generation });
    },
    /** Lets a transition start from what the store had before an earlier one, which never reached it. */
    skipTransition: (id: number, generation: number) => skipTransition({ id, generation }),
    /** Sends nothing until an operator decides. */
    hold: (id: number, held: HeldSink) => hold(JSON.stringify(held), id),
    release: write<[id: number]>(
      "UPDATE sinks SET state = CASE state WHEN 'held' THEN 'running' ELSE state END, held = NULL WHERE id = ?",
    ),
    noteViewFailures: write<[count: number, last: string | null, id: number]>(
      'UPDATE sinks SET view_failures = view_failures + ?, view_failure = ? WHERE id = ?',
    ),
  };
}
