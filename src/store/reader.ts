import type { Database } from 'better-sqlite3';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import { type ChangeReader, createChangeReader } from './changes.ts';
import { createProductReader, type ProductReader } from './products.ts';
import { createRemovalReader, type RemovalReader } from './removals.ts';
import { createRunReader, type RunReader } from './runs.ts';
import { createScheduleReader, type ScheduleReader } from './schedule.ts';
import { createSearch, type Search } from './search.ts';
import { createSinkReader, type SinkReader } from './sinks.ts';
import { createSourceReader, type SourceReader } from './source.ts';
import { createReadTransaction } from './transaction.ts';
import { createWatermarkReader, type WatermarkReader } from './watermark.ts';

/** Reads the mirror, and returns plain values. */
export interface Reader extends WatermarkReader {
  readonly path: string;
  /** Random id of this file's history. */
  readonly incarnation: string;
  readonly products: ProductReader;
  readonly changes: ChangeReader;
  readonly runs: RunReader;
  readonly removals: RemovalReader;
  readonly sinks: SinkReader;
  readonly schedule: ScheduleReader;
  readonly source: SourceReader;
  readonly search: Search;
  /** Runs several reads on one consistent snapshot. */
  read<T>(work: (reader: Reader) => T): T;
}

export interface ReaderOptions {
  readonly path: string;
  readonly incarnation: string;
  readonly sqlite: Database;
  readonly orm: BetterSQLite3Database;
}

export function createReader({ path, incarnation, sqlite, orm }: ReaderOptions): Reader {
  const transaction = createReadTransaction(sqlite);
  const products = createProductReader(sqlite);
  const reader: Reader = {
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
    read: (work) => transaction(() => work(reader)),
  };
  return reader;
}
