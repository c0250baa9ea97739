import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCodeOf } from './errors.ts';

/*
 * The sync of a file keeps its content through a power failure, but not its name: a created, renamed or removed name is
 * kept once its directory is synced.
 */

/**
 * Flushes the names in a directory. A directory that this user may not read, or a file system that cannot sync
 * directories, keeps names at its own pace.
 */
export function syncDirectory(path: string): void {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (error) {
    if (['EACCES', 'EPERM'].includes(systemCodeOf(error) ?? '')) return;
    throw error;
  }
  try {
    fsyncSync(fd);
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP', 'EPERM'].includes(systemCodeOf(error) ?? '')) throw error;
  } finally {
    closeSync(fd);
  }
}

/** Creates a directory and its parents, so that a power failure keeps them, and calls `made` after each. */
export function makeDirectory(path: string, made: (path: string) => void = () => {}): void {
  // One level at a time: with `recursive`, Node.js never returns in a place such as /proc.
  if (existsSync(path)) {
    // An attempt that created it may have failed, or been killed, before its name was flushed.
    syncDirectory(dirname(path));
    return;
  }
  makeDirectory(dirname(path), made);
  mkdirSync(path, { mode: 0o700 });
  made(path);
  syncDirectory(dirname(path));
}

/** Renames a file, so that a power failure keeps the new name. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  syncDirectory(dirname(to));
}

/** Replaces a file, which only this user can read, as a whole: after a power failure it has the old text or the new. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  try {
    // A leftover could be a link, or readable by others.
    await rm(temporary, { force: true });
    await writeFile(temporary, text, { flag: 'wx', mode: 0o600, flush: true });
    await renameDurably(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
}
