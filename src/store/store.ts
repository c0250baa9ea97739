import { randomUUID } from 'node:crypto';
import type { Clocks } from '../catalog/watermark.ts';
import { type ChangeStore, createChangeStore } from './changes.ts';
import { createLeaseStore, type Holder, LEASES, type LeaseStore, thisProcess } from './lease.ts';
import { explain, type MirrorFile, type OpenOptions, openMirrorFile } from './open.ts';
import { unusable } from './place.ts';
import { createProductStore, type ProductStore } from './products.ts';
import { createRemovalStore, type RemovalStore } from './removals.ts';
import { createRunStore, type RunStore } from './runs.ts';
import { createSameHistory } from './same-history.ts';
import { createScheduleStore, type Retry, type ScheduleStore } from './schedule.ts';
import { createSearch, type Search } from './search.ts';
import { createSinkStore, type SinkStore } from './sinks.ts';
import { createSourceStore, type SourceStore } from './source.ts';
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
  readonly removals: RemovalStore;
  readonly sinks: SinkStore;
  readonly schedule: ScheduleStore;
  readonly source: SourceStore;
  readonly lease: LeaseStore;
  /** Which daemon is active; others stand by. */
  readonly daemonLease: LeaseStore;
  /** Who feeds the sinks. */
  readonly relayLease: LeaseStore;
  readonly search: Search;
  readonly read: ReadTransaction;
  /** All or nothing; see transaction.ts. */
  readonly write: WriteTransaction;
  /** Source time up to which every change is in the mirror, milliseconds since 1970; null before the first run. */
  watermark(): number | null;
  /**
   * Moves the watermark forward; an earlier time than the present one does not move it back.
   * @param localMs this machine's clock when the source's was `toMs`
   */
  advanceWatermark(toMs: number, localMs: number): void;
  /**
   * Where the next delta begins, before any overlap: the watermark, or less where the source's clock was put back since.
   */
  readUpTo(): number | null;
  /** The source's clock and this machine's at the moment that the watermark was last set by. */
  clockSeen(): Clocks | null;
  /** When a run that failed is tried again, and why it failed; null while no run is owed. */
  retry(): Retry | null;
  /** Size of the file with its WAL, in bytes. */
  sizeBytes(): number;
  /** Checks the whole file's structure; an empty list means that it is sound. Takes seconds per gigabyte. */
  quickCheck(): string[];
  /** Moves the WAL into the file. */
  walCheckpoint(): void;
  /**
   * Looks whether the file that is open is still the mirror at its path; costs microseconds. Every write does so by itself.
   * @throws CatchwordError MIRROR_REPLACED: the process has to end, and to be started again
   */
  check(): void;
  /** @throws CatchwordError MIRROR_REPLACED: then the file stays open, because closing it would write to the new one */
  close(): void;
}

export interface StoreOptions extends OpenOptions {
  /** Who this process is, for the lease; default: as the operating system says. */
  readonly self?: Holder;
}

/** Reads the mirror's row, which is written once. */
function incarnationOf({ path, sqlite, isReadonly, sameFile }: MirrorFile): string {
  const read = sqlite.prepare<[], string>('SELECT incarnation FROM mirror WHERE id = 1').pluck();
  const found = read.get();
  if (found !== undefined) return found;
  if (isReadonly) throw unusable(path, 'is empty', 'Run npx catchword sync as its owner.');
  const create = sqlite.transaction(() => {
    sqlite.prepare('INSERT OR IGNORE INTO mirror (id, incarnation) VALUES (1, ?)').run(randomUUID());
    sqlite.prepare('INSERT OR IGNORE INTO lease (id) VALUES (1)').run();
  });
  create.immediate();
  sameFile.written();
  return read.get() as string;
}

/** @throws CatchwordError as `openMirrorFile` does */
export function openStore(file: string, options: StoreOptions = {}): Store {
  const mirror = openMirrorFile(file, options);
  try {
    return storeOf(mirror, options);
  } catch (error) {
    mirror.close();
    throw explain(mirror.path, mirror.isReadonly, error);
  }
}

function storeOf(mirror: MirrorFile, options: StoreOptions): Store {
  const { path, sqlite, orm, isReadonly, sameFile } = mirror;
  const incarnation = incarnationOf(mirror);
  const sameHistory = createSameHistory(sqlite, path, incarnation);
  const write = createWriteTransaction(sqlite, {
    isReadonly,
    before: () => sameFile.check(),
    begun: () => {
      if (!sameFile.begun()) return false;
      sameHistory.check();
      return true;
    },
    ending: () => sameHistory.ending(),
    committed: () => {
      sameHistory.committed();
      sameFile.written();
    },
  });
  const watermark = sqlite.prepare<[], number | null>('SELECT watermark FROM mirror WHERE id = 1').pluck();
  const advance = sqlite.prepare(
    `UPDATE mirror SET watermark = max(coalesce(watermark, 0), :to), source_seen = :to, local_seen = :local WHERE id = 1`,
  );
  const clockSeen = sqlite.prepare<[], { source: number | null; local: number | null }>(
    'SELECT source_seen AS source, local_seen AS local FROM mirror WHERE id = 1',
  );
  const pageCount = sqlite.prepare<[], number>('PRAGMA page_count').pluck();
  const pageSize = sqlite.prepare<[], number>('PRAGMA page_size').pluck();
  const quickCheck = sqlite.prepare<[], string>('PRAGMA quick_check').pluck();
  const products = createProductStore(sqlite);
  const changes = createChangeStore(sqlite);
  const schedule = createScheduleStore(sqlite, write);
  return {
    path,
    incarnation,
    products,
    changes,
    runs: createRunStore(sqlite, orm),
    removals: createRemovalStore(sqlite, products, changes),
    sinks: createSinkStore(sqlite),
    schedule,
    source: createSourceStore(sqlite, write),
    lease: createLeaseStore(sqlite, write, LEASES.runs, options.self ?? thisProcess()),
    relayLease: createLeaseStore(sqlite, write, LEASES.relay, options.self ?? thisProcess()),
    daemonLease: createLeaseStore(sqlite, write, LEASES.daemon, options.self ?? thisProcess()),
    search: createSearch(sqlite),
    read: createReadTransaction(sqlite),
    write,
    watermark: () => watermark.get() ?? null,
    advanceWatermark: (toMs, localMs) => {
      advance.run({ to: toMs, local: localMs });
    },
    readUpTo: () => {
      const at = watermark.get() ?? null;
      return at === null ? null : Math.min(at, clockSeen.get()?.source ?? at);
    },
    clockSeen: () => {
      const { source, local } = clockSeen.get() ?? { source: null, local: null };
      return source === null || local === null ? null : { source, local };
    },
    retry: () => schedule.retry(),
    sizeBytes: () => (pageCount.get() ?? 0) * (pageSize.get() ?? 0),
    quickCheck: () => quickCheck.all().filter((line) => line !== 'ok'),
    walCheckpoint: () => sameFile.checkpoint('PASSIVE'),
    check: () => {
      sameFile.check();
      sameHistory.check();
    },
    close: mirror.close,
  };
}
