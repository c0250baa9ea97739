import { createHash } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  constants,
  lstatSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { dirname, resolve, sep } from 'node:path';
import { interrupted } from '@catchword/base/abort';
import type { Clock } from '@catchword/base/clock';
import { replaceFile } from '@catchword/base/durable-names';
import { CatchwordError, systemCodeOf } from '@catchword/base/errors';
import { loadLocks, waitForFile } from '@catchword/base/file-lock';

/*
 * A file that keeps the access token across processes. It has two lines, the token and a hash of its owner, and is
 * private (mode 0600). It is replaced as a whole, so that no reader sees half of it. Any other file is left alone.
 */

export interface TokenOwner {
  /** Scheme, host and port of the service. */
  readonly origin: string;
  readonly apiKey: string;
  /** Of the user. */
  readonly reference: string | undefined;
  /** The configured token, which names the user if the reference is not known. */
  readonly configured: string | undefined;
}

const CONTENT = /^([\x21-\x7e]+)\r?\n(sha256:[0-9a-f]{64})(?:\r?\n)?$/;

function storeError(message: string, cause?: unknown): CatchwordError {
  return new CatchwordError('CONFIG_INVALID', message, {
    hint: 'Set {setting} to a file of its own, in a directory that this user can write to; it need not exist.',
    setting: 'CATCHWORD_TOKEN_STORE',
    cause,
  });
}

function failed(what: string, path: string, error: unknown): CatchwordError {
  return error instanceof CatchwordError
    ? error
    : storeError(`cannot ${what} the token store ${path} (${systemCodeOf(error)})`, error);
}

/** Follows symbolic links, also to a file that does not exist yet. */
function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return isLink ? targetOf(resolve(dirname(path), readlinkSync(path))) : path;
  }
}

function usableFile(path: string): string {
  if (path === '' || path.endsWith('/') || path.endsWith(sep))
    throw storeError(`the token store ${path} has no file name`);
  try {
    const file = targetOf(path);
    accessSync(dirname(file), constants.W_OK);
    return file;
  } catch (error) {
    throw failed('write', path, error);
  }
}

/** Reads the token and its owner, and makes the file private if others could read it. */
function readFile(path: string): { readonly token: string; readonly owner: string } | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined || (found.isFile() && found.size === 0)) return undefined;
    const content = found.isFile() ? readFileSync(path, 'utf8') : '';
    const [, token, owner] = CONTENT.exec(content) ?? [];
    if (token === undefined || owner === undefined) throw storeError(`the token store ${path} is not a token file`);
    if ((found.mode & 0o077) !== 0) chmodSync(path, 0o600);
    return { token, owner };
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw failed('read', path, error);
  }
}

export type TokenStore = ReturnType<typeof openTokenStore>;

/**
 * @param path of the file, in an existing directory; a symbolic link is kept and its target replaced
 * @throws CatchwordError CONFIG_INVALID if the directory is not writable, or the file is not a token file; PACKAGE_MISSING
 *   if the library was installed without SQLite, which locks the file
 */
export function openTokenStore(path: string, owner: TokenOwner, clock: Clock) {
  const { origin, apiKey, reference, configured } = owner;
  // One hash, so that none of them can be read from the file.
  const parts = JSON.stringify([origin, apiKey, ...(reference === undefined ? [null, configured] : [reference])]);
  const hash = `sha256:${createHash('sha256').update(parts).digest('hex')}`;
  // Now, not when the token is renewed.
  loadLocks();
  const file = usableFile(path);
  readFile(file);
  return {
    /** Undefined if there is none, or if it is of another service, API key or user. @throws CatchwordError CONFIG_INVALID */
    read: (): string | undefined => {
      const stored = readFile(file);
      return stored?.owner === hash ? stored.token : undefined;
    },
    /** Replaces the file; to be called by `work` of `alone`. @throws CatchwordError CONFIG_INVALID */
    write: async (token: string): Promise<void> => {
      readFile(file);
      await replaceFile(file, `${token}\n${hash}\n`).catch((error: unknown) => {
        throw failed('write', file, error);
      });
    },
    /**
     * Runs `work` while no other process with the same file does, so that two processes do not reset each other's token.
     * @throws CatchwordError CONFIG_INVALID if the file cannot be locked; INTERRUPTED if `signal` aborts first
     */
    alone: async (work: () => Promise<void>, signal: AbortSignal): Promise<void> => {
      const release = await waitForFile(file, clock, signal).catch((error: unknown) => {
        throw signal.aborted ? interrupted() : error;
      });
      try {
        await work();
      } finally {
        release();
      }
    },
  };
}
