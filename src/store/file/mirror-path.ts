import { accessSync, chmodSync, closeSync, constants, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDirectory, syncDirectory } from '@catchword/base/durable-names';
import { CatchwordError, messageOf, systemCodeOf } from '@catchword/base/errors';

/*
 * Where the mirror's files are, and who may use them. POSIX drops every lock that a process holds on a file as soon as the
 * process closes any descriptor of that file. SQLite uses such locks. Without them, another program that closes the mirror
 * assumes that it is the last one and deletes the WAL, to which this process still writes. So only SQLite may open an
 * existing mirror or its shared memory; all other code uses the path (`stat`, `access`, `chmod`). The WAL itself is never
 * locked, and may be read.
 */

/** Suffixes of the files that SQLite keeps next to the mirror, with the mirror's own mode. */
export const COMPANIONS = ['-wal', '-shm'] as const;

export interface PlaceOptions {
  /** Fail with NOT_FOUND instead of creating the file. */
  readonly mustExist?: boolean;
  /** Also accept a file that this user may only read. */
  readonly forReading?: boolean;
  /** Never write to the file, also if this user may: not even to upgrade it. */
  readonly readOnly?: boolean;
  /** Permission bits of the mirror's files. Default: 0o600 for a new file; an existing one keeps its own. */
  readonly mode?: number | undefined;
}

export function unusable(path: string, what: string, hint: string, cause?: unknown): CatchwordError {
  return new CatchwordError('MIRROR_UNUSABLE', `${path} ${what}`, { hint, cause });
}

/** Not MIRROR_UNUSABLE, which exits with 2: process managers do not restart that, and the disk may recover. */
export function diskFailed(path: string, what: string, cause: unknown): CatchwordError {
  const hint = 'Free disk space or repair the disk, then restart.';
  return new CatchwordError('MIRROR_WRITE_FAILED', `${path} ${what}`, { hint, cause });
}

/** The error for another process that writes for longer than this one waits. */
export function busy(cause: unknown): CatchwordError {
  const hint = 'Find it with npx catchword status, or check for a backup tool that locks the file.';
  return new CatchwordError('MIRROR_BUSY', 'another process keeps the mirror locked', { hint, cause });
}

/** Undefined if it does not exist. @throws CatchwordError MIRROR_UNUSABLE if this user may not search its directory */
export function lookAt(path: string) {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (cause) {
    const hint = `${causeOf(cause).hint}, or set CATCHWORD_DB to another file.`;
    throw unusable(path, `cannot be reached (${messageOf(cause)})`, hint, cause);
  }
}

/** Creates the file, unless another process has created it meanwhile. */
function createFile(path: string, mode: number): void {
  try {
    // Users who may read the files in the directory may search it.
    // mkdir applies the umask.
    makeDirectory(dirname(path), (made) => chmodSync(made, mode | ((mode & 0o444) >> 2)));
    // A new file has no locks, so its descriptor may be closed.
    closeSync(openSync(path, 'wx', mode));
    chmodSync(path, mode);
    syncDirectory(dirname(path));
  } catch (cause) {
    if (systemCodeOf(cause) === 'EEXIST' && lookAt(path) !== undefined) return;
    const what = `cannot be created (${messageOf(cause)})`;
    if (['EIO', 'ENOSPC', 'EDQUOT'].includes(systemCodeOf(cause) ?? '')) throw diskFailed(path, what, cause);
    throw unusable(path, what, `${causeOf(cause).hint}, or set CATCHWORD_DB to another file.`, cause);
  }
}

export function mayUse(path: string, right: number): boolean {
  return refusalOf(path, right) === null;
}

/** Why this process may not use a path; null if it may. */
export function refusalOf(path: string, right: number): { readonly reason: string; readonly hint: string } | null {
  try {
    accessSync(path, right);
    return null;
  } catch (error) {
    return causeOf(error);
  }
}

/** What the error of the system says about a path, and the beginning of a hint. */
function causeOf(error: unknown): { readonly reason: string; readonly hint: string } {
  const code = systemCodeOf(error) ?? messageOf(error);
  if (code === 'EROFS') {
    return { reason: 'its file system is mounted for reading only (EROFS)', hint: 'Mount it for writing' };
  }
  if (code === 'EACCES' || code === 'EPERM') {
    return { reason: `this user may not (${code})`, hint: 'Run this as the owner of it and of its directory' };
  }
  return { reason: `the system answers ${code}`, hint: 'Look for a typing error in the path, and at its disk' };
}

/** Sets the mode if this user owns the file; only the owner can. */
function setMode(path: string, mode: number): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.uid !== process.geteuid?.() || (found.mode & 0o777) === mode) return;
  chmodSync(path, mode);
}

/**
 * Creates the file if it does not exist, and sets its mode.
 * @returns whether to open it for reading only
 * @throws CatchwordError NOT_FOUND (with `mustExist`), MIRROR_UNUSABLE; existing files are not changed then
 */
export function preparePlace(path: string, { mustExist, mode, forReading, readOnly }: PlaceOptions): boolean {
  const found = lookAt(path);
  if (found === undefined && mustExist) {
    const hint = 'Create it with npx catchword sync, or set CATCHWORD_DB to its path.';
    throw new CatchwordError('NOT_FOUND', `no mirror at ${path}`, { hint });
  }
  if (found === undefined) createFile(path, mode ?? 0o600);
  else if (!found.isFile()) throw unusable(path, 'is not a file', 'Set CATCHWORD_DB to a file.');
  else if (mode !== undefined) for (const end of ['', ...COMPANIONS]) setMode(`${path}${end}`, mode);
  const unread = refusalOf(path, constants.R_OK);
  if (unread !== null) {
    const hint = `${unread.hint}, set CATCHWORD_DB to another file, or let its owner set CATCHWORD_DB_MODE (0640 lets the group read it).`;
    throw unusable(path, `cannot be read: ${unread.reason}`, hint);
  }
  if (readOnly) return true;
  const refusal = refusalOf(path, constants.W_OK);
  if (refusal === null) return false;
  if (forReading) return true;
  throw unusable(path, `cannot be written: ${refusal.reason}`, `${refusal.hint}, or set CATCHWORD_DB to another file.`);
}
