import { accessSync, chmodSync, closeSync, constants, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { CatchwordError, messageOf, systemCodeOf } from '../errors.ts';

/*
 * Where the mirror's files are, and who may use them.
 *
 * POSIX drops every lock that a process holds on a file as soon as the process closes any descriptor of that file. SQLite's
 * locks are of that kind, and without them another program that closes the mirror believes that it was the last one, and
 * deletes the WAL that this process goes on writing to. So nothing in catchword opens an existing mirror, its WAL or its
 * shared memory, except SQLite: everything else is asked of the path (`stat`, `access`, `chmod`).
 */

/** Readable and writable by its owner alone. */
const OWNER_ONLY = 0o600;

/** What SQLite keeps next to the mirror, with the mirror's own mode. */
export const COMPANIONS = ['-wal', '-shm'] as const;

export interface PlaceOptions {
  /** Fail with NOT_FOUND instead of creating the file. */
  readonly mustExist: boolean;
  /** Permission bits of the mirror's files; undefined: 0600 for a new file, and an existing one keeps its own. */
  readonly mode: number | undefined;
  /** A file that this user may read but not write is good enough. */
  readonly forReading: boolean;
}

export function unusable(path: string, what: string, hint: string, cause?: unknown): CatchwordError {
  return new CatchwordError('MIRROR_UNUSABLE', `${path} ${what}`, { hint, cause });
}

/** Another process writes for longer than this one waits. */
export function busy(cause: unknown): CatchwordError {
  return new CatchwordError('MIRROR_BUSY', 'another process keeps the mirror locked', {
    hint: 'Find it with: npx catchword status. A backup tool may hold the file as well.',
    cause,
  });
}

/**
 * What is at a path, without opening it; undefined for nothing.
 * @throws CatchwordError MIRROR_UNUSABLE if this user may not even look
 */
export function lookAt(path: string) {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (cause) {
    const hint = 'Ask the owner of the folder for the right to search it, or set CATCHWORD_DB to another file.';
    throw unusable(path, `cannot be reached (${messageOf(cause)})`, hint, cause);
  }
}

/**
 * Whether there is something at a path; asked without opening it.
 * @throws CatchwordError MIRROR_UNUSABLE if this user may not even look
 */
export function mirrorExists(path: string): boolean {
  return lookAt(path) !== undefined;
}

/** A folder is searched by whoever may read the files in it. */
function directoryMode(mode: number): number {
  return mode | ((mode & 0o444) >> 2);
}

/** One level at a time: in a place such as /proc, Node's own recursive form tries for ever. */
function makeDirectory(path: string, mode: number): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path), mode);
  mkdirSync(path, { mode: 0o700 });
  // The process's umask would take bits away.
  chmodSync(path, mode);
}

/** A file that another process has created in the meantime is left as it is. */
function createFile(path: string, mode: number): void {
  try {
    makeDirectory(dirname(path), directoryMode(mode));
    // A new file carries no locks, so its descriptor may be closed.
    closeSync(openSync(path, 'wx', mode));
    chmodSync(path, mode);
  } catch (cause) {
    if (systemCodeOf(cause) === 'EEXIST' && lookAt(path) !== undefined) return;
    const hint = 'Set CATCHWORD_DB to a place this user may write.';
    throw unusable(path, `cannot be created (${messageOf(cause)})`, hint, cause);
  }
}

function mayUse(path: string, right: number): boolean {
  try {
    accessSync(path, right);
    return true;
  } catch {
    return false;
  }
}

/** Only the owner can set it, and another user has no reason to be refused for that. */
function setMode(path: string, mode: number): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.uid !== process.geteuid?.() || (found.mode & 0o777) === mode) return;
  chmodSync(path, mode);
}

/**
 * Creates the file if there is none, and gives it its mode.
 * @param path of the file itself, without links
 * @returns whether this user may read it only
 * @throws CatchwordError NOT_FOUND (with `mustExist`), MIRROR_UNUSABLE; what is there is left as it was
 */
export function preparePlace(path: string, { mustExist, mode, forReading }: PlaceOptions): { readonly: boolean } {
  const found = lookAt(path);
  if (found === undefined && mustExist) {
    throw new CatchwordError('NOT_FOUND', `there is no mirror at ${path}`, {
      hint: 'Make one with: npx catchword sync. Or set CATCHWORD_DB to where it is.',
    });
  }
  if (found === undefined) createFile(path, mode ?? OWNER_ONLY);
  else if (!found.isFile()) throw unusable(path, 'is not a file', 'Set CATCHWORD_DB to a file.');
  else if (mode !== undefined) for (const end of ['', ...COMPANIONS]) setMode(`${path}${end}`, mode);
  if (!mayUse(path, constants.R_OK)) {
    const hint =
      'Ask its owner to set CATCHWORD_DB_MODE (0640 lets the group read it), or set CATCHWORD_DB to another file.';
    throw unusable(path, 'cannot be read by this user (EACCES)', hint);
  }
  if (mayUse(path, constants.W_OK)) return { readonly: false };
  if (forReading) return { readonly: true };
  const hint = 'Run this as its owner, or set CATCHWORD_DB to another file.';
  throw unusable(path, 'cannot be written by this user', hint);
}
