import type { Queries } from '../schema/queries.ts';
import type { sinkPoints } from '../schema/sink-tables.ts';

/** How a sink was at a time. See schema/sink-tables.ts. */
export type SinkPoint = Readonly<typeof sinkPoints.$inferSelect>;

type PointReader = ReturnType<typeof createPointReader>;

export function createPointReader({ rows }: Queries) {
  return {
    /** The points of a sink since a time, the oldest first. */
    since: rows<[sinkId: number, sinceMs: number], Omit<SinkPoint, 'sinkId'>>(
      'SELECT at, behind, delivered FROM sink_points WHERE sink_id = ? AND at >= ? ORDER BY at',
    ),
  };
}

/** Written by the active daemon, or the keeper. */
export function createPointWriter({ write }: Queries, reader: PointReader) {
  return {
    ...reader,
    /** A sink that is gone meanwhile has no points. */
    note: write<[SinkPoint]>(
      `INSERT OR REPLACE INTO sink_points (sink_id, at, behind, delivered)
       SELECT id, :at, :behind, :delivered FROM sinks WHERE id = :sinkId`,
    ),
    prune: write<[beforeMs: number]>('DELETE FROM sink_points WHERE at < ?'),
  };
}
