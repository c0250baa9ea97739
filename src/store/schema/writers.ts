import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import { createChangeWriter } from '../rows/changes.ts';
import { createDecisionWriter } from '../rows/decision-rows.ts';
import { createIncidentWriter } from '../rows/incident-rows.ts';
import { createProductWriter, type ProductReader, type ProductWriter } from '../rows/product-rows.ts';
import { createRemovalWriter, type RemovalReader, type RemovalWriter } from '../rows/removals.ts';
import type { RunReader } from '../rows/runs.ts';
import { createTickWriter } from '../rows/served-ticks.ts';
import { createPointWriter } from '../rows/sink-points.ts';
import { createPaceWriter, createSourceWriter, createWatermarkWriter } from '../rows/source-state.ts';
import { createRunWriter, type RunWriter } from '../rows/write-runs.ts';
import { createSinkPruning, createSinkRequests, createSinkWriter } from '../rows/write-sinks.ts';
import type { Leased } from './lease.ts';
import type { Queries } from './queries.ts';
import type { Reader } from './reader.ts';
import type { Transact } from './transaction.ts';

/*
 * Who may write what. A writer is handed out only inside a transaction, by the lease that protects its tables:
 *
 * - keeper: products, changes, runs, passes, checkpoints, rejected, missing, held_removals and mirror. When it prunes
 *   the log it also disables sinks and notes sink_gaps.
 * - relay: sinks, parked, sink_gaps.
 * - daemon: episodes, notices, sink_points. It also shows which daemon is active.
 *
 * Without a lease, every process may write schedule_ticks, and the retry, the pauses and the rate limit in mirror; and
 * actions, because who decides records it, and only one process can end an asked one.
 * Requests of operators need none either: the keeper checks in each transaction whether its run was cancelled, and the
 * relay whether a sink's state or generation has changed.
 */

export function createWriters(queries: Queries, orm: BetterSQLite3Database, reader: Reader, transact: Transact) {
  const products = createProductWriter(queries, reader.products);
  const changes = createChangeWriter(queries, reader.changes);
  const runs = createRunWriter(queries, orm, reader.runs);
  const removals = createRemovalWriter(queries, reader.removals, products, changes);
  const schedule = createTickWriter(queries, reader.schedule, transact);
  const actions = createDecisionWriter(queries, reader.actions);
  const pace = createPaceWriter(queries, reader.source, transact);
  return {
    keeper: {
      ...reader,
      ...createWatermarkWriter(queries),
      products,
      changes,
      runs,
      removals,
      sinks: createSinkPruning(queries, reader.sinks),
      schedule,
      source: createSourceWriter(queries, pace),
      actions,
    },
    relay: { ...reader, sinks: createSinkWriter(queries, reader.sinks) },
    daemon: {
      ...reader,
      episodes: createIncidentWriter(queries, reader.episodes),
      points: createPointWriter(queries, reader.points),
    },
    request: {
      ...reader,
      sinks: createSinkRequests(queries, reader.sinks),
      /** To cancel a run. */
      runs: runs as RunReader & Pick<RunWriter, 'end'>,
      products: products as ProductReader & Pick<ProductWriter, 'ensureLookup'>,
      removals: removals as RemovalReader & Pick<RemovalWriter, 'noteSeen'>,
      schedule,
      actions,
    },
    schedule,
    pace,
  };
}

type Writers = ReturnType<typeof createWriters>;
export type KeeperWriter = Readonly<Writers['keeper']>;
export type LeasedKeeper = Leased<KeeperWriter>;
export type RelayWriter = Readonly<Writers['relay']>;
export type DaemonWriter = Readonly<Writers['daemon']>;
export type LeasedDaemon = Leased<DaemonWriter>;
/** Written by commands, without a lease. The keeper and the relay notice in their next transaction. */
export type RequestWriter = Readonly<Writers['request']>;
