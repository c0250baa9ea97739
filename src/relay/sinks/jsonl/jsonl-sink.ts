import { access, constants, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as z from 'zod';
import { CatchwordError, messageOf, systemCodeOf } from '../../../base/errors.ts';
import { linesOf } from '../../line-buffers.ts';
import { type EventLines, type Mark, SinkError, type SinkFactory } from '../../sink.ts';
import { pathOf, readOptions, sizeOption, sizeText, wholeOption } from '../../sink-options.ts';
import { type EventFile, openEventFile } from './event-file.ts';
import { readState } from './generation-state.ts';
import { checkRest, lastLine, parseEvent } from './read-tail.ts';
import { rotatedSize } from './rotated-files.ts';

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
    const { line, rest } = await lastLine(file);
    const newest = line === null ? null : parseEvent(path, line);
    if (newest !== null) tell?.({ generation: 1, late: 0, ...newest });
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
  const { rotate: rotateAt = Number.POSITIVE_INFINITY, gzip, keep } = readOptions(url, OPTIONS);
  const rotates = Number.isFinite(rotateAt);
  if (keep !== undefined && !rotates) {
    throw new CatchwordError('CONFIG_INVALID', 'keep needs rotate', {
      hint: 'Add rotate=100MB; keep is a number of rotated files.',
    });
  }
  let file: EventFile | undefined;
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
      file = await openEventFile(path, { rotateAt, isCompressed: rotates && gzip === 'on', keep }, mark);
      return file.mark;
    }),
    deliver: (events, mark, signal) => deliverLines(linesOf(events), mark, signal),
    deliverLines,
    recheck: noted(async () => {
      await file?.checked();
    }),
    size: async () => {
      const bytes = (await rotatedSize(path)) + ((await stat(path).catch(() => null))?.size ?? 0);
      const option = rotates ? 'keep=N' : 'rotate=100MB&keep=N';
      return { text: sizeText(bytes), limit: keep === undefined ? null : `keep=${keep}`, option };
    },
    close: async () => {
      // A call that hangs keeps the lock: until it ends, no relay writes the file.
      await running;
      await file?.close();
      file = undefined;
    },
    check: noted((_signal, found) => checkFile(path, found)),
  };
};
