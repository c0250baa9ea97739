import { type BigIntStats, renameSync, rmSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { CatchwordError } from '../errors.ts';
import { COMPANIONS, lookAt } from './place.ts';

/**
 * Compares the files that are open with what is at their paths. A mirror that was deleted, moved, replaced, restored or
 * written over while it is open would otherwise be written to where nobody sees it, and be lost with the process.
 *
 * Another file is told by device and inode. One that was copied over in place keeps both, and is told by its size and
 * time: only a WAL checkpoint changes these, and SQLite counts those.
 */
export interface SameFile {
  /** @throws CatchwordError MIRROR_REPLACED. To be called outside transactions, as it may ask SQLite for its count. */
  check(): void;
  /** Notes what this process has just written, so that it is not taken for another's doing. */
  note(): void;
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
 * has confirmed. Milliseconds.
 */
const CHECKPOINT_MS = 10_000;
const PAUSE_MS = 20;
/** File systems may round a time when they store it, to 10 ms or to one or two whole seconds. Nanoseconds. */
const ROUNDED_NS = 20_000_000n;
const ROUNDED_SECONDS_NS = 2_000_000_000n;
const SECOND_NS = 1_000_000_000n;
const NOTHING = { size: -1n, mtimeNs: 0n };

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

/** Whether a file was written between two looks at it. */
function isWritten(before: typeof NOTHING, now: typeof NOTHING): boolean {
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

/**
 * Takes the WAL of the file that was here away from the one that is here now: SQLite would replay it into that. It is
 * renamed, not deleted: whoever moved the mirror elsewhere may need it.
 */
function setWalAside(real: string, own: readonly (string | null)[]): void {
  const [wal, shm] = COMPANIONS.map((end, index) => (nameOf(`${real}${end}`) === own[index] ? `${real}${end}` : null));
  if (wal != null) renameSync(wal, `${wal}.replaced`);
  if (shm != null) rmSync(shm, { force: true });
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
  let progress = NO_PROGRESS;
  let file = NOTHING;
  let hasWritten = false;
  let lost: CatchwordError | undefined;

  function fileNow(): Pick<BigIntStats, 'size' | 'mtimeNs'> {
    return lookAt(path) ?? NOTHING;
  }

  function progressNow(): Progress {
    const [, frames = 0, moved = 0] = readCount.get() ?? [];
    return { frames, moved, walTime: lookAt(`${real}-wal`)?.mtimeNs ?? 0n };
  }

  /** The progress first: a checkpoint that ends in between is then seen as one, and not as somebody's copy. */
  function note(): void {
    // A reader does no harm to a file that was written over, and SQLite does not count for readers.
    if (isReadonly) return;
    progress = progressNow();
    file = fileNow();
  }

  function fail(what: string, hint: string): never {
    lost = new CatchwordError('MIRROR_REPLACED', `${path} ${what} while it was open; nothing more is written`, {
      hint,
    });
    throw lost;
  }

  function replaced(what: string): never {
    if (!isReadonly) setWalAside(real, companions);
    fail(
      what,
      'Start catchword again to go on with the file that is there now. To replace a mirror, stop catchword first.',
    );
  }

  function checkNames(): void {
    if (lost !== undefined) throw lost;
    const found = nameOf(path);
    const hint = 'Put the file back with its -wal, or start catchword again to load everything into a new one.';
    if (found === null) fail('was deleted or moved away', hint);
    if (found !== opened) replaced('was replaced by another file');
    if (wal === null || nameOf(`${real}-wal`) === wal) return;
    fail('lost its write-ahead log (-wal)', 'Start catchword again. Delete no file of a mirror that is in use.');
  }

  function check(): void {
    checkNames();
    if (isReadonly) return;
    const giveUpAt = performance.now() + CHECKPOINT_MS;
    while (isWritten(file, fileNow())) {
      if (hasCheckpointed(progress, progressNow())) {
        note();
        return;
      }
      if (performance.now() > giveUpAt) replaced('was written over');
      pause();
    }
  }

  note();
  return {
    check,
    note: () => {
      hasWritten = true;
      note();
    },
    hasWritten: () => hasWritten,
  };
}
