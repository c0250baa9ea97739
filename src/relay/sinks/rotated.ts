import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

/** Compresses rotated files beside the work, one after another. */
export interface Compressing {
  /** There may be a new one. */
  look(): void;
  /** Waits for nothing: what is not finished is done at the next start. */
  stop(): Promise<void>;
}

/** Rotated files of `path` that are not compressed, oldest first. */
async function waiting(path: string): Promise<string[]> {
  const { dir, name, ext } = parse(path);
  const files = await readdir(dir);
  const rotated = files.filter((file) => {
    const middle =
      file.startsWith(`${name}-`) && file.endsWith(ext) ? file.slice(name.length + 1, -ext.length || undefined) : '';
    return /^\d{20}(\.\d+)?$/.test(middle);
  });
  return rotated.sort().map((file) => join(dirname(path), file));
}

async function compress(file: string, signal: AbortSignal): Promise<void> {
  const temporary = `${file}.gz.new`;
  try {
    await pipeline(createReadStream(file), createGzip(), createWriteStream(temporary, { mode: 0o600, flush: true }), {
      signal,
    });
    await rename(temporary, `${file}.gz`);
    await rm(file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** A file that cannot be compressed stays as it is, and is tried again with the next one. */
export function compressRotated(path: string): Compressing {
  const stopping = new AbortController();
  let again = false;
  let working: Promise<void> | undefined;

  async function work(): Promise<void> {
    do {
      again = false;
      for (const file of await waiting(path)) await compress(file, stopping.signal);
    } while (again);
  }

  function look(): void {
    again = true;
    working ??= work()
      .catch(() => {})
      .finally(() => {
        working = undefined;
      });
  }

  look();
  return {
    look,
    stop: async () => {
      stopping.abort();
      await working;
    },
  };
}
