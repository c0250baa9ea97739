import { accessSync, constants, readFileSync } from 'node:fs';
import { open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../clock.ts';
import { CatchwordError } from '../errors.ts';

/** Where a token outlives the process: a file of one line, for this user alone. */
export interface TokenStore {
  /** @throws CatchwordError CONFIG_INVALID where it is there and cannot be read */
  read(): string | undefined;
  /** Replaces it as a whole, mode 0600. @throws CatchwordError CONFIG_INVALID */
  write(token: string): Promise<void>;
  /** Does `work` while no other process with the same file does, so that two do not reset each other's token. */
  alone(work: () => Promise<void>): Promise<void>;
}

/** A reset takes two requests; whoever holds the lock longer has died. */
const LOCK_MAX_AGE_MS = 180_000;
const LOOK_AGAIN_MS = 200;

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

function unusable(path: string, what: string, cause: unknown): CatchwordError {
  return new CatchwordError('CONFIG_INVALID', `CATCHWORD_TOKEN_STORE: cannot ${what} ${path} (${codeOf(cause)})`, {
    hint: 'Name a file in a directory that this user may write to.',
    cause,
  });
}

async function isAbandoned(lock: string, clock: Clock): Promise<boolean> {
  const found = await stat(lock).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw unusable(lock, 'look at', error);
  });
  return found !== null && clock.now() - found.mtimeMs > LOCK_MAX_AGE_MS;
}

/**
 * @param path of the file; its directory must exist
 * @throws CatchwordError CONFIG_INVALID where its directory cannot be written to
 */
export function openTokenStore(path: string, clock: Clock): TokenStore {
  const lock = `${path}.lock`;
  try {
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw unusable(path, 'write', error);
  }

  async function acquire(): Promise<void> {
    for (;;) {
      try {
        await (await open(lock, 'wx', 0o600)).close();
        return;
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw unusable(lock, 'write', error);
      }
      if (await isAbandoned(lock, clock)) await rm(lock, { force: true });
      else await clock.sleep(LOOK_AGAIN_MS);
    }
  }

  return {
    read: () => {
      try {
        const text = readFileSync(path, 'utf8').trim();
        return /^[\x21-\x7e]+$/.test(text) ? text : undefined;
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return undefined;
        throw unusable(path, 'read', error);
      }
    },
    write: async (token) => {
      const next = `${path}.${process.pid}.new`;
      try {
        await writeFile(next, `${token}\n`, { mode: 0o600, flush: true });
        await rename(next, path);
      } catch (error) {
        await rm(next, { force: true });
        throw unusable(path, 'write', error);
      }
    },
    alone: async (work) => {
      await acquire();
      try {
        await work();
      } finally {
        await rm(lock, { force: true });
      }
    },
  };
}
