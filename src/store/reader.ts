import { createActionReader } from './actions.ts';
import { createChangeReader } from './changes.ts';
import { createEpisodeReader } from './episodes.ts';
import { createLineReader } from './event-lines.ts';
import type { MirrorFile } from './open.ts';
import { createProductReader } from './products.ts';
import type { Queries } from './queries.ts';
import { createRecentRunReader } from './recent-runs.ts';
import { createRemovalReader } from './removals.ts';
import { createRunReader } from './runs.ts';
import { createScheduleReader } from './schedule.ts';
import { createSearch } from './search.ts';
import { createSinkReader } from './sinks.ts';
import { createSourceReader } from './source.ts';
import { createReadTransaction } from './transaction.ts';
import { createWatermarkReader } from './watermark.ts';

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
    schedule: createScheduleReader(queries),
    source: createSourceReader(queries),
    search: createSearch(queries),
    actions: createActionReader(queries),
    episodes: createEpisodeReader(queries),
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
