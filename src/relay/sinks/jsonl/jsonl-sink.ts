import { access, constants, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as z from 'zod';
import { replaceFile } from '../../../base/durable-names.ts';
import { CatchwordError, messageOf, systemCodeOf } from '../../../base/errors.ts';
import { linesOf } from '../../line-buffers.ts';
import { type EventLines, type Mark, type Sink, SinkError, type SinkFactory } from '../../sink.ts';
import { pathOf, readOptions, sizeOption, sizeText, wholeOption } from '../../sink-options.ts';
import { withSinkErrors } from '../connected-sink.ts';
import { type AppendFile, openAppendFile } from './append-file.ts';
import { type GenerationState, markOf, readState } from './generation-state.ts';
import { checkRest, lastLine, parseEvent } from './read-tail.ts';
import { type Compressor, dropOldest, rotatedSize, startCompressor, unusedRotatedPath } from './rotated-files.ts';

/**
 * One event per line, appended to a file and flushed to the disk before it is confirmed. The last complete line names its
 * `seq`, which is how far the file is. A line that a crash left incomplete is cut off. One process at a time writes the file
 * (append-file.ts).
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
    checkRest(path, rest, line !== null || (await readState(`${path}.state`)) !== null);
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
  let file: AppendFile | undefined;
  /** All changes up to here are in this file or in rotated ones. */
  let position = 0;
  let compressor: Compressor | undefined;
  /** The content of the state file. */
  let state: GenerationState | null = null;
  let running: Promise<unknown> = Promise.resolve();

  /** Notes a call that may still write after the relay stopped waiting for it. */
  function noted<Arguments extends unknown[], Result>(call: (...given: Arguments) => Promise<Result>) {
    return (...given: Arguments): Promise<Result> => {
      const result = call(...given);
      running = result.catch(() => {});
      return result;
    };
  }

  function opened(): AppendFile {
    if (file === undefined) throw new SinkError('unavailable', `${path} is not open`);
    return file;
  }

  /** Writes down that a generation starts, or continues in a new file, at `offset`. */
  async function noteGeneration(mark: Mark, cursor: number, offset: number): Promise<void> {
    const { incarnation, generation } = mark;
    const begun = { incarnation, generation, offset, cursor, at: cursor === mark.cursor ? mark.at : 0 };
    await replaceFile(statePath, JSON.stringify(begun));
    state = begun;
  }

  /**
   * Renames `catalog.jsonl` to `catalog-<its last seq>.jsonl`, and starts a new file. The state, which is true before and
   * after the rename, keeps the cursor that the old file's end named.
   */
  async function rotate(open: AppendFile, mark: Mark, cursor: number): Promise<void> {
    await noteGeneration(mark, cursor, open.size());
    await open.moveTo(await unusedRotatedPath(path, position));
    await noteGeneration(mark, cursor, 0);
    if (keep !== undefined) await dropOldest(path, keep);
    compressor?.wake();
  }

  const deliverLines = noted(async ({ bytes, first }: EventLines, mark: Mark, signal: AbortSignal) => {
    const open = opened();
    // The cursor before this delivery; events that were parked are below it.
    const cursor = mark.late > 0 ? mark.cursor : first - 1;
    if (mark.generation !== state?.generation || mark.incarnation !== state.incarnation) {
      await open.check();
      await noteGeneration(mark, cursor, open.size());
    }
    if (open.size() >= rotateAt) await rotate(open, mark, cursor);
    signal.throwIfAborted();
    await open.append(bytes);
    position = mark.cursor;
  });

  const sink: Sink = {
    batch: { events: 10_000, chars: 4_000_000 },
    open: noted(async (mark) => {
      file = await openAppendFile(path, mark);
      const { end } = file;
      const size = file.size();
      if (rotates && gzip === 'on') compressor = startCompressor(path);
      state = await readState(statePath);
      if (end !== null && end.incarnation !== state?.incarnation) state = null;
      const own = markOf(mark, state, size, end);
      position = own.cursor;
      // The file became shorter, as after a crash during a rotation: it continues from here.
      if (state !== null && size < state.offset) await noteGeneration(own, own.cursor, size);
      return own;
    }),
    deliver: (events, mark, signal) => deliverLines(linesOf(events), mark, signal),
    deliverLines,
    recheck: noted(async () => {
      await file?.check();
    }),
    size: async () => {
      const bytes = (await rotatedSize(path)) + ((await stat(path).catch(() => null))?.size ?? 0);
      const option = rotates ? 'keep=N' : 'rotate=100MB&keep=N';
      return { text: sizeText(bytes), limit: keep === undefined ? null : `keep=${keep}`, option };
    },
    close: async () => {
      // A call that hangs keeps the lock: until it ends, no relay writes the file.
      await running;
      await compressor?.stop();
      compressor = undefined;
      await file?.close();
      file = undefined;
    },
    check: () => checkFile(path),
  };
  return withSinkErrors(sink, toSinkError);
};
