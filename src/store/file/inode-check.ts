import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncDirectory } from '@catchword/base/durable-names';
import { CatchwordError } from '@catchword/base/errors';
import { requireForcedExit } from '@catchword/base/forced-exit';
import BetterSqlite, { type Database } from 'better-sqlite3';
import { openSqlite } from '../schema/statements.ts';
import { COMPANIONS, lookAt } from './mirror-path.ts';

/** Errors of replaced files that are still open, by path and inode: all stores of a file fail with the same one. */
const lostFiles = new Map<string, CatchwordError>();

/** Device and inode of the file at a path; null if it does not exist. */
export function nameOf(path: string): string | null {
  const found = lookAt(path);
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

/** A path that is free, so that files which were set aside before are not overwritten. */
export function freePath(path: string): string {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? path : `${path}-${number}`;
    if (lookAt(candidate) === undefined) return candidate;
  }
}

/**
 * Renames the WAL of the previous file, because SQLite would replay it into the new one. A file that was moved elsewhere
 * may need it. @returns its new path; null if it was gone
 */
function setWalAside(real: string, own: readonly (string | null)[]): string | null {
  const [wal, shm] = COMPANIONS.map((end, index) => (nameOf(`${real}${end}`) === own[index] ? `${real}${end}` : null));
  const aside = wal == null ? null : freePath(`${wal}.replaced`);
  if (wal != null && aside !== null) renameSync(wal, aside);
  if (shm != null) rmSync(shm, { force: true });
  // After a power failure, the WAL must not be back at the new file.
  syncDirectory(dirname(real));
  return aside;
}

/** Does what `isSound` does, without blocking this thread, until `signal` aborts. */
export type CheckContent = (real: string, signal: AbortSignal) => Promise<boolean>;

/** Whether the file and its WAL fit together, as a new connection sees them. Takes seconds per gigabyte. */
export function isSound(real: string): boolean {
  let fresh: Database | undefined;
  try {
    fresh = openSqlite(real, { readonly: true });
    return fresh.prepare('PRAGMA integrity_check(1)').pluck().get() === 'ok';
  } catch (error) {
    return !(error instanceof BetterSqlite.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code));
  } finally {
    fresh?.close();
  }
}

/**
 * Tells whether the files of an open mirror are still the ones at its path, and throws if they are not.
 * @param real the file itself, without links: SQLite keeps the WAL next to it
 * @param opened device and inode of the file when it was opened
 * @param isReadonly this user may only read the file, so the WAL is not set aside
 * @param checkApart checks the content; default: this thread does
 */
export function createInodeCheck(
  path: string,
  real: string,
  opened: string | null,
  isReadonly: boolean,
  checkApart?: CheckContent,
) {
  const companions = COMPANIONS.map((end) => nameOf(`${real}${end}`));
  const [wal = null] = companions;
  const key = `${real} ${opened}`;
  /** Ends the check of the content that is under way. */
  let checking: AbortController | undefined;

  /** Ends all writing to the file. @throws CatchwordError MIRROR_REPLACED */
  function fail(what: string, hint: string): never {
    const text = `${path} ${what} while it was open; nothing more is written`;
    const lost = new CatchwordError('MIRROR_REPLACED', text, { hint });
    lostFiles.set(key, lost);
    // Closing the mirror would make SQLite write to the files that are there now.
    if (!isReadonly) requireForcedExit();
    throw lost;
  }

  function replaced(what: string): never {
    const aside = isReadonly ? null : setWalAside(real, companions);
    const kept = aside === null ? '' : ` The newest changes of the old file are in ${aside}.`;
    const hint = 'Restart catchword to continue with the new file.';
    fail(what, `${hint} To replace a mirror, stop catchword first.${kept}`);
  }

  /** Compares device and inode. @throws CatchwordError MIRROR_REPLACED */
  function check(): void {
    const lost = lostFiles.get(key);
    if (lost !== undefined) throw lost;
    const found = nameOf(path);
    const hint = 'Put the file back with its -wal, or restart catchword to load everything into a new file.';
    if (found === null) fail('was deleted or moved away', hint);
    if (found !== opened) replaced('was replaced by another file');
    if (wal === null || nameOf(`${real}-wal`) === wal) return;
    fail('lost its write-ahead log (-wal)', 'Restart catchword. Do not delete files of a mirror that is in use.');
  }

  function checkHere(): void {
    if (!isSound(real)) replaced('was written over');
  }

  /** @throws CatchwordError MIRROR_REPLACED */
  function checkFully(): void {
    if (checking === undefined) return;
    checking.abort();
    checking = undefined;
    checkHere();
  }

  async function checkMeanwhile(apart: CheckContent, own: AbortController): Promise<void> {
    // Also if its process was killed, which shows nothing.
    const sound = await apart(real, own.signal).catch(() => null);
    if (checking !== own) return;
    checking = undefined;
    try {
      if (sound === null) checkHere();
      else if (!sound) replaced('was written over');
    } catch {
      // The next check throws it.
    }
  }

  return {
    check,
    /** Checks that the file and its WAL fit together; with `checkApart`, a later `check` throws. @throws MIRROR_REPLACED */
    checkContent: (): void => {
      if (checkApart === undefined) checkHere();
      else {
        checking?.abort();
        checking = new AbortController();
        void checkMeanwhile(checkApart, checking);
      }
    },
    isChecking: (): boolean => checking !== undefined,
    /** Ends the check under way, and checks in this thread instead. @throws CatchwordError MIRROR_REPLACED */
    checkFully,
    fail,
  };
}
