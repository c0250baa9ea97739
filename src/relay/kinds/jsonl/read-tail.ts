import { type FileHandle, open, readFile } from 'node:fs/promises';
import { systemCodeOf } from '@catchword/base/errors';
import { incarnationOf } from '@catchword/catalog/event';
import { type Mark, SinkError } from '@catchword/sink-kit/sink';
import { feederOf, markSchema } from '@catchword/sink-kit/stored-mark';
import * as z from 'zod';

const FIRST_STEP = 64 * 1024;
/** More than what a relay delivers between two confirmations. Bounds the work if nothing is confirmed, as after a replay. */
const ENOUGH = 32 * 1024 * 1024;
const LINE_BREAK = 10;

/**
 * Reads the end of a file from the start of a line on, more of it until `find` returns what it looks for: the cost does not
 * depend on the length of the file.
 * @param find gets the end, where it starts in the file, and whether it is all of it; then it does not return null
 */
async function findInEnd<T>(file: FileHandle, find: (end: Buffer, at: number, isAll: boolean) => T | null): Promise<T> {
  const { size } = await file.stat();
  for (let step = FIRST_STEP; ; step *= 4) {
    const from = Math.max(0, size - step);
    const bytes = Buffer.alloc(size - from);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
    const skipped = from === 0 ? 0 : bytes.indexOf(LINE_BREAK) + 1;
    const found = find(bytes.subarray(skipped, bytesRead), from + skipped, from === 0);
    if (found !== null) return found;
  }
}

/**
 * Finds the last complete line; null if there is not one.
 * @returns `size`: bytes up to and including its line break; `rest`: what follows, an incomplete line
 */
function lastLine(file: FileHandle) {
  return findInEnd(file, (tail, at, isAll) => {
    const end = tail.lastIndexOf(LINE_BREAK);
    if (end === -1 && !isAll) return null;
    const start = end < 1 ? 0 : tail.lastIndexOf(LINE_BREAK, end - 1) + 1;
    const line = end === -1 ? null : tail.toString('utf8', start, end);
    return { size: at + end + 1, line, rest: tail.toString('utf8', end + 1) };
  });
}

/** Position that the last event of a file names. */
export type LastEvent = Pick<Mark, 'incarnation' | 'cursor' | 'at'>;

const eventSchema = z.object({
  type: z.string().startsWith('catchword.'),
  id: z.string(),
  sequence: z.string().regex(/^\d+$/),
  time: z.iso.datetime(),
});

const EVENT_START = '{"specversion":"1.0","id":"';

/** Whether a line that is not an event may be cut off: it starts like one, or with zeros, as after a power failure. */
function isDamage(line: string): boolean {
  return line.startsWith('\0') || EVENT_START.startsWith(line.slice(0, EVENT_START.length));
}

/** The event of a line; null if it is not one. */
function eventOf(line: string): LastEvent | null {
  try {
    const { id, sequence, time } = eventSchema.parse(JSON.parse(line));
    return { incarnation: incarnationOf(id), cursor: Number(sequence), at: Date.parse(time) };
  } catch {
    return null;
  }
}

/** `offset` and `cursor`: size of the file and cursor when this was written. */
const stateSchema = markSchema.omit({ late: true }).extend({ offset: z.number() });

/** Where in the file the current generation starts: a replay appends events with smaller numbers. */
type GenerationState = z.output<typeof stateSchema>;

/** Reads the state of a file; null if it is missing or damaged. Each file of ours has one before its first line. */
export async function readState(path: string): Promise<GenerationState | null> {
  try {
    return stateSchema.parse(JSON.parse(await readFile(`${path}.state`, 'utf8')));
  } catch {
    return null;
  }
}

/**
 * Decides how far a file is.
 * @param mark what the mirror believes
 * @param state null if the file was never replayed, or its state was lost
 * @param size of the file, bytes
 * @param end null for an empty file
 */
export function markOf(mark: Mark, state: GenerationState | null, size: number, end: LastEvent | null): Mark {
  if (state === null) return end === null ? { ...mark, late: 0 } : { ...end, generation: 1, late: 0 };
  const { incarnation, generation, offset, cursor, at } = state;
  const noted: Mark = { incarnation, generation, cursor, at, late: 0 };
  // The file was rotated or removed: it does not have an event of this generation yet.
  if (end === null) {
    const isBehind = feederOf(noted).mirror === feederOf(mark).mirror && cursor < mark.cursor;
    return isBehind ? { ...mark, generation, late: 0 } : noted;
  }
  // The event does not name the sink.
  const ended: Mark = { ...noted, cursor: end.cursor, at: end.at };
  // Shorter than when the generation started: it lost earlier events as well.
  if (size < offset && end.cursor < cursor) return ended;
  if (size <= offset) return noted;
  return end.cursor <= cursor ? { ...noted, late: end.cursor } : ended;
}

/**
 * Reads how a file ends: with an event, null if it is empty, and `rest`, an incomplete line that may be cut off.
 * @throws SinkError misconfigured if catchword has not written this end
 */
export async function readEnd(path: string, file: FileHandle) {
  const { size, line, rest } = await lastLine(file);
  const event = line === null ? null : eventOf(line);
  const isLost = isDamage(rest) && (event !== null || (await readState(path)) !== null);
  if ((line !== null && event === null) || (rest !== '' && !isLost)) {
    throw new SinkError('misconfigured', `${path} does not end with an event of catchword; use another file`);
  }
  return { size, line, rest, event };
}

/*
 * Lines that were written but never confirmed may be in the kernel's memory only: the process ended before their sync, or
 * the sync failed, and then the kernel may never write them. After a power failure, some of their sectors may be zeros, also
 * in the middle. So before such lines count, they are read, cut off from the first damaged one on, written again and synced.
 */

/**
 * @param tail the end of a file, from the start of a line on
 * @returns offsets in `tail`: where the lines that are not confirmed start, and where they are damaged (or its length)
 */
function inspect(tail: Buffer, confirmed: Mark) {
  const { mirror } = feederOf(confirmed);
  let start = 0;
  let soundTo = tail.length;
  let hasConfirmed = false;
  for (let at = 0; at < tail.length; ) {
    const lineEnd = tail.indexOf(LINE_BREAK, at);
    const end = lineEnd === -1 ? tail.length : lineEnd + 1;
    const line = tail.toString('utf8', at, lineEnd === -1 ? end : lineEnd);
    const event = eventOf(line);
    if (event?.incarnation === mirror && event.cursor <= confirmed.cursor) {
      [start, soundTo, hasConfirmed] = [end, tail.length, true];
    } else if (event === null && soundTo === tail.length && isDamage(line)) soundTo = at;
    at = end;
  }
  return { start, soundTo, hasConfirmed };
}

/**
 * Makes the events after the last confirmed one durable, and cuts off what a power failure has damaged. A file that does
 * not end like a file of catchword is left alone.
 * @param confirmed the position that the mirror knows
 */
export async function secureEnd(path: string, confirmed: Mark): Promise<void> {
  const file = await open(path, 'r+').catch((error: unknown) => {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  });
  if (file === null) return;
  try {
    const { at, tail, start, soundTo } = await findInEnd(file, (tail, at, isAll) => {
      const found = inspect(tail, confirmed);
      return found.hasConfirmed || isAll || tail.length >= ENOUGH ? { ...found, tail, at } : null;
    });
    if (start === tail.length) return;
    for (let done = start; done < soundTo; ) {
      done += (await file.write(tail, done, soundTo - done, at + done)).bytesWritten;
    }
    if (soundTo < tail.length) await file.truncate(at + soundTo);
    await file.datasync();
  } finally {
    await file.close();
  }
}
