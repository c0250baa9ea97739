import { createHash } from 'node:crypto';
import { accessSync, constants, readFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../clock.ts';
import { CatchwordError } from '../errors.ts';
import { givenUp } from './abort.ts';
import { acquireLock } from './token-lock.ts';

/** Where a token outlives the process: a file of two lines, the token and whose it is, for this user alone. */
export interface TokenStore {
  /**
   * @returns the token; undefined where there is none, or where it is that of another service, API key or user
   * @throws CatchwordError CONFIG_INVALID where it is there and cannot be read
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

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

function unusable(path: string, what: string, cause: unknown): CatchwordError {
  return new CatchwordError('CONFIG_INVALID', `CATCHWORD_TOKEN_STORE: cannot ${what} ${path} (${codeOf(cause)})`, {
    hint: 'Name a file in a directory that this user may write to.',
    cause,
  });
}

/** Of all three, so that none of them can be read from the file. */
function hashOf({ origin, apiKey, reference }: TokenOwner): string {
  return createHash('sha256')
    .update(JSON.stringify([origin, apiKey, reference ?? null]))
    .digest('hex');
}

/**
 * @param path of the file; its directory must exist
 * @param owner whose token is kept and read
 * @throws CatchwordError CONFIG_INVALID where its directory cannot be written to
 */
export function openTokenStore(path: string, owner: TokenOwner, clock: Clock): TokenStore {
  const ofOwner = `sha256:${hashOf(owner)}`;
  try {
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw unusable(path, 'write', error);
  }

  return {
    read: () => {
      try {
        const [token = '', ofWhom] = readFileSync(path, 'utf8').split('\n');
        return /^[\x21-\x7e]+$/.test(token) && ofWhom === ofOwner ? token : undefined;
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return undefined;
        throw unusable(path, 'read', error);
      }
    },
    write: async (token) => {
      const next = `${path}.${process.pid}.new`;
      try {
        await writeFile(next, `${token}\n${ofOwner}\n`, { mode: 0o600, flush: true });
        await rename(next, path);
      } catch (error) {
        // Where it cannot be removed either, the first error says why.
        await rm(next, { force: true }).catch(() => {});
        throw unusable(path, 'write', error);
      }
    },
    alone: async (work, signal) => {
      const lock = `${path}.lock`;
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
