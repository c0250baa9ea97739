import { randomUUID } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { CatchwordError } from '../errors.ts';
import { type ChangeStore, createChangeStore } from './changes.ts';
import { createLeaseStore, type Holder, type LeaseStore, thisProcess } from './lease.ts';
import { type OpenOptions, openMirrorFile } from './open.ts';
import { createProductStore, type ProductStore } from './products.ts';
import { createRunStore, type RunStore } from './runs.ts';
import { createSearch, type Search } from './search.ts';
import {
  createReadTransaction,
  createWriteTransaction,
  type ReadTransaction,
  type WriteTransaction,
} from './transaction.ts';

/** The mirror: one SQLite file. Everything it returns is plain values. */
export interface Store {
  readonly path: string;
  /** Random id of this file's history. */
  readonly incarnation: string;
  readonly products: ProductStore;
  readonly changes: ChangeStore;
  readonly runs: RunStore;
  readonly lease: LeaseStore;
  readonly search: Search;
  readonly read: ReadTransaction;
  /** All or nothing; see transaction.ts. */
  readonly write: WriteTransaction;
  /** Source time up to which every change is in the mirror, milliseconds since 1970; null before the first run. */
  watermark(): number | null;
  /** Moves the watermark forward; an earlier time than the present one changes nothing. */
  advanceWatermark(toMs: number): void;
  /** Until when the source asked for no request; 0 for none. */
  blockedUntil(): number;
  setBlockedUntil(untilMs: number): void;
  /** Size of the file with its WAL, in bytes. */
  sizeBytes(): number;
  /** Checks the whole file's structure; an empty list means that it is sound. Takes seconds per gigabyte. */
  quickCheck(): string[];
  /** Moves the WAL into the file. */
  walCheckpoint(): void;
  close(): void;
}

export interface StoreOptions extends OpenOptions {
  /** Who this process is, for the lease; default: as the operating system says. */
  readonly self?: Holder;
}

function incarnationOf(sqlite: Database, write: WriteTransaction): string {
  const read = sqlite.prepare<[], string>('SELECT incarnation FROM mirror WHERE id = 1').pluck();
  const found = read.get();
  if (found !== undefined) return found;
  write(() => {
    sqlite.prepare('INSERT OR IGNORE INTO mirror (id, incarnation) VALUES (1, ?)').run(randomUUID());
    sqlite.prepare('INSERT OR IGNORE INTO lease (id) VALUES (1)').run();
  });
  return read.get() as string;
}

/** @throws CatchwordError MIRROR_UNUSABLE, NOT_FOUND (with `mustExist`) */
export function openStore(file: string, options: StoreOptions = {}): Store {
  const { path, sqlite, orm } = openMirrorFile(file, options);
  const write = createWriteTransaction(sqlite);
  const watermark = sqlite.prepare<[], number | null>('SELECT watermark FROM mirror WHERE id = 1').pluck();
  const advance = sqlite.prepare('UPDATE mirror SET watermark = max(coalesce(watermark, 0), ?) WHERE id = 1');
  const blocked = sqlite.prepare<[], number | null>('SELECT blocked_until FROM mirror WHERE id = 1').pluck();
  const block = sqlite.prepare('UPDATE mirror SET blocked_until = ? WHERE id = 1');
  const pageCount = sqlite.prepare<[], number>('PRAGMA page_count').pluck();
  const pageSize = sqlite.prepare<[], number>('PRAGMA page_size').pluck();
  const quickCheck = sqlite.prepare<[], string>('PRAGMA quick_check').pluck();
  try {
    return {
      path,
      incarnation: incarnationOf(sqlite, write),
      products: createProductStore(sqlite),
      changes: createChangeStore(sqlite),
      runs: createRunStore(sqlite, orm),
      lease: createLeaseStore(sqlite, write, options.self ?? thisProcess()),
      search: createSearch(sqlite),
      read: createReadTransaction(sqlite),
      write,
      watermark: () => watermark.get() ?? null,
      advanceWatermark: (toMs) => {
        advance.run(toMs);
      },
      blockedUntil: () => blocked.get() ?? 0,
      setBlockedUntil: (untilMs) => {
        write(() => block.run(untilMs));
      },
      sizeBytes: () => (pageCount.get() ?? 0) * (pageSize.get() ?? 0),
      quickCheck: () => quickCheck.all().filter((line) => line !== 'ok'),
      walCheckpoint: () => {
        sqlite.exec('PRAGMA wal_checkpoint(PASSIVE)');
      },
      close: () => {
        sqlite.close();
      },
    };
  } catch (error) {
    sqlite.close();
    throw error instanceof CatchwordError
      ? error
      : new CatchwordError('MIRROR_UNUSABLE', `${path} cannot be used (${String(error)})`, {
          hint: 'Check the file with: npx catchword doctor. Or set CATCHWORD_DB to another file.',
          cause: error,
        });
  }
}
