import { access, constants, open, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { replaceFile } from '@catchword/base/durable-names';
import { CatchwordError, messageOf, systemCodeOf } from '@catchword/base/errors';
import { listFolded, trimmedError } from '@catchword/sink-kit/folded-events';
import { linesOf } from '@catchword/sink-kit/line-buffers';
import { type EventLines, type Mark, SinkError, type SinkFactory } from '@catchword/sink-kit/sink';
import { pathOf, readOptions, sizeText } from '@catchword/sink-kit/sink-options';
import { feederOf } from '@catchword/sink-kit/stored-mark';
import type * as z from 'zod';
import { openAppendFile } from './append-file.ts';
import { jsonlKind } from './jsonl-kind.ts';
import { type LastEvent, markOf, readEnd, readState } from './read-tail.ts';
import { dropOldest, linesOfFiles, rotatedSize, startCompressor, unusedRotatedPath } from './rotated-files.ts';

/**
 * One event per line, appended to a file and flushed to the disk before it is confirmed. The last complete line names its
 * `seq`, which is how far the file is. A line that a crash left incomplete is cut off. One process at a time writes the file
 * (append-file.ts).
 *
 * `<file>.state` says where in the file the current generation starts, because a replay appends events with smaller
 * numbers.
 */

type Options = z.output<z.ZodObject<typeof jsonlKind.options>>;

/** The content of the state file; null if it is about another file. @param event the last one of the file */
async function stateOf(path: string, event: LastEvent | null) {
  const state = await readState(path);
  return state !== null && (event === null || event.incarnation === feederOf(state).mirror) ? state : null;
}

/** Opens the file of a sink, with its state and its rotated files. @param believed the position that the mirror knows */
async function openEventFile(path: string, { rotate: rotateAt, gzip, keep }: Options, believed: Mark) {
  const file = await openAppendFile(path, believed);
  const compressor = rotateAt !== undefined && gzip === 'on' ? startCompressor(path) : null;
  let state = await stateOf(path, file.event);
  const mark = markOf(believed, state, file.size(), file.event);
  /** All changes up to here are in this file or in rotated ones. */
  let position = mark.cursor;

  /** Writes down that a generation starts, or continues in a new file, at `offset`. */
  async function noteGeneration(mark: Mark, cursor: number, offset: number): Promise<void> {
    const { incarnation, generation } = mark;
    const begun = { incarnation, generation, offset, cursor, at: cursor === mark.cursor ? mark.at : 0 };
    await replaceFile(`${path}.state`, JSON.stringify(begun));
    state = begun;
  }

  /**
   * Renames `catalog.jsonl` to `catalog-<its last seq>.jsonl`, and starts a new file. The state, which is true before and
   * after the rename, keeps the cursor that the old file's end named.
   */
  async function rotate(mark: Mark, cursor: number): Promise<void> {
    await noteGeneration(mark, cursor, file.size());
    await file.moveTo(await unusedRotatedPath(path, position));
    await noteGeneration(mark, cursor, 0);
    if (keep !== undefined) await dropOldest(path, keep);
    compressor?.wake();
  }

  async function close(): Promise<void> {
    await compressor?.stop();
    await file.close();
  }

  try {
    // The file became shorter, as after a crash during a rotation: it continues from here.
    if (state !== null && file.size() < state.offset) await noteGeneration(mark, mark.cursor, file.size());
  } catch (error) {
    await close();
    throw error;
  }
  return {
    /** How far the file is. */
    mark,
    deliver: async ({ bytes, first }: EventLines, mark: Mark, signal: AbortSignal): Promise<void> => {
      // The cursor before this delivery; events that were parked are below it.
      const cursor = mark.late > 0 ? mark.cursor : first - 1;
      if (mark.generation !== state?.generation || mark.incarnation !== state.incarnation) {
        await file.checked();
        await noteGeneration(mark, cursor, file.size());
      }
      if (rotateAt !== undefined && file.size() >= rotateAt) await rotate(mark, cursor);
      signal.throwIfAborted();
      await file.append(bytes);
      position = mark.cursor;
    },
    checked: file.checked,
    close,
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
async function checkFile(path: string, tell?: (mark: Mark) => void): Promise<string> {
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
    const { event } = await readEnd(path, file);
    // The state names the sink, which an event does not.
    const state = await stateOf(path, event);
    if (event !== null) tell?.(markOf({ generation: 1, late: 0, ...event }, state, found.size, event));
  } finally {
    await file.close();
  }
  return `${sizeText(found.size)}, can be written`;
}

function toSinkError(error: unknown): SinkError {
  const isSetting = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EISDIR'].includes(systemCodeOf(error) ?? '');
  return new SinkError(isSetting ? 'misconfigured' : 'unavailable', messageOf(error), { cause: error });
}

export const createJsonlSink: SinkFactory = ({ url, name }) => {
  const path = pathOf(url);
  const options = readOptions(url, jsonlKind.options);
  const { rotate, keep } = options;
  if (keep !== undefined && rotate === undefined) {
    throw new CatchwordError('CONFIG_INVALID', 'keep needs rotate', {
      hint: 'Add rotate=100MB; keep is a number of rotated files.',
    });
  }
  let file: Awaited<ReturnType<typeof openEventFile>> | undefined;
  let running: Promise<unknown> = Promise.resolve();

  /** Makes a call throw SinkErrors, and notes it: it may still write after the relay stopped waiting for it. */
  function noted<Arguments extends unknown[], Result>(call: (...given: Arguments) => Promise<Result>) {
    return (...given: Arguments): Promise<Result> => {
      const result = call(...given).catch((error: unknown) => {
        throw error instanceof SinkError ? error : toSinkError(error);
      });
      running = result.catch(() => {});
      return result;
    };
  }

  const deliverLines = noted(async (lines: EventLines, mark: Mark, signal: AbortSignal) => {
    if (file === undefined) throw new SinkError('unavailable', `${path} is not open`);
    await file.deliver(lines, mark, signal);
  });

  return {
    batch: { events: 10_000, chars: 4_000_000 },
    open: noted(async (mark) => {
      file = await openEventFile(path, options, mark);
      return file.mark;
    }),
    deliver: (events, mark, signal) => deliverLines(linesOf(events), mark, signal),
    deliverLines,
    recheck: noted(async () => {
      await file?.checked();
    }),
    size: async () => {
      const bytes = (await rotatedSize(path)) + ((await stat(path).catch(() => null))?.size ?? 0);
      const option = rotate === undefined ? 'rotate=100MB&keep=N' : 'keep=N';
      return { text: sizeText(bytes), limit: keep === undefined ? null : `keep=${keep}`, option };
    },
    drop: noted(async () => {
      await dropOldest(path, 0);
      for (const end of ['', '.state', '.lock']) await rm(`${path}${end}`, { force: true });
      return '';
    }),
    list: listFolded(name, async function* () {
      await file?.checked();
      // What was dropped is not known, so the option decides.
      if (keep !== undefined) throw trimmedError(path);
      yield* linesOfFiles(path);
    }),
    close: async () => {
      // A call that hangs keeps the lock: until it ends, no relay writes the file.
      await running;
      await file?.close();
      file = undefined;
    },
    check: noted((_signal, found) => checkFile(path, found)),
  };
};
