import type { MirrorFile } from '../file/open-mirror-file.ts';
import { createLineReader } from '../history/made-lines.ts';
import { createSearch } from '../history/search.ts';
import { createChangeReader } from '../rows/changes.ts';
import { createDecisionReader } from '../rows/decision-rows.ts';
import { createIncidentReader } from '../rows/incident-rows.ts';
import { createProductReader } from '../rows/product-rows.ts';
import { createRecentRunReader } from '../rows/recent-runs.ts';
import { createRemovalReader } from '../rows/removals.ts';
import { createRunReader } from '../rows/runs.ts';
import { createTickReader } from '../rows/served-ticks.ts';
import { createPointReader } from '../rows/sink-points.ts';
import { createSinkReader } from '../rows/sink-rows.ts';
import { createSourceReader, createWatermarkReader } from '../rows/source-state.ts';
import type { Queries } from './queries.ts';
import { createReadTransaction } from './transaction.ts';

function createTableReaders(queries: Queries, { path, orm }: MirrorFile, incarnation: string) {
  const products = createProductReader(queries);
  return {
    ...createWatermarkReader(queries),
    path,
    /** Random id of this file's history. */
    incarnation,
    products,
    changes: createChangeReader(queries),
    lines: createLineReader(queries),
    runs: createRunReader(queries, orm),
    recentRuns: createRecentRunReader(queries),
    removals: createRemovalReader(queries, products),
    sinks: createSinkReader(queries, orm),
    schedule: createTickReader(queries),
    source: createSourceReader(queries),
    search: createSearch(queries),
    actions: createDecisionReader(queries),
    episodes: createIncidentReader(queries),
    points: createPointReader(queries),
  };
}

/** Reads the mirror, and returns plain values. */
export interface Reader extends Readonly<ReturnType<typeof createTableReaders>> {
  /** Runs several reads on one consistent snapshot. */
  read<T>(work: (reader: Reader) => T): T;
}

export function createReader(queries: Queries, file: MirrorFile, incarnation: string): Reader {
  const transact = createReadTransaction(file.sqlite);
  const readers = createTableReaders(queries, file, incarnation);
  const reader: Reader = { ...readers, read: (work) => transact(() => work(reader)) };
  return reader;
}
