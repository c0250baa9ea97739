import { access, constants, type FileHandle, mkdir, open, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { z } from 'zod';
import { sequenceText } from '../../../catalog/event.ts';
import { CatchwordError, messageOf, systemCodeOf } from '../../../errors.ts';
import { type Mark, type Sink, SinkError, type SinkFactory } from '../../sink.ts';
import { pathOf, readOptions, sizeOption, sizeText, wholeOption } from '../../sink-options.ts';
import { type Compressing, compressRotated, dropOldest, rotatedSize } from './compress-rotated.ts';
import { lastLine } from './last-line.ts';
import { createLineWriter } from './line-buffer.ts';

/**
 * One event a line, appended to a file and flushed to the disk before it is confirmed. How far the file is stands at its
 * own end: the last whole line names its `seq`. What a crash left of a line that was being written is cut off.
 *
 * Beside it, `<file>.state` says where in the file the present generation begins, so that a replay, which appends events
 * with smaller numbers, is not taken for the end.
 */

const stateSchema = z.object({
  incarnation: z.string(),
  generation: z.number(),
  /** Size of the file when this was written, and the cursor then. */
  offset: z.number(),
  cursor: z.number(),
  /** As in a mark. */
  at: z.number(),
});
type State = z.output<typeof stateSchema>;

const lineSchema = z.object({ id: z.string(), sequence: z.string().regex(/^\d+$/), time: z.iso.datetime() });

const OPTIONS = {
  rotate: sizeOption.optional(),
  gzip: z.enum(['on', 'off']).default('on'),
  /** Rotated files that are kept; the oldest are removed. */
  keep: wholeOption(1, 1_000_000).optional(),
};

interface FileEnd {
  readonly incarnation: string;
  readonly seq: number;
  readonly at: number;
}

/** Makes a name in a directory durable, too. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** What is there of the directories that lead to `path`. */
async function nearestDirectory(path: string): Promise<string> {
  const directory = dirname(path);
  const found = await stat(directory).catch(() => null);
  if (found === null && directory !== path) return nearestDirectory(directory);
  if (found?.isDirectory() !== true) throw new SinkError('misconfigured', `${directory} is not a directory`);
  return directory;
}

/** Looks whether delivery could write `path`, and its state beside it; makes neither. */
async function checkPlace(path: string): Promise<string> {
  const directory = await nearestDirectory(path);
  await access(directory, constants.W_OK | constants.X_OK);
  const found = await stat(path).catch(() => null);
  if (found === null) {
    return directory === dirname(path) ? 'can be made' : `can be made, and so can its directory in ${directory}`;
  }
  if (!found.isFile()) throw new SinkError('misconfigured', `${path} is not a file`);
  await access(path, constants.R_OK | constants.W_OK);
  const file = await open(path, 'r');
  try {
    const { line } = await lastLine(file);
    if (line !== null) eventAt(path, line);
  } finally {
    await file.close();
  }
  return `${sizeText(found.size)}, can be written`;
}

function failure(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  const code = systemCodeOf(error) ?? '';
  const kind = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EISDIR'].includes(code) ? 'misconfigured' : 'unavailable';
  return new SinkError(kind, messageOf(error), { cause: error });
}

function eventAt(path: string, line: string): FileEnd {
  let parsed: ReturnType<typeof lineSchema.safeParse> | undefined;
  try {
    parsed = lineSchema.safeParse(JSON.parse(line));
  } catch {
    // Reported below, with what is no event at all.
  }
  if (!parsed?.success) {
    throw new SinkError('misconfigured', `${path} does not end with an event: name a file of catchword's own`);
  }
  const { id, sequence, time } = parsed.data;
  return { incarnation: id.slice(0, id.lastIndexOf(':')), seq: Number(sequence), at: Date.parse(time) };
}

export const createJsonlSink: SinkFactory = ({ url }): Sink => {
  const path = pathOf(url);
  const statePath = `${path}.state`;
  const options = readOptions(url, OPTIONS);
  const { keep } = options;
  if (keep !== undefined && options.rotate === undefined) {
    throw new CatchwordError('CONFIG_INVALID', 'keep needs rotate', {
      hint: 'Add rotate=100MB: keep counts rotated files.',
    });
  }
  let file: FileHandle | undefined;
  let size = 0;
  /** All changes up to here are in this file, or in earlier ones. */
  let position = 0;
  const lines = createLineWriter();
  let compressing: Compressing | undefined;

  /** As on the disk. */
  let state: State | null = null;

  async function readState(): Promise<State | null> {
    try {
      const parsed = stateSchema.safeParse(JSON.parse(await readFile(statePath, 'utf8')));
      return parsed.success ? parsed.data : null;
    } catch {
      return null;
    }
  }

  /** Notes that a generation begins, or goes on in a new file, at `offset`. */
  async function begin(mark: Mark, cursor: number, offset: number): Promise<void> {
    const { incarnation, generation } = mark;
    const begun = { incarnation, generation, offset, cursor, at: cursor === mark.cursor ? mark.at : 0 };
    const temporary = `${statePath}.new`;
    await writeFile(temporary, JSON.stringify(begun), { mode: 0o600, flush: true });
    await rename(temporary, statePath);
    await syncDirectory(path);
    state = begun;
  }

  /** Opens the file and cuts off a torn last line. @returns null for an empty file */
  async function openFile(): Promise<FileEnd | null> {
    await mkdir(dirname(path), { recursive: true });
    file = await open(path, 'a+', 0o600);
    const end = await lastLine(file);
    if (end.torn) {
      await file.truncate(end.size);
      await file.datasync();
    }
    size = end.size;
    if (size === 0) await syncDirectory(path);
    return end.line === null ? null : eventAt(path, end.line);
  }

  /** How far the file is. */
  function markOf(mark: Mark, end: FileEnd | null): Mark {
    if (end !== null && state !== null && end.incarnation !== state.incarnation) state = null;
    if (state === null) {
      // Never replayed, or its state is lost: its end is what counts.
      return end === null
        ? { ...mark, late: 0 }
        : { incarnation: end.incarnation, generation: 1, cursor: end.seq, at: end.at, late: 0 };
    }
    const { incarnation, generation, offset, cursor, at } = state;
    // Nothing of this generation yet: the file was just rotated, or taken away by somebody else.
    if (end === null) {
      const isOwn = incarnation === mark.incarnation;
      return isOwn && cursor < mark.cursor
        ? { ...mark, generation, late: 0 }
        : { incarnation, generation, cursor, at, late: 0 };
    }
    // Shorter than it was when the generation began: it lost some of what was before that, too.
    if (size < offset && end.seq < cursor) return { incarnation, generation, cursor: end.seq, at: end.at, late: 0 };
    if (size <= offset) return { incarnation, generation, cursor, at, late: 0 };
    if (end.seq <= cursor) return { incarnation, generation, cursor, at, late: end.seq };
    return { incarnation, generation, cursor: end.seq, at: end.at, late: 0 };
  }

  /**
   * `catalog.jsonl` becomes `catalog-<its last seq>.jsonl`. The state names the cursor before the file is gone that names it,
   * and is true on both sides of the renaming.
   */
  async function rotate(mark: Mark, cursor: number): Promise<void> {
    const { dir, name, ext } = parse(path);
    const base = join(dir, `${name}-${sequenceText(position)}`);
    let target = `${base}${ext}`;
    for (let copy = 2; await exists(target, `${target}.gz`); copy++) target = `${base}.${copy}${ext}`;
    await begin(mark, cursor, size);
    await file?.close();
    file = undefined;
    await rename(path, target);
    size = 0;
    await begin(mark, cursor, 0);
    await openFile();
    if (keep !== undefined) await dropOldest(path, keep);
    compressing?.look();
  }

  async function exists(...paths: string[]): Promise<boolean> {
    const found = await Promise.all(paths.map((one) => stat(one).catch(() => null)));
    return found.some((one) => one !== null);
  }

  /**
   * Another process that believes itself to be the relay may have written meanwhile, or somebody has taken the file away:
   * then what is written into it is nowhere.
   */
  async function refuseOthers(open: FileHandle): Promise<void> {
    const [ours, there] = await Promise.all([open.stat(), stat(path)]);
    if (ours.ino !== there.ino || ours.dev !== there.dev) {
      throw new SinkError('unavailable', `somebody else has put another file at ${path}`);
    }
    if (ours.size !== size) throw new SinkError('unavailable', `somebody else has written to ${path}`);
  }

  return {
    // Larger ones outlive the garbage collector's first look, and take half as long again (measured).
    batch: { events: 1_000, chars: 4_000_000 },
    open: async (mark) => {
      try {
        const end = await openFile();
        if (options.rotate !== undefined && options.gzip === 'on') compressing = compressRotated(path);
        state = await readState();
        const told = markOf(mark, end);
        position = told.cursor;
        // A crash in the middle of rotating, or somebody, made it shorter: from now on it grows from here.
        if (state !== null && size < state.offset) await begin(told, told.cursor, size);
        return told;
      } catch (error) {
        throw failure(error);
      }
    },
    deliver: async (events, mark, signal) => {
      try {
        // Right before this delivery; events that had been parked come below the cursor.
        const cursor = mark.late > 0 ? mark.cursor : (events[0]?.seq ?? 1) - 1;
        if (mark.generation !== state?.generation || mark.incarnation !== state.incarnation) {
          await begin(mark, cursor, size);
        }
        if (options.rotate !== undefined && size >= options.rotate) await rotate(mark, cursor);
        signal.throwIfAborted();
        if (file === undefined) throw new SinkError('unavailable', `${path} is not open`);
        await refuseOthers(file);
        const bytes = lines(events);
        for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
        await file.datasync();
        size += bytes.length;
        position = mark.cursor;
      } catch (error) {
        throw failure(error);
      }
    },
    recheck: async () => {
      try {
        if (file !== undefined) await refuseOthers(file);
      } catch (error) {
        throw failure(error);
      }
    },
    size: async () => {
      const bytes = (await rotatedSize(path)) + ((await stat(path).catch(() => null))?.size ?? 0);
      const option = options.rotate === undefined ? 'rotate=100MB&keep=N' : 'keep=N';
      return { text: sizeText(bytes), limit: keep === undefined ? null : `keep=${keep}`, option };
    },
    close: async () => {
      await compressing?.stop();
      compressing = undefined;
      await file?.close();
      file = undefined;
    },
    check: async () => {
      try {
        return await checkPlace(path);
      } catch (error) {
        throw failure(error);
      }
    },
  };
};
