import { createHash } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { dirname, sep } from 'node:path';
import type { Clock } from '../../clock.ts';
import { givenUp } from '../http/abort-errors.ts';
import { acquireLock } from '../token-lock.ts';
import { readTokenFile, refused, targetOf, unusable, writeTokenFile } from './token-file.ts';

/** Where a token outlives the process: a file for this user alone, see token-file.ts. */
export interface TokenStore {
  /**
   * @returns the token; undefined where there is none, or where it is that of another service, API key or user
   * @throws CatchwordError CONFIG_INVALID where it is there and cannot be read, or holds something else
   */
  read(): string | undefined;
  /** Replaces it as a whole, mode 0600. @throws CatchwordError CONFIG_INVALID */
  write(token: string): Promise<void>;
  /**
   * Does `work` while no other process with the same file does, so that two do not reset each other's token.
   * @throws CatchwordError CONFIG_INVALID where there can be no lock beside the file; INTERRUPTED when `signal` aborts before
   *   it is this one's turn; what `work` throws
   */
  alone(work: () => Promise<void>, signal: AbortSignal): Promise<void>;
}

/** What a token is valid for. */
export interface TokenOwner {
  /** Scheme, host and port of the service. */
  readonly origin: string;
  readonly apiKey: string;
  /** Of the user. */
  readonly reference: string | undefined;
}

/** Of all three, so that none of them can be read from the file. */
function hashOf({ origin, apiKey, reference }: TokenOwner): string {
  return createHash('sha256')
    .update(JSON.stringify([origin, apiKey, reference ?? null]))
    .digest('hex');
}

function usableFile(path: string): string {
  if (path === '' || path.endsWith('/') || path.endsWith(sep)) throw refused(path, 'names no file');
  try {
    const file = targetOf(path);
    accessSync(dirname(file), constants.W_OK);
    return file;
  } catch (error) {
    throw unusable(path, 'write', error);
  }
}

/**
 * @param path of the file; its directory must exist. A symbolic link stays, and what it leads to is replaced
 * @param owner whose token is kept and read
 * @throws CatchwordError CONFIG_INVALID where it names no file, where its directory cannot be written to, or where there is a file that holds
 *   something else
 */
export function openTokenStore(path: string, owner: TokenOwner, clock: Clock): TokenStore {
  const ofOwner = `sha256:${hashOf(owner)}`;
  const file = usableFile(path);
  readTokenFile(file);
  return {
    read: () => {
      const stored = readTokenFile(file);
      return stored?.owner === ofOwner ? stored.token : undefined;
    },
    write: (token) => writeTokenFile(file, { token, owner: ofOwner }),
    alone: async (work, signal) => {
      const lock = `${file}.lock`;
      const release = await acquireLock(lock, clock, signal).catch((error: unknown) => {
        throw signal.aborted ? givenUp() : unusable(lock, 'write', error);
      });
      try {
        await work();
      } finally {
        await release();
      }
    },
  };
}
