import type { Database } from 'better-sqlite3';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import { type ChangeWriter, createChangeWriter } from './changes.ts';
import { createProductWriter, type ProductReader, type ProductWriter } from './products.ts';
import type { Reader } from './reader.ts';
import { createRemovalWriter, type RemovalReader, type RemovalWriter } from './removals.ts';
import type { RunReader } from './runs.ts';
import { createScheduleWriter, type ScheduleWriter } from './schedule.ts';
import { createPaceWriter, createSourceWriter, type PaceWriter, type SourceWriter } from './source.ts';
import { createWatermarkWriter, type WatermarkWriter } from './watermark.ts';
import { createRunWriter, type RunWriter } from './write-runs.ts';
import { createSinkWriter, type SinkPruning, type SinkRequests, type SinkWriter } from './write-sinks.ts';

/*
 * Who may write what. A writer is handed out only inside a transaction, by the lease that protects its tables:
 *
 * - keeper: products, changes, runs, passes, checkpoints, rejected, missing, held_removals and mirror. When it prunes
 *   the log it also disables sinks and notes sink_gaps.
 * - relay: sinks, parked, sink_gaps.
 * - daemon: no table. It only shows which daemon is active.
 *
 * Without a lease, every process may write schedule_ticks, and the retry, the pauses and the rate limit in mirror.
 * Requests of operators need none either: the keeper checks in each transaction whether its run was cancelled, and the
 * relay whether a sink's state or generation has changed.
 */

/** Written under the keeper's lease. */
export interface KeeperWriter extends Reader, WatermarkWriter {
  readonly products: ProductWriter;
  readonly changes: ChangeWriter;
  readonly runs: RunWriter;
  readonly removals: RemovalWriter;
  readonly sinks: SinkPruning;
  readonly schedule: ScheduleWriter;
  readonly source: SourceWriter;
}

/** Written under the relay's lease. */
export interface RelayWriter extends Reader {
  readonly sinks: SinkWriter;
}

/** Written by commands, without a lease. The keeper and the relay notice in their next transaction. */
export interface RequestWriter extends Reader {
  readonly sinks: SinkRequests;
  /** To cancel a run. */
  readonly runs: RunReader & Pick<RunWriter, 'end'>;
  readonly products: ProductReader & Pick<ProductWriter, 'ensureLookups'>;
  readonly removals: RemovalReader & Pick<RemovalWriter, 'noteSeen'>;
  readonly schedule: ScheduleWriter;
}

export interface Writers {
  readonly keeper: KeeperWriter;
  readonly relay: RelayWriter;
  readonly request: RequestWriter;
  readonly schedule: ScheduleWriter;
  readonly pace: PaceWriter;
}

/** @param write runs its argument in one write transaction */
export function createWriters(
  sqlite: Database,
  orm: BetterSQLite3Database,
  reader: Reader,
  write: <T>(work: () => T) => T,
): Writers {
  const products = createProductWriter(sqlite, reader.products);
  const changes = createChangeWriter(sqlite, reader.changes);
  const runs = createRunWriter(sqlite, orm, reader.runs);
  const removals = createRemovalWriter(sqlite, reader.removals, products, changes);
  const sinks = createSinkWriter(sqlite, reader.sinks);
  const schedule = createScheduleWriter(sqlite, reader.schedule, write);
  const pace = createPaceWriter(sqlite, reader.source, write);
  const source = createSourceWriter(sqlite, pace);
  const watermark = createWatermarkWriter(sqlite, reader);
  return {
    keeper: { ...reader, ...watermark, products, changes, runs, removals, sinks, schedule, source },
    relay: { ...reader, sinks },
    request: { ...reader, sinks, runs, products, removals, schedule },
    schedule,
    pace,
  };
}
