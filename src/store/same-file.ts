import { type BigIntStats, renameSync, rmSync } from 'node:fs';
import BetterSqlite, { type Database } from 'better-sqlite3';
import { CatchwordError } from '../errors.ts';
import { COMPANIONS, lookAt } from './place.ts';
import { keepStatements } from './statements.ts';

/**
 * Compares the files that are open with what is at their paths. A mirror that was deleted, moved, replaced, restored or
 * written over while it is open would otherwise be written to where nobody sees it, and be lost with the process.
 *
 * Another file is told by device and inode. One that was copied over in place keeps both, and is told by its size and
 * time: only a WAL checkpoint changes these. Whether there was one is known in three ways, because none sees all of them:
 * SQLite counts the frames of the WAL that are in the file, but begins at 0 again when the WAL does; and each write notes
 * the file's size and time in the mirror, so that processes that seldom look find what the others have accepted.
 *
 * catchword makes its checkpoints itself, and notes in the mirror that one has begun: a full disk or a kill may cut it
 * short, and SQLite does not count it then.
 *
 * A change that none of these explains may still be harmless, such as `touch`. So the WAL stays where it is, unless the
 * file and the WAL do not fit together: that proves that the file is another one.
 */
export interface SameFile {
  /** @throws CatchwordError MIRROR_REPLACED. To be called outside transactions, as it asks SQLite for its count. */
  check(): void;
  /** In a write transaction: whether the file is as `check` found it; if so, the mirror notes that. */
  begun(): boolean;
  /**
   * After this process has written: moves the WAL into the file if it has grown long.
   * @throws CatchwordError MIRROR_REPLACED
   */
  written(): void;
  /**
   * Moves the WAL into the file. TRUNCATE also empties it, if no other process is reading or writing.
   * @throws CatchwordError MIRROR_REPLACED
   */
  checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): void;
  hasWritten(): boolean;
}

/** Where a mirror's files are. */
export interface FilePaths {
  /** As the settings name it. */
  readonly path: string;
  /** The file itself, without links: SQLite keeps the WAL next to that. */
  readonly real: string;
}

/**
 * How long another process's WAL checkpoint may have changed the file without SQLite counting it: it counts after the disk
 * has confirmed. After that the content is looked at. Milliseconds.
 */
const CHECKPOINT_MS = 10_000;
/** The same after a write of one's own, which has to go on, and does where the content is sound. */
const CHECKPOINT_IN_WRITE_MS = 1_000;
const PAUSE_MS = 20;
/** Frames that wait in the WAL until they are moved into the file, 64 MiB: a page that changes often is moved once. */
const LONG_WAL = 4096;
/** Where a reader keeps them from being moved, that is tried again when there are so many more. */
const LONGER_WAL = 1024;
/** File systems may round a time when they store it, to 10 ms or to one or two whole seconds. Nanoseconds. */
const ROUNDED_NS = 20_000_000n;
const ROUNDED_SECONDS_NS = 2_000_000_000n;
const SECOND_NS = 1_000_000_000n;

type FileState = Pick<BigIntStats, 'size' | 'mtimeNs'>;

const NOTHING: FileState = { size: -1n, mtimeNs: 0n };

/** What was found out about files that this process has open, by path and inode: all stores of a file end for one reason. */
const lostFiles = new Map<string, CatchwordError>();

/** Stands in the mirror's row while a checkpoint is under way; until the next write where it was cut short. */
const CHECKPOINT = 'checkpoint';

/** For the mirror's row. */
function formatState({ size, mtimeNs }: FileState): string {
  return `${size} ${mtimeNs}`;
}

function parseState(text: string | null): FileState {
  const [size, mtimeNs] = (text ?? '').split(' ');
  return size === undefined || mtimeNs === undefined ? NOTHING : { size: BigInt(size), mtimeNs: BigInt(mtimeNs) };
}

/** Frames in the WAL, how many of them are in the file, and when the WAL was last written. */
interface Progress {
  readonly frames: number;
  readonly moved: number;
  readonly walTime: bigint;
}

const NO_PROGRESS: Progress = { frames: -1, moved: -1, walTime: 0n };

/** Whether SQLite moved frames into the file between two looks. Frames that were only added do not change the file. */
function hasCheckpointed(before: Progress, now: Progress): boolean {
  if (now.moved !== before.moved || now.frames < before.frames) return true;
  return now.frames === before.frames && now.walTime !== before.walTime;
}

/**
 * The same between the begin and the end of one's own write, which adds frames. In it the WAL may have begun again, with
 * nothing moved; SQLite does that only where everything had been moved.
 */
function hasCheckpointedInWrite(before: Progress, now: Progress): boolean {
  // Another process has emptied the WAL after this write.
  if (now.frames === 0) return true;
  if (now.frames <= before.frames) return now.moved > 0;
  const mayHaveBegunAgain = before.moved === before.frames;
  return now.moved !== before.moved && !(mayHaveBegunAgain && now.moved === 0);
}

/** Whether a file was written between two looks at it. */
function isWritten(before: FileState, now: FileState): boolean {
  const rounded = now.mtimeNs % SECOND_NS === 0n ? ROUNDED_SECONDS_NS : ROUNDED_NS;
  const passed = now.mtimeNs - before.mtimeNs;
  return now.size !== before.size || passed > rounded || passed < -rounded;
}

/** Device and inode of what is at a path; null for nothing. */
export function nameOf(path: string): string | null {
  const found = lookAt(path);
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

export function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
}

/** A path that is free: nothing that was set aside before is overwritten. */
function freePath(path: string): string {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? path : `${path}-${number}`;
    if (lookAt(candidate) === undefined) return candidate;
  }
}

/**
 * Takes the WAL of the file that was here away from the one that is here now: SQLite would replay it into that. It is
 * renamed, not deleted: whoever moved the mirror elsewhere may need it.
 * @returns where it is now; null where it was gone
 */
function setWalAside(real: string, own: readonly (string | null)[]): string | null {
  const [wal, shm] = COMPANIONS.map((end, index) => (nameOf(`${real}${end}`) === own[index] ? `${real}${end}` : null));
  const aside = wal == null ? null : freePath(`${wal}.replaced`);
  if (wal != null && aside !== null) renameSync(wal, aside);
  if (shm != null) rmSync(shm, { force: true });
  return aside;
}

/**
 * Whether the file and its WAL fit together, as seen by a connection that has kept nothing of them. Takes seconds per
 * gigabyte.
 */
function isSound(real: string): boolean {
  let fresh: Database | undefined;
  try {
    fresh = new BetterSqlite(real, { readonly: true });
    return keepStatements(fresh).prepare('PRAGMA integrity_check(1)').pluck().get() === 'ok';
  } catch (error) {
    return !(error instanceof BetterSqlite.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code));
  } finally {
    fresh?.close();
  }
}

/**
 * @param opened device and inode of the file when it was opened
 * @param isReadonly without the right to write, there may be no WAL, and nothing is set aside
 */
export function createSameFile(
  sqlite: Database,
  { path, real }: FilePaths,
  opened: string | null,
  isReadonly: boolean,
): SameFile {
  const companions = COMPANIONS.map((end) => nameOf(`${real}${end}`));
  const [wal = null] = companions;
  const readCount = sqlite
    .prepare<[], [busy: number, frames: number, moved: number]>('PRAGMA wal_checkpoint(NOOP)')
    .raw();
  const readNoted = sqlite.prepare<[], string | null>('SELECT file_state FROM mirror WHERE id = 1').pluck();
  const noteState = sqlite.prepare('UPDATE mirror SET file_state = ? WHERE id = 1');
  let progress = NO_PROGRESS;
  let file = NOTHING;
  let hasWritten = false;
  /** Frames at the last try to move them. */
  let tried = 0;
  const key = `${real} ${opened}`;

  function fileNow(): FileState {
    return lookAt(path) ?? NOTHING;
  }

  function progressNow(): Progress {
    const [, frames = 0, moved = 0] = readCount.get() ?? [];
    return { frames, moved, walTime: lookAt(`${real}-wal`)?.mtimeNs ?? 0n };
  }

  function fail(what: string, hint: string): never {
    const lost = new CatchwordError('MIRROR_REPLACED', `${path} ${what} while it was open; nothing more is written`, {
      hint,
    });
    lostFiles.set(key, lost);
    // At its natural end Node.js would close the mirror, and SQLite would write to the files that are there now.
    process.once('beforeExit', () => process.exit());
    throw lost;
  }

  function replaced(what: string): never {
    const aside = isReadonly ? null : setWalAside(real, companions);
    const kept = aside === null ? '' : ` The changes that were not in the old file yet are in ${aside}.`;
    const hint = 'Start catchword again to go on with the file that is there now.';
    fail(what, `${hint} To replace a mirror, stop catchword first.${kept}`);
  }

  function changed(): never {
    if (!isSound(real)) replaced('was written over');
    const hint =
      'Start catchword again: nothing is lost. To restore a backup, stop catchword first, and delete the -wal and the -shm.';
    fail('was changed by another program', hint);
  }

  function checkNames(): void {
    const lost = lostFiles.get(key);
    if (lost !== undefined) throw lost;
    const found = nameOf(path);
    const hint = 'Put the file back with its -wal, or start catchword again to load everything into a new one.';
    if (found === null) fail('was deleted or moved away', hint);
    if (found !== opened) replaced('was replaced by another file');
    if (wal === null || nameOf(`${real}-wal`) === wal) return;
    fail('lost its write-ahead log (-wal)', 'Start catchword again. Delete no file of a mirror that is in use.');
  }

  /** Waits until the file is as it was, or what changed it is known. @returns whether that came to be */
  function isExplained(waitMs: number, explains: (now: Progress, found: FileState) => boolean): boolean {
    const giveUpAt = performance.now() + waitMs;
    for (;;) {
      // The progress first: a checkpoint that ends in between is then seen as one, and not as somebody's copy.
      const now = progressNow();
      const found = fileNow();
      const known = !isWritten(file, found) || explains(now, found);
      const isOver = performance.now() > giveUpAt;
      if (known || isOver) {
        progress = now;
        file = found;
        return known;
      }
      pause();
    }
  }

  function isNoted(found: FileState): boolean {
    try {
      const noted = readNoted.get() ?? null;
      return noted === CHECKPOINT || !isWritten(parseState(noted), found);
    } catch (error) {
      // What was copied over the file may be unreadable now.
      if (error instanceof BetterSqlite.SqliteError) return false;
      throw error;
    }
  }

  function look(): void {
    progress = progressNow();
    file = fileNow();
  }

  function check(): void {
    checkNames();
    // A reader does no harm to a file that was written over, and SQLite does not count for readers.
    if (isReadonly) return;
    const known = isExplained(CHECKPOINT_MS, (now, found) => hasCheckpointed(progress, now) || isNoted(found));
    if (!known) changed();
  }

  function checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): void {
    try {
      noteState.run(CHECKPOINT);
      sqlite.exec(`PRAGMA wal_checkpoint(${mode})`);
      look();
      // Of a WAL that is to stay empty, the next write notes it.
      if (mode === 'PASSIVE') noteState.run(formatState(file));
    } catch (error) {
      // As SQLite's own checkpoints: what cannot be done now, because of a full disk, say, is tried again later.
      if (!(error instanceof BetterSqlite.SqliteError)) throw error;
    }
    look();
  }

  if (!isReadonly) look();
  return {
    check,
    begun: () => {
      const found = fileNow();
      if (isWritten(file, found)) return false;
      const state = formatState(found);
      if (readNoted.get() !== state) noteState.run(state);
      return true;
    },
    written: () => {
      hasWritten = true;
      const known = isExplained(
        CHECKPOINT_IN_WRITE_MS,
        (now, found) => hasCheckpointedInWrite(progress, now) || isNoted(found),
      );
      if (!known && !isSound(real)) replaced('was written over');
      if (progress.frames < tried) tried = 0;
      if (progress.frames - progress.moved < LONG_WAL || progress.frames < tried + LONGER_WAL) return;
      tried = progress.frames;
      checkpoint('PASSIVE');
    },
    checkpoint: (mode) => {
      check();
      checkpoint(mode);
    },
    hasWritten: () => hasWritten,
  };
}
