import { constants, lstatSync, realpathSync, renameSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { syncDirectory } from '@catchword/base/durable-names';
import { usageError } from '@catchword/base/errors';
import { holdFile, NO_LOCKS } from '@catchword/base/file-lock';
import { backupFailed, type Copied, removeCopy } from './copy-mirror.ts';
import { type Copy, copyInterrupted } from './copy-subprocess.ts';
import { nameOf } from './inode-check.ts';
import { COMPANIONS, lookAt, preparePlace, refusalOf } from './mirror-path.ts';

export interface CopyOptions {
  readonly copy: Copy;
  readonly signal: AbortSignal;
}

/** Runs `work` while no other process makes or restores the same file. @throws CatchwordError USAGE */
export async function withOwnFile<T>(path: string, work: () => Promise<T>): Promise<T> {
  const release = holdFile(path);
  if (release === null) {
    throw usageError(`${path} is being written by another command`, `Wait until it ends. ${NO_LOCKS}`);
  }
  try {
    return await work();
  } finally {
    release();
  }
}

/** Makes a copy under a temporary name, calls `use`, and removes what is left of it. @throws as `copyMirror`; INTERRUPTED */
export async function withCopy<T>(from: string, part: string, options: CopyOptions, use: (copied: Copied) => T) {
  try {
    const copied = await options.copy(from, part, options.signal);
    if (options.signal.aborted) throw copyInterrupted();
    return use(copied);
  } finally {
    removeCopy(part);
  }
}

/** The name of a file that is not complete. */
export function partOf(target: string): string {
  return `${target}.part`;
}

/**
 * @param replaces whether a file of this name may exist; undefined: the command cannot replace one
 * @returns where to write a file, without links. @throws CatchwordError USAGE
 */
export function checkedTarget(file: string, db: string, replaces?: boolean): string {
  const path = resolve(file);
  const directory = dirname(path);
  const hint = 'Name a file that does not exist yet, in a directory that this user can write.';
  if (lookAt(directory)?.isDirectory() !== true) throw usageError(`${directory} is not a directory`, hint);
  const refusal = refusalOf(directory, constants.W_OK | constants.X_OK);
  if (refusal !== null) throw usageError(`${directory} cannot be written: ${refusal.reason}`, hint);
  const real = join(realpathSync(directory), basename(path));
  const mirror = realpathSync(db);
  const isMirror = [real, partOf(real)].some((one) => nameOf(one) === nameOf(mirror));
  if (isMirror || COMPANIONS.some((end) => real === `${mirror}${end}`)) {
    throw usageError(`${file} belongs to the mirror itself`, hint);
  }
  // A link that leads nowhere exists too: it may name a disk that is not mounted.
  const found = lstatSync(real, { throwIfNoEntry: false });
  if (found !== undefined && replaces === undefined) {
    throw usageError(`${file} exists; catchword never replaces a file`, hint);
  }
  if (found !== undefined && replaces === false) throw usageError(`${file} exists`, 'To replace it: add --replace.');
  if (found?.isFile() === false) throw usageError(`${file} is not a file, so it is not replaced`, hint);
  return real;
}

/**
 * Writes a backup of the mirror, which other processes may write meanwhile. The file gets its name when it is complete,
 * flushed and checked; after a failure or a power failure it does not exist.
 * @param file must not exist
 * @throws CatchwordError USAGE, NOT_FOUND, MIRROR_UNUSABLE, MIRROR_BUSY, BACKUP_FAILED, INTERRUPTED
 */
export async function backUp(db: string, file: string, options: CopyOptions): Promise<Copied> {
  preparePlace(resolve(db), { mustExist: true, readOnly: true });
  const target = checkedTarget(file, db);
  const part = partOf(target);
  return await withOwnFile(target, () =>
    withCopy(realpathSync(db), part, options, (copied) => {
      checkedTarget(file, db);
      try {
        renameSync(part, target);
        syncDirectory(dirname(target));
      } catch (cause) {
        throw backupFailed(target, cause);
      }
      return copied;
    }),
  );
}
