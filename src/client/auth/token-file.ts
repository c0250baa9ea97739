import { chmodSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { CatchwordError, systemCodeOf } from '../../errors.ts';

/*
 * The file of an access token: two lines, the token and a hash that says whose it is, for its user alone (mode 0600). It
 * is replaced as a whole, so that nobody reads half of it. What is there and is no such file is somebody's, and stays.
 */

const CONTENT = /^([\x21-\x7e]+)\r?\n(sha256:[0-9a-f]{64})(?:\r?\n)?$/;

/** Bytes; room for any token that fits into a header. */
const MAX_SIZE = 65_536;

interface StoredToken {
  readonly token: string;
  /** `sha256:` and 64 hexadecimal digits. */
  readonly owner: string;
}

export function unusable(path: string, what: string, cause: unknown): CatchwordError {
  return new CatchwordError(
    'CONFIG_INVALID',
    `CATCHWORD_TOKEN_STORE: cannot ${what} ${path} (${systemCodeOf(cause) ?? 'unknown'})`,
    {
      hint: 'Name a file in a directory that this user may write to.',
      cause,
    },
  );
}

export function refused(path: string, what: string): CatchwordError {
  return new CatchwordError('CONFIG_INVALID', `CATCHWORD_TOKEN_STORE: ${path} ${what}`, {
    hint: 'It is left as it is. Name a file of its own for the token; it need not exist.',
  });
}

/**
 * Where a path leads through symbolic links, also to a file that does not exist yet.
 * @throws what the file system throws
 */
export function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  }
  try {
    return targetOf(resolve(dirname(path), readlinkSync(path)));
  } catch (error) {
    // No link: it is not there, or its directory is not, which to write says.
    if (systemCodeOf(error) === 'EINVAL' || systemCodeOf(error) === 'ENOENT') return path;
    throw error;
  }
}

function contentOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (!found.isFile()) throw refused(path, 'is no regular file');
  if (found.size > MAX_SIZE) throw refused(path, 'holds something else than an access token');
  const content = readFileSync(path, 'utf8');
  if (CONTENT.test(content) && (found.mode & 0o077) !== 0) makePrivate(path);
  return content;
}

/** Others could read a token that was copied there. */
function makePrivate(path: string): void {
  try {
    chmodSync(path, 0o600);
  } catch (error) {
    throw unusable(path, 'make private', error);
  }
}

/**
 * Reads the file, and makes it private where others could read it.
 * @param path without symbolic links
 * @returns undefined where there is none, or an empty one
 * @throws CatchwordError CONFIG_INVALID where it is no such file, and stays as it is; where it cannot be read or made private
 */
export function readTokenFile(path: string): StoredToken | undefined {
  let content: string | undefined;
  try {
    content = contentOf(path);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error instanceof CatchwordError ? error : unusable(path, 'read', error);
  }
  if (content === undefined || content === '') return undefined;
  const [, token, owner] = CONTENT.exec(content) ?? [];
  if (token === undefined || owner === undefined) throw refused(path, 'holds something else than an access token');
  return { token, owner };
}

/**
 * Replaces the file as a whole; its mode is 0600 then.
 * @param path without symbolic links
 * @throws CatchwordError CONFIG_INVALID where what is there is no such file, or where it cannot be written
 */
export async function writeTokenFile(path: string, { token, owner }: StoredToken): Promise<void> {
  readTokenFile(path);
  const next = `${path}.${process.pid}.new`;
  try {
    // One that was left behind, or put there, is not written into: it may be a link, or open to others.
    await rm(next, { force: true });
    await writeFile(next, `${token}\n${owner}\n`, { flag: 'wx', mode: 0o600, flush: true });
    await rename(next, path);
  } catch (error) {
    // Where it cannot be removed either, the first error says why.
    await rm(next, { force: true }).catch(() => {});
    throw unusable(path, 'write', error);
  }
}
