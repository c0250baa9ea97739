import { randomUUID } from 'node:crypto';
import { createLease, type Holder, LEASES, type Lease, thisProcess } from './lease.ts';
import { explain, type MirrorFile, type OpenOptions, openMirrorFile } from './open.ts';
import { unusable } from './place.ts';
import { createReader, type Reader } from './reader.ts';
import { createSameHistory } from './same-history.ts';
import type { ScheduleWriter } from './schedule.ts';
import type { PaceWriter } from './source.ts';
import { createWriteTransaction } from './transaction.ts';
import { createWriters, type KeeperWriter, type RelayWriter, type RequestWriter } from './writers.ts';

/**
 * The mirror: one SQLite file. Everyone may read it; see writers.ts for who may write what.
 *
 * ```
 * store.read(reader => …)                                     several reads, one snapshot
 * store.keeperLease.acquire(now).write(writer => …)           all or nothing, while the lease is held
 * store.request(writer => …)                                  all or nothing, without a lease
 * ```
 */
export interface Store extends Reader {
  readonly keeperLease: Lease<KeeperWriter>;
  readonly relayLease: Lease<RelayWriter>;
  /** Shows which daemon is active; the others stand by. */
  readonly daemonLease: Lease<Reader>;
  /** Runs `work` in one transaction. @throws CatchwordError as `createWriteTransaction` */
  request<T>(work: (writer: RequestWriter) => T): T;
  readonly schedule: ScheduleWriter;
  readonly source: PaceWriter;
  /** Size of the file with its WAL, in bytes. */
  sizeBytes(): number;
  /** Checks the structure of the whole file; returns an empty list if it is sound. Takes seconds per gigabyte. */
  quickCheck(): string[];
  /** Moves the WAL into the file. */
  walCheckpoint(): void;
  /**
   * Checks that the open file is still the mirror at its path; takes microseconds. Every write does so by itself.
   * @throws CatchwordError MIRROR_REPLACED: the process has to be restarted
   */
  check(): void;
  /** @throws CatchwordError MIRROR_REPLACED: the file stays open then, because closing it would write to the new one */
  close(): void;
}

export interface StoreOptions extends OpenOptions {
  /** This process as a holder of leases; default: as the operating system identifies it. */
  readonly self?: Holder;
}

/** Reads the incarnation from the mirror's row, and creates the row in a new mirror. */
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

function storeOf(mirror: MirrorFile, { self = thisProcess() }: StoreOptions): Store {
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
  const pageCount = sqlite.prepare<[], number>('PRAGMA page_count').pluck();
  const pageSize = sqlite.prepare<[], number>('PRAGMA page_size').pluck();
  const quickCheck = sqlite.prepare<[], string>('PRAGMA quick_check').pluck();
  const reader = createReader({ path, incarnation, sqlite, orm });
  const writers = createWriters(sqlite, orm, reader, write);
  return {
    ...reader,
    keeperLease: createLease(sqlite, { lease: LEASES.keeper, writer: writers.keeper, self, write }),
    relayLease: createLease(sqlite, { lease: LEASES.relay, writer: writers.relay, self, write }),
    daemonLease: createLease(sqlite, { lease: LEASES.daemon, writer: reader, self, write }),
    request: (work) => write(() => work(writers.request)),
    schedule: writers.schedule,
    source: writers.pace,
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
