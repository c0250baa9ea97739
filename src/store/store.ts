import { randomUUID } from 'node:crypto';
import { isMainThread } from 'node:worker_threads';
import { unusable } from './file/mirror-path.ts';
import { explain, type MirrorFile, type OpenOptions, openMirrorFile, withoutLinks } from './file/open-mirror-file.ts';
import { createRestoreDetector } from './file/restore-detector.ts';
import { createLease, type Holder, LEASES, thisProcess } from './schema/lease.ts';
import { createQueries } from './schema/queries.ts';
import { createReader } from './schema/reader.ts';
import type { StartedSettings } from './schema/started-settings.ts';
import { createWriteTransaction } from './schema/transaction.ts';
import { createWriters, type RequestWriter } from './schema/writers.ts';

export interface StoreOptions extends OpenOptions {
  /** This process as a holder of leases, without locks; default: as the operating system identifies it, with locks. */
  readonly self?: Holder;
  /** Tells with which settings this process was started, for the leases that it holds; default: nothing. */
  readonly settings?: (() => StartedSettings) | undefined;
  /** The incarnation of a mirror that does not exist yet; default: a random one. */
  readonly incarnation?: string;
}

/** Reads the incarnation from the mirror's row, and creates the row in a new mirror. */
function incarnationOf({ path, sqlite, fileGuard }: MirrorFile, fresh: string): string {
  const read = sqlite.prepare<[], string>('SELECT incarnation FROM mirror WHERE id = 1').pluck();
  const found = read.get();
  if (found !== undefined) return found;
  if (sqlite.readonly) throw unusable(path, 'is empty', 'Run npx catchword sync as its owner.');
  sqlite.prepare('INSERT OR IGNORE INTO mirror (id, incarnation) VALUES (1, ?)').run(fresh);
  fileGuard.written();
  return read.get() as string;
}

function createStore(
  file: MirrorFile,
  incarnation: string,
  given?: Holder,
  started: () => Partial<StartedSettings> = () => ({}),
) {
  const { path, sqlite, orm, fileGuard, close } = file;
  const self = given ?? thisProcess();
  // A second thread would end the locks of the first one (POSIX). Who only reads, makes no files.
  const hasLocks = given === undefined && isMainThread && !sqlite.readonly;
  const queries = createQueries(sqlite);
  const restoreDetector = createRestoreDetector(queries, path, incarnation);
  const listeners = new Set<() => void>();
  const transact = createWriteTransaction(sqlite, fileGuard, restoreDetector, () => {
    for (const listener of listeners) listener();
  });
  const quickCheck = queries.values<[], string>('PRAGMA quick_check');
  const integrityCheck = queries.values<[], string>('PRAGMA integrity_check');
  const reader = createReader(queries, file, incarnation);
  const writers = createWriters(queries, orm, reader, transact);
  const lockOf = (lease: keyof typeof LEASES): string | null => (hasLocks ? `${withoutLinks(path)}.${lease}` : null);
  const leases = {
    keeperLease: createLease(queries, LEASES.keeper, writers.keeper, self, transact, lockOf('keeper'), started),
    relayLease: createLease(queries, LEASES.relay, writers.relay, self, transact, lockOf('relay'), started),
    /** Shows which daemon is active; the others stand by. */
    daemonLease: createLease(queries, LEASES.daemon, writers.daemon, self, transact, lockOf('daemon'), started),
  };
  return {
    ...reader,
    ...leases,
    /** Runs `work` in one transaction. @throws CatchwordError as `createWriteTransaction` */
    request: <T>(work: (writer: RequestWriter) => T): T => transact(() => work(writers.request)),
    /** Calls `listener` after each transaction of this store that has recorded changes. @returns a function that ends it */
    onChanges: (listener: () => void): (() => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    schedule: writers.schedule,
    source: writers.pace,
    /** Size of the file with its WAL, in bytes. */
    sizeBytes: queries.number('SELECT page_count * page_size FROM pragma_page_count, pragma_page_size'),
    /**
     * Checks the structure of the whole file; returns an empty list if it is sound.
     * @param withIndexes also compares every index with its table: 5 seconds per gigabyte instead of 2
     * @throws CatchwordError MIRROR_UNUSABLE if it is damaged so much that it cannot be checked
     */
    checkFile: (withIndexes = false): string[] => {
      try {
        return (withIndexes ? integrityCheck() : quickCheck()).filter((line) => line !== 'ok');
      } catch (error) {
        throw explain(path, sqlite.readonly, error);
      }
    },
    /** Part of it that holds nothing, in bytes: new rows use it first, and VACUUM gives it back to the disk. */
    unusedBytes: queries.number('SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size'),
    /** For a process that reads the mirror once, in order: 4 MiB of pages, not 32. */
    keepFewPages: (): void => void sqlite.exec('PRAGMA cache_size = -4096'),
    /** Moves the WAL into the file. */
    walCheckpoint: () => fileGuard.checkpoint('PASSIVE'),
    /** Checks in microseconds, as each write does, that the file is the mirror at its path. @throws MIRROR_REPLACED */
    check: (): void => {
      fileGuard.check();
      restoreDetector.check();
    },
    close: (): void => {
      for (const { unlock } of Object.values(leases)) unlock();
      close();
    },
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
export function openStore(
  file: string,
  { self, settings, incarnation = randomUUID(), ...options }: StoreOptions = {},
): Store {
  const mirror = openMirrorFile(file, options);
  try {
    return createStore(mirror, incarnationOf(mirror, incarnation), self, settings);
  } catch (error) {
    mirror.close();
    throw explain(mirror.path, mirror.sqlite.readonly, error);
  }
}
