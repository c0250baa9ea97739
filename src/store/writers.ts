import type { Database } from 'better-sqlite3';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import { createChangeWriter } from './changes.ts';
import { createProductWriter, type ProductReader, type ProductWriter } from './products.ts';
import type { Reader } from './reader.ts';
import { createRemovalWriter, type RemovalReader, type RemovalWriter } from './removals.ts';
import type { RunReader } from './runs.ts';
import { createScheduleWriter } from './schedule.ts';
import { createPaceWriter, createSourceWriter } from './source.ts';
import { createWatermarkWriter } from './watermark.ts';
import { createRunWriter, type RunWriter } from './write-runs.ts';
import { createSinkPruning, createSinkRequests, createSinkWriter } from './write-sinks.ts';

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

/** @param write runs its argument in one write transaction */
export function createWriters(
  sqlite: Database,
  orm: BetterSQLite3Database,
  reader: Reader,
  write: <T>(work: () => T) => T,
) {
  const products = createProductWriter(sqlite, reader.products);
  const changes = createChangeWriter(sqlite, reader.changes);
  const runs = createRunWriter(sqlite, orm, reader.runs);
  const removals = createRemovalWriter(sqlite, reader.removals, products, changes);
  const schedule = createScheduleWriter(sqlite, reader.schedule, write);
  const pace = createPaceWriter(sqlite, reader.source, write);
  return {
    keeper: {
      ...reader,
      ...createWatermarkWriter(sqlite),
      products,
      changes,
      runs,
      removals,
      sinks: createSinkPruning(sqlite, reader.sinks),
      schedule,
      source: createSourceWriter(sqlite, pace),
    },
    relay: { ...reader, sinks: createSinkWriter(sqlite, reader.sinks) },
    request: {
      ...reader,
      sinks: createSinkRequests(sqlite, reader.sinks),
      /** To cancel a run. */
      runs: runs as RunReader & Pick<RunWriter, 'end'>,
      products: products as ProductReader & Pick<ProductWriter, 'ensureLookups'>,
      removals: removals as RemovalReader & Pick<RemovalWriter, 'noteSeen'>,
      schedule,
    },
    schedule,
    pace,
  };
}

type Writers = ReturnType<typeof createWriters>;
/** Written under the keeper's lease. */
export type KeeperWriter = Readonly<Writers['keeper']>;
/** Written under the relay's lease. */
export type RelayWriter = Readonly<Writers['relay']>;
/** Written by commands, without a lease. The keeper and the relay notice in their next transaction. */
export type RequestWriter = Readonly<Writers['request']>;
