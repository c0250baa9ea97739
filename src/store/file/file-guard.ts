import { type BigIntStats, closeSync, openSync, readSync } from 'node:fs';
import BetterSqlite, { type Database } from 'better-sqlite3';
import { createQueries } from '../schema/queries.ts';
import { type CheckContent, createInodeCheck } from './inode-check.ts';
import { lookAt } from './mirror-path.ts';

const PAUSE_MS = 20;
/** Of the WAL before it is moved into the file: a page that changes often is moved once. Bytes. */
const LONG_WAL = 64 * 2 ** 20;
/** By which the WAL grows before a checkpoint that a reader blocked is retried. Bytes. */
const LONGER_WAL = 16 * 2 ** 20;
/** File systems may round times to 10 ms, or to one or two whole seconds. Nanoseconds. */
const ROUNDED_NS = 20_000_000n;
const ROUNDED_SECONDS_NS = 2_000_000_000n;
const SECOND_NS = 1_000_000_000n;

/** Bytes of the WAL's header. */
const SALT = { start: 16, end: 24 };

type FileState = Pick<BigIntStats, 'size' | 'mtimeNs'>;

const NOTHING: FileState = { size: -1n, mtimeNs: 0n };
/** Noted in the mirror's row while a checkpoint runs; if it is interrupted, until the next write. */
const CHECKPOINT = 'checkpoint';

function parseState(text: string | null): FileState {
  const [size, mtimeNs] = (text ?? '').split(' ');
  return size === undefined || mtimeNs === undefined ? NOTHING : { size: BigInt(size), mtimeNs: BigInt(mtimeNs) };
}

/** Frames in the WAL, and how many of them were moved into the file. */
interface Progress {
  readonly frames: number;
  readonly moved: number;
  /** The salt in the header of the WAL, which is another one after each restart; empty if the WAL is. */
  readonly salt: string;
  /** Another number after each commit of another connection. SQLite knows it without the file and the WAL. */
  readonly version: number;
}

/**
 * Whether the WAL began again between two checks, although its count does not show it: it grew as long as before, or was
 * emptied twice. The salt alone may be that of a WAL that was copied over this one, and the version that of any commit.
 */
function hasBegunAgain(before: Progress, now: Progress): boolean {
  const isOtherWal = before.salt !== '' && now.salt !== before.salt;
  return now.version !== before.version && (now.frames === 0 || isOtherWal);
}

/** Whether SQLite moved frames into the file between two checks. Frames that were only added do not change the file. */
function hasCheckpointed(before: Progress, now: Progress): boolean {
  return now.moved !== before.moved || now.frames < before.frames || hasBegunAgain(before, now);
}

/** The same for this process's own write, which adds frames. It may have restarted the WAL, if all frames were moved. */
function hasCheckpointedInWrite(before: Progress, now: Progress): boolean {
  // Another process emptied the WAL after this write.
  if (now.frames === 0) return true;
  if (now.frames <= before.frames) return now.moved > 0;
  const mayHaveBegunAgain = before.moved === before.frames;
  return now.moved !== before.moved && !(mayHaveBegunAgain && now.moved === 0);
}

function isWritten(before: FileState, now: FileState): boolean {
  const rounded = now.mtimeNs % SECOND_NS === 0n ? ROUNDED_SECONDS_NS : ROUNDED_NS;
  const passed = now.mtimeNs - before.mtimeNs;
  return now.size !== before.size || passed > rounded || passed < -rounded;
}

/** Reads it past SQLite, which does not tell it. Without harm, because SQLite holds no lock on the WAL itself. */
function saltOf(wal: string): string {
  try {
    const header = Buffer.alloc(SALT.end);
    const file = openSync(wal, 'r');
    try {
      return header.toString('hex', SALT.start, readSync(file, header));
    } finally {
      closeSync(file);
    }
  } catch {
    // Whether the WAL is there at all, `createInodeCheck` checks.
    return '';
  }
}

export function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
}

function createFileStates(sqlite: Database, path: string, real: string) {
  const { tuple, value, number, write } = createQueries(sqlite);
  const readCount = tuple<[], [busy: number, frames: number, moved: number]>('PRAGMA wal_checkpoint(NOOP)');
  const readVersion = number('PRAGMA data_version');
  const noted = value<[], string | null>('SELECT file_state FROM mirror WHERE id = 1');
  const note = write('UPDATE mirror SET file_state = :state WHERE id = 1 AND file_state IS NOT :state');

  return {
    /** Bytes. Another program that repaired the mirror may have changed it. */
    pageSize: number('PRAGMA page_size'),
    file: (): FileState => lookAt(path) ?? NOTHING,
    progress: (): Progress => {
      const count = readCount();
      const frames = count?.[1] ?? 0;
      return { frames, moved: count?.[2] ?? 0, salt: saltOf(`${real}-wal`), version: readVersion() };
    },
    isNoted: (found: FileState): boolean => {
      try {
        const state = noted();
        return state === CHECKPOINT || !isWritten(parseState(state), found);
      } catch (error) {
        // A file that was copied over this one may be unreadable.
        if (error instanceof BetterSqlite.SqliteError) return false;
        throw error;
      }
    },
    note: ({ size, mtimeNs }: FileState) => note({ state: `${size} ${mtimeNs}` }),
    noteCheckpoint: () => note({ state: CHECKPOINT }),
  };
}

export type FileGuard = ReturnType<typeof createFileGuard>;

/**
 * Compares the open files with the files at their paths, so that nothing is written to a file that has no name any more.
 *
 * A different device or inode shows another file. A file that was copied over in place keeps both, but its size or time
 * changes; otherwise only a WAL checkpoint changes these. There are two ways to know of a checkpoint, because each
 * misses some: SQLite counts the frames of the WAL that were moved into the file, but starts at 0 again when the WAL
 * does (which the salt of the WAL shows), and does not count a checkpoint that a kill or a full disk interrupts; and
 * each write and each checkpoint is noted in the mirror, so that processes that rarely check see what the others
 * accepted.
 *
 * A change that is still unexplained may be harmless, such as `touch`, or a checkpoint of another program that is not
 * complete. Nothing waits for that. This process forgets the pages that it has in memory, so that it knows no more than
 * one that is started now, and goes on, while the content is checked: only if the file and the WAL do not fit together,
 * or the WAL is another one, the file is another one. Until then the WAL is not moved into the file.
 * @param real, opened, checkApart as `createInodeCheck`
 */
export function createFileGuard(
  sqlite: Database,
  path: string,
  real: string,
  opened: string | null,
  checkApart?: CheckContent,
) {
  const identity = createInodeCheck(path, real, opened, sqlite.readonly, checkApart);
  const states = createFileStates(sqlite, path, real);
  let progress: Progress = { frames: -1, moved: -1, salt: '', version: -1 };
  let file = NOTHING;
  let hasWritten = false;
  /** Frames at the last attempt to move them. */
  let tried = 0;
  function remember(): void {
    progress = states.progress();
    file = states.file();
  }

  /** Notes how the file is now. @returns whether SQLite itself has changed it, if it has changed */
  function isExplained(hasMoved: (before: Progress, now: Progress) => boolean): boolean {
    const before = progress;
    const written = file;
    // Reads the progress first: a checkpoint that ends in between is then not mistaken for a copied file.
    remember();
    if (!isWritten(written, file) || hasMoved(before, progress)) return true;
    sqlite.exec('PRAGMA shrink_memory');
    return states.isNoted(file);
  }

  /** Call it outside transactions, because it asks SQLite for its count. @throws CatchwordError MIRROR_REPLACED */
  function check(): void {
    identity.check();
    // A reader cannot damage an overwritten file, and SQLite does not count frames for readers.
    if (sqlite.readonly) return;
    const before = progress;
    if (isExplained(hasCheckpointed)) return;
    if (progress.salt === before.salt || progress.version !== before.version) identity.checkContent();
    else identity.fail('was changed by another program', 'Restart catchword. To restore a backup: catchword restore.');
  }

  function checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): void {
    try {
      states.noteCheckpoint();
      sqlite.exec(`PRAGMA wal_checkpoint(${mode})`);
      remember();
      // After TRUNCATE the next write notes it, so that the WAL stays empty.
      if (mode === 'PASSIVE') states.note(file);
    } catch (error) {
      // Like SQLite's own checkpoints, one that fails, because the disk is full for example, is retried later.
      if (!(error instanceof BetterSqlite.SqliteError)) throw error;
    }
    remember();
  }

  if (!sqlite.readonly) remember();
  return {
    check,
    /** The same, and waits for the check of the content, if one is under way. @throws CatchwordError MIRROR_REPLACED */
    checkFully: (): void => {
      check();
      identity.checkFully();
    },
    /** In a write transaction: notes the file's state in the mirror. @returns false if it changed since `check` */
    begun: (): boolean => {
      const found = states.file();
      if (isWritten(file, found)) return false;
      states.note(found);
      return true;
    },
    /** Call it after each write: moves a WAL that has grown long into the file. @throws CatchwordError MIRROR_REPLACED */
    written: (): void => {
      hasWritten = true;
      if (!isExplained(hasCheckpointedInWrite)) identity.checkContent();
      if (progress.frames < tried) tried = 0;
      const pageSize = states.pageSize();
      const isShort = (progress.frames - progress.moved) * pageSize < LONG_WAL;
      if (isShort || (progress.frames - tried) * pageSize < LONGER_WAL || identity.isChecking()) return;
      tried = progress.frames;
      checkpoint('PASSIVE');
    },
    /** Moves the WAL into the file. TRUNCATE also empties it, if no other process uses it. @throws MIRROR_REPLACED */
    checkpoint: (mode: 'PASSIVE' | 'TRUNCATE'): void => {
      check();
      if (!identity.isChecking()) checkpoint(mode);
    },
    hasWritten: () => hasWritten,
  };
}
