import type { Database } from 'better-sqlite3';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import { createChangeReader } from './changes.ts';
import { createProductReader } from './products.ts';
import { createRemovalReader } from './removals.ts';
import { createRunReader } from './runs.ts';
import { createScheduleReader } from './schedule.ts';
import { createSearch } from './search.ts';
import { createSinkReader } from './sinks.ts';
import { createSourceReader } from './source.ts';
import { createReadTransaction } from './transaction.ts';
import { createWatermarkReader } from './watermark.ts';

interface ReaderOptions {
  readonly path: string;
  /** Random id of this file's history. */
  readonly incarnation: string;
  readonly sqlite: Database;
  readonly orm: BetterSQLite3Database;
}

function createTableReaders({ path, incarnation, sqlite, orm }: ReaderOptions) {
  const products = createProductReader(sqlite);
  return {
    ...createWatermarkReader(sqlite),
    path,
    incarnation,
    products,
    changes: createChangeReader(sqlite),
    runs: createRunReader(sqlite, orm),
    removals: createRemovalReader(sqlite, products),
    sinks: createSinkReader(sqlite, orm),
    schedule: createScheduleReader(sqlite),
    source: createSourceReader(sqlite),
    search: createSearch(sqlite),
  };
}

/** Reads the mirror, and returns plain values. */
export interface Reader extends Readonly<ReturnType<typeof createTableReaders>> {
  /** Runs several reads on one consistent snapshot. */
  read<T>(work: (reader: Reader) => T): T;
}

export function createReader(options: ReaderOptions): Reader {
  const transaction = createReadTransaction(options.sqlite);
  const reader: Reader = { ...createTableReaders(options), read: (work) => transaction(() => work(reader)) };
  return reader;
}
