import { access, constants, type FileHandle, mkdir, open, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { CatchwordError, messageOf, systemCodeOf } from '../../../errors.ts';
import { type Mark, type Sink, SinkError, type SinkEvent, type SinkFactory } from '../../sink.ts';
import { pathOf, readOptions, sizeOption, sizeText, wholeOption } from '../../sink-options.ts';
import { withSinkErrors } from '../connected-sink.ts';
import { type GenerationState, markOf, readState, syncDirectory, writeState } from './generation-state.ts';
import { checkRest, type LastEvent, lastLine, parseEvent } from './last-line.ts';
import { type Compressor, dropOldest, rotatedSize, startCompressor, unusedRotatedPath } from './rotated-files.ts';

/**
 * One event per line, appended to a file and flushed to the disk before it is confirmed. The last complete line names its
 * `seq`, which is how far the file is. A line that a crash left incomplete is cut off.
 *
 * `<file>.state` says where in the file the current generation starts, because a replay appends events with smaller
 * numbers.
 */

const OPTIONS = {
  rotate: sizeOption.optional(),
  gzip: z.enum(['on', 'off'], 'on or off').default('on'),
  /** How many rotated files are kept. */
  keep: wholeOption(1, 1_000_000).optional(),
};

/** The most bytes that a UTF-16 unit of a string takes in UTF-8. */
const BYTES_A_CHAR = 3;
const FIRST_SIZE = 1 << 20;
const LINE_BREAK = 10;

/**
 * Encodes lines into reused memory. Joining the strings and encoding them takes 1.5 times as long (measured).
 * @returns a function whose result is valid until its next call
 */
function createLineBuffer(): (events: readonly SinkEvent[]) => Buffer {
  let bytes = Buffer.allocUnsafe(FIRST_SIZE);
  return (events) => {
    let size = 0;
    for (const { text } of events) {
      const needed = size + text.length * BYTES_A_CHAR + 1;
      if (needed > bytes.length) {
        const larger = Buffer.allocUnsafe(2 * needed);
        bytes.copy(larger, 0, 0, size);
        bytes = larger;
      }
      size += bytes.write(text, size);
      bytes[size++] = LINE_BREAK;
    }
    return bytes.subarray(0, size);
  };
}

/** The deepest existing directory on the way to `path`. */
async function nearestDirectory(path: string): Promise<string> {
  const directory = dirname(path);
  const found = await stat(directory).catch(() => null);
  if (found === null && directory !== path) return nearestDirectory(directory);
  if (found?.isDirectory() !== true) throw new SinkError('misconfigured', `${directory} is not a directory`);
  return directory;
}

/** Checks that delivery could write the file and its state, without creating them. */
async function checkFile(path: string): Promise<string> {
  const directory = await nearestDirectory(path);
  await access(directory, constants.W_OK | constants.X_OK);
  const found = await stat(path).catch(() => null);
  if (found === null) {
    return directory === dirname(path) ? 'can be created' : `can be created, with its directory, in ${directory}`;
  }
  if (!found.isFile()) throw new SinkError('misconfigured', `${path} is not a file`);
  await access(path, constants.R_OK | constants.W_OK);
  const file = await open(path, 'r');
  try {
    const { line, rest } = await lastLine(file);
    if (line !== null) parseEvent(path, line);
    checkRest(path, rest);
  } finally {
    await file.close();
  }
  return `${sizeText(found.size)}, can be written`;
}

function toSinkError(error: unknown): SinkError {
  const isSetting = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EISDIR'].includes(systemCodeOf(error) ?? '');
  return new SinkError(isSetting ? 'misconfigured' : 'unavailable', messageOf(error), { cause: error });
}

export const createJsonlSink: SinkFactory = ({ url }) => {
  const path = pathOf(url);
  const statePath = `${path}.state`;
  const { rotate: rotateAt = Number.POSITIVE_INFINITY, gzip, keep } = readOptions(url, OPTIONS);
  const rotates = Number.isFinite(rotateAt);
  if (keep !== undefined && !rotates) {
    throw new CatchwordError('CONFIG_INVALID', 'keep needs rotate', {
      hint: 'Add rotate=100MB; keep is a number of rotated files.',
    });
  }
  let file: FileHandle | undefined;
  let size = 0;
  /** All changes up to here are in this file or in rotated ones. */
  let position = 0;
  const encodeLines = createLineBuffer();
  let compressor: Compressor | undefined;
  /** The content of the state file. */
  let state: GenerationState | null = null;

  /** Writes down that a generation starts, or continues in a new file, at `offset`. */
  async function noteGeneration(mark: Mark, cursor: number, offset: number): Promise<void> {
    const { incarnation, generation } = mark;
    const begun = { incarnation, generation, offset, cursor, at: cursor === mark.cursor ? mark.at : 0 };
    await writeState(statePath, begun);
    state = begun;
  }

  /** Opens the file, and cuts off an incomplete last line. @returns null for an empty file */
  async function openFile(): Promise<LastEvent | null> {
    await mkdir(dirname(path), { recursive: true });
    file = await open(path, 'a+', 0o600);
    const { size: complete, line, rest } = await lastLine(file);
    const last = line === null ? null : parseEvent(path, line);
    checkRest(path, rest);
    if (rest !== '') {
      await file.truncate(complete);
      await file.datasync();
    }
    size = complete;
    if (size === 0) await syncDirectory(path);
    return last;
  }

  /**
   * Renames `catalog.jsonl` to `catalog-<its last seq>.jsonl`, and starts a new file. The state, which is true before and
   * after the rename, keeps the cursor that the old file's end named.
   */
  async function rotate(mark: Mark, cursor: number): Promise<void> {
    await noteGeneration(mark, cursor, size);
    await file?.close();
    file = undefined;
    await rename(path, await unusedRotatedPath(path, position));
    size = 0;
    await noteGeneration(mark, cursor, 0);
    await openFile();
    if (keep !== undefined) await dropOldest(path, keep);
    compressor?.wake();
  }

  /** Rejects a file that another process wrote to (a relay that was suspended, say) or replaced. */
  async function rejectForeignFile(open: FileHandle): Promise<void> {
    const [ours, there] = await Promise.all([open.stat(), stat(path)]);
    if (ours.ino !== there.ino || ours.dev !== there.dev) {
      throw new SinkError('unavailable', `another process has replaced ${path}`);
    }
    if (ours.size !== size) throw new SinkError('unavailable', `another process has written to ${path}`);
  }

  const sink: Sink = {
    // Larger batches survive the garbage collector's first pass, and take 1.5 times as long (measured).
    batch: { events: 1_000, chars: 4_000_000 },
    open: async (mark) => {
      const end = await openFile();
      if (rotates && gzip === 'on') compressor = startCompressor(path);
      state = await readState(statePath);
      if (end !== null && end.incarnation !== state?.incarnation) state = null;
      const own = markOf(mark, state, size, end);
      position = own.cursor;
      // The file became shorter, as after a crash during a rotation: it continues from here.
      if (state !== null && size < state.offset) await noteGeneration(own, own.cursor, size);
      return own;
    },
    deliver: async (events, mark, signal) => {
      // The cursor before this delivery; events that were parked are below it.
      const cursor = mark.late > 0 ? mark.cursor : (events[0]?.seq ?? 1) - 1;
      if (mark.generation !== state?.generation || mark.incarnation !== state.incarnation) {
        await noteGeneration(mark, cursor, size);
      }
      if (size >= rotateAt) await rotate(mark, cursor);
      signal.throwIfAborted();
      if (file === undefined) throw new SinkError('unavailable', `${path} is not open`);
      await rejectForeignFile(file);
      const bytes = encodeLines(events);
      for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
      await file.datasync();
      size += bytes.length;
      position = mark.cursor;
    },
    recheck: async () => {
      if (file !== undefined) await rejectForeignFile(file);
    },
    size: async () => {
      const bytes = (await rotatedSize(path)) + ((await stat(path).catch(() => null))?.size ?? 0);
      const option = rotates ? 'keep=N' : 'rotate=100MB&keep=N';
      return { text: sizeText(bytes), limit: keep === undefined ? null : `keep=${keep}`, option };
    },
    close: async () => {
      await compressor?.stop();
      compressor = undefined;
      await file?.close();
      file = undefined;
    },
    check: () => checkFile(path),
  };
  return withSinkErrors(sink, toSinkError);
};
