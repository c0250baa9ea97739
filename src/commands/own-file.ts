import { realpathSync } from 'node:fs';
import { type FileHandle, lstat, open, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CatchwordError, messageOf } from '../errors.ts';
import type { FileIdentity } from './credentials/input.ts';

/** A file that a command writes, open for reading and appending. */
export interface OwnFile {
  readonly path: string;
  readonly file: FileHandle;
  /** Whether opening it made it. */
  readonly isNew: boolean;
}

export function unwritable(path: string, error: unknown): CatchwordError {
  return new CatchwordError('USAGE', `${path} cannot be written: ${messageOf(error)}`, {
    hint: 'Name a file on a disk with room, in a directory that this user may write to.',
  });
}

/**
 * It holds tokens, or what is made of them: for this user alone (mode 0600), whoever made it.
 * @throws CatchwordError USAGE where it is somebody else's
 */
export async function makeOwn({ path, file }: OwnFile): Promise<void> {
  await file.chmod(0o600).catch((cause: unknown) => {
    throw new CatchwordError('USAGE', `${path} cannot be kept from other users: ${messageOf(cause)}`, {
      hint: 'It belongs to another user, or its disk knows no owners: name another file with --out.',
      cause,
    });
  });
}

/** Opening a pipe would wait for its reader, and a mode set on a device, such as /dev/null, is everybody's. */
function irregular(path: string): CatchwordError {
  return new CatchwordError('USAGE', `${path} is no regular file`, {
    hint: 'Name another file with --out, or leave it away to print the results.',
  });
}

/**
 * The path without links of a file to write, which need not be there yet.
 * @throws CatchwordError USAGE where it can be no regular file
 */
export async function targetOf(path: string): Promise<string> {
  if (path === '') throw irregular('a file without a name');
  const found = await stat(path).catch(() => null);
  if (found?.isFile() === false) throw irregular(path);
  try {
    if (found !== null) return realpathSync(path);
    const target = join(realpathSync(dirname(path)), basename(path));
    if ((await lstat(target).catch(() => null)) === null) return target;
  } catch (error) {
    throw unwritable(path, error);
  }
  throw new CatchwordError('USAGE', `${path} is a link to a file that is not there`, {
    hint: 'Name that file itself with --out.',
  });
}

/**
 * Makes the file where it is not there, for this user alone (mode 0600).
 * @throws CatchwordError USAGE
 */
export async function openOwn(path: string): Promise<OwnFile> {
  const found = await stat(path).catch(() => null);
  if (found?.isFile() === false) throw irregular(path);
  const isNew = found === null;
  const file = await open(path, isNew ? 'ax+' : 'a+', 0o600).catch((error: unknown) => {
    throw unwritable(path, error);
  });
  if ((await file.stat()).isFile()) return { path, file, isNew };
  await file.close();
  throw irregular(path);
}

/** @param keep whether the file stays where opening it made it */
export async function closeOwn({ path, file, isNew }: OwnFile, keep: boolean): Promise<void> {
  await file.close();
  if (isNew && !keep) await rm(path, { force: true });
}

/**
 * Links of both kinds lead to the file that is read, and so does stdin.
 * @throws CatchwordError USAGE
 */
export async function refuseInput({ path, file }: OwnFile, input: FileIdentity | null): Promise<void> {
  const { dev, ino } = await file.stat({ bigint: true });
  if (input?.dev !== dev || input.ino !== ino) return;
  throw new CatchwordError('USAGE', `${path} is the file that is read`, { hint: 'Name another file with --out.' });
}
