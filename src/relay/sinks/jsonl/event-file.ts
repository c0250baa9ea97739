import { replaceFile } from '../../../base/durable-names.ts';
import type { EventLines, Mark } from '../../sink.ts';
import { openAppendFile } from './append-file.ts';
import { markOf, readState } from './generation-state.ts';
import { dropOldest, startCompressor, unusedRotatedPath } from './rotated-files.ts';

/** When a file is rotated, and what happens to rotated files. */
export interface Rotation {
  /** Bytes; infinite if the file is not rotated. */
  readonly rotateAt: number;
  readonly isCompressed: boolean;
  /** How many rotated files are kept; undefined for all. */
  readonly keep: number | undefined;
}

export type EventFile = Awaited<ReturnType<typeof openEventFile>>;

/** Opens the file of a sink, with its state and its rotated files. @param believed the position that the mirror knows */
export async function openEventFile(path: string, { rotateAt, isCompressed, keep }: Rotation, believed: Mark) {
  const statePath = `${path}.state`;
  const file = await openAppendFile(path, believed);
  const compressor = isCompressed ? startCompressor(path) : null;
  /** The content of the state file, as far as it is about this file. */
  let state = await readState(statePath);
  if (file.event !== null && file.event.incarnation !== state?.incarnation) state = null;
  const mark = markOf(believed, state, file.size(), file.event);
  /** All changes up to here are in this file or in rotated ones. */
  let position = mark.cursor;

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
      if (file.size() >= rotateAt) await rotate(mark, cursor);
      signal.throwIfAborted();
      await file.append(bytes);
      position = mark.cursor;
    },
    checked: file.checked,
    close,
  };
}
