import { randomUUID } from 'node:crypto';
import { createLease, type Holder, LEASES, thisProcess } from './lease.ts';
import { explain, type MirrorFile, type OpenOptions, openMirrorFile } from './open.ts';
import { unusable } from './place.ts';
import { createQueries } from './queries.ts';
import { createReader, type Reader } from './reader.ts';
import { createSameHistory } from './same-history.ts';
import { createWriteTransaction } from './transaction.ts';
import { createWriters, type KeeperWriter, type RelayWriter, type RequestWriter } from './writers.ts';

export interface StoreOptions extends OpenOptions {
  /** This process as a holder of leases; default: as the operating system identifies it. */
  readonly self?: Holder;
}

/** Reads the incarnation from the mirror's row, and creates the row in a new mirror. */
function incarnationOf({ path, sqlite, sameFile }: MirrorFile): string {
  const read = sqlite.prepare<[], string>('SELECT incarnation FROM mirror WHERE id = 1').pluck();
  const found = read.get();
  if (found !== undefined) return found;
  if (sqlite.readonly) throw unusable(path, 'is empty', 'Run npx catchword sync as its owner.');
  const create = sqlite.transaction(() => {
    sqlite.prepare('INSERT OR IGNORE INTO mirror (id, incarnation) VALUES (1, ?)').run(randomUUID());
    sqlite.prepare('INSERT OR IGNORE INTO lease (id) VALUES (1)').run();
  });
  create.immediate();
  sameFile.written();
  return read.get() as string;
}

function createStore({ path, sqlite, orm, sameFile, close }: MirrorFile, incarnation: string, self: Holder) {
  const sameHistory = createSameHistory(sqlite, path, incarnation);
  const write = createWriteTransaction(sqlite, sameFile, sameHistory);
  const { number, values } = createQueries(sqlite);
  const pageCount = number('PRAGMA page_count');
  const pageSize = number('PRAGMA page_size');
  const quickCheck = values<[], string>('PRAGMA quick_check');
  const reader = createReader({ path, incarnation, sqlite, orm });
  const writers = createWriters(sqlite, orm, reader, write);
  return {
    ...reader,
    keeperLease: createLease<KeeperWriter>(sqlite, LEASES.keeper, writers.keeper, self, write),
    relayLease: createLease<RelayWriter>(sqlite, LEASES.relay, writers.relay, self, write),
    /** Shows which daemon is active; the others stand by. */
    daemonLease: createLease<Reader>(sqlite, LEASES.daemon, reader, self, write),
    /** Runs `work` in one transaction. @throws CatchwordError as `createWriteTransaction` */
    request: <T>(work: (writer: RequestWriter) => T): T => write(() => work(writers.request)),
    schedule: writers.schedule,
    source: writers.pace,
    /** Size of the file with its WAL, in bytes. */
    sizeBytes: () => pageCount() * pageSize(),
    /** Checks the structure of the whole file; returns an empty list if it is sound. Takes seconds per gigabyte. */
    quickCheck: () => quickCheck().filter((line) => line !== 'ok'),
    /** Moves the WAL into the file. */
    walCheckpoint: () => sameFile.checkpoint('PASSIVE'),
    /**
     * Checks that the open file is still the mirror at its path; takes microseconds. Every write does so by itself.
     * @throws CatchwordError MIRROR_REPLACED: the process has to be restarted
     */
    check: (): void => {
      sameFile.check();
      sameHistory.check();
    },
    /** @throws CatchwordError MIRROR_REPLACED: the file stays open then, because closing it would write to the new one */
    close,
  };
}

/**
 * The mirror: one SQLite file. Everyone may read it; see writers.ts for who may write what.
 *
 * ```
 * store.read(reader => …)                                     several reads, one snapshot
 * store.keeperLease.acquire(now).write(writer => …)           all or nothing, while the lease is held
 * store.request(writer => …)                                  all or nothing, without a lease
 * ```
 */
export type Store = Readonly<ReturnType<typeof createStore>>;

/** @throws CatchwordError as `openMirrorFile` does */
export function openStore(file: string, { self = thisProcess(), ...options }: StoreOptions = {}): Store {
  const mirror = openMirrorFile(file, options);
  try {
    return createStore(mirror, incarnationOf(mirror), self);
  } catch (error) {
    mirror.close();
    throw explain(mirror.path, mirror.sqlite.readonly, error);
  }
}
