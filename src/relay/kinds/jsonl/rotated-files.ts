import { createReadStream, createWriteStream } from 'node:fs';
import { open, readdir, rm, stat, utimes } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { pipeline as pipeStreams, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { renameDurably } from '@catchword/base/durable-names';
import { sequenceText } from '@catchword/catalog/event';

/** Lists the rotated files of `path`, by their name when not compressed. For a moment, a file exists in both forms. */
async function rotatedFiles(path: string): Promise<Map<string, string[]>> {
  const { dir, name, ext } = parse(path);
  const found = new Map<string, string[]>();
  for (const file of (await readdir(dir)).sort()) {
    const plain = file.endsWith(`${ext}.gz`) ? file.slice(0, -'.gz'.length) : file;
    const hasName = plain.startsWith(`${name}-`) && plain.endsWith(ext);
    if (!hasName || !/^\d{20}(\.\d+)?$/.test(plain.slice(name.length + 1, plain.length - ext.length))) continue;
    found.set(join(dir, plain), [...(found.get(join(dir, plain)) ?? []), join(dir, file)]);
  }
  return found;
}

/** Names the rotated file that ends at `seq`: `catalog-<seq>.jsonl`, or `catalog-<seq>.2.jsonl` and so on if that exists. */
export async function unusedRotatedPath(path: string, seq: number): Promise<string> {
  const { dir, name, ext } = parse(path);
  const base = join(dir, `${name}-${sequenceText(seq)}`);
  const taken = await rotatedFiles(path);
  let target = `${base}${ext}`;
  for (let copy = 2; taken.has(target); copy++) target = `${base}.${copy}${ext}`;
  return target;
}

async function statsOf(path: string) {
  const rotated = await rotatedFiles(path).catch(() => new Map<string, string[]>());
  const measured = [...rotated].map(async ([, files]) => {
    const stats = await Promise.all(files.map((file) => stat(file).catch(() => null)));
    const times = stats.map((one) => one?.mtimeMs ?? Number.POSITIVE_INFINITY);
    return { files, at: Math.min(...times), bytes: stats.reduce((sum, one) => sum + (one?.size ?? 0), 0) };
  });
  // Sorting is stable: of two with the same time, the smaller name is older.
  return (await Promise.all(measured)).sort((a, b) => a.at - b.at);
}

/** Opens a file, or what the compressor has made of it meanwhile. @returns its bytes without compression */
async function openPlain(name: string): Promise<Readable> {
  const plain = name.replace(/\.gz$/, '');
  const file = plain === name ? await open(plain).catch(() => null) : null;
  if (file !== null) return file.createReadStream();
  return pipeStreams((await open(`${plain}.gz`)).createReadStream(), createGunzip(), () => {});
}

/** Reads the lines of the rotated files and of the file itself, oldest first, many at once. */
export async function* linesOfFiles(path: string): AsyncGenerator<readonly string[]> {
  const rotated = (await statsOf(path)).map(({ files }) => files.toSorted()[0] ?? '');
  for (const name of [...rotated, path]) {
    let rest = '';
    for await (const piece of (await openPlain(name)).setEncoding('utf8')) {
      const lines = `${rest}${piece}`.split('\n');
      rest = lines.pop() ?? '';
      yield lines;
    }
  }
}

/** Total size of the rotated files, bytes. */
export async function rotatedSize(path: string): Promise<number> {
  return (await statsOf(path)).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Removes all but the newest `keep` rotated files. Their times count: after a replay, the numbers in their names go back. */
export async function dropOldest(path: string, keep: number): Promise<void> {
  const sorted = await statsOf(path);
  const dropped = sorted.slice(0, Math.max(0, sorted.length - keep)).flatMap(({ files }) => files);
  for (const file of dropped) await rm(file, { force: true });
}

async function compress(file: string, signal: AbortSignal): Promise<void> {
  const temporary = `${file}.gz.new`;
  try {
    await pipeline(createReadStream(file), createGzip(), createWriteStream(temporary, { mode: 0o600, flush: true }), {
      signal,
    });
    // `dropOldest` needs the time of the events.
    const { atime, mtime } = await stat(file);
    await utimes(temporary, atime, mtime);
    // Otherwise a power failure could keep the removal and forget the new name.
    await renameDurably(temporary, `${file}.gz`);
    await rm(file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * Compresses rotated files in the background, one at a time. A file that cannot be compressed stays as it is, and is retried
 * with the next one.
 */
export function startCompressor(path: string) {
  const stopping = new AbortController();
  let hasNew = false;
  let working: Promise<void> | undefined;

  async function work(): Promise<void> {
    do {
      hasNew = false;
      for (const [plain, files] of await rotatedFiles(path)) {
        if (files.includes(plain)) await compress(plain, stopping.signal);
      }
    } while (hasNew);
  }

  /** Notes that there may be a new file. */
  function wake(): void {
    hasNew = true;
    working ??= work()
      .catch(() => {})
      .finally(() => {
        working = undefined;
      });
  }

  wake();
  return {
    wake,
    /** Aborts the current file, which the next start compresses. */
    stop: async () => {
      stopping.abort();
      await working;
    },
  };
}
