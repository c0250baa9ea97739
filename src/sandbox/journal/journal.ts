import { isUtf8 } from 'node:buffer';
import {
  appendFileSync,
  closeSync,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  realpathSync,
} from 'node:fs';
import { z } from 'zod';
import { CatchwordError, messageOf } from '../../errors.ts';
import { holdFile, NO_LOCKS } from '../../file-lock.ts';
import type { Change } from './change.ts';

/*
 * What outlives a sandbox: a file of lines of JSON, the first of which says what the sandbox began with, and each other
 * one change with its time, written before the change is done; what was refused is taken out again. Done again in this order and at these times, on the same
 * beginning, they come to the same state. A line that has no end was never done, so it is cut off. The file is for its
 * owner alone (mode 0600): it holds what was sent, access tokens among it. A killed process loses nothing; that the
 * machine loses power is not provided for.
 */

/** What the changes were done on. `at`: when it began, milliseconds since 1970. */
export interface Beginning {
  readonly seed: number;
  readonly items: number;
  readonly users: number;
  readonly at: number;
}

export interface Entry {
  readonly at: number;
  readonly change: Change;
}

export interface Journal {
  readonly beginning: Beginning;
  /** Those that the file held when it was opened. They can be read once: they are let go of then. */
  entries(): Iterable<Entry>;
  /**
   * @returns takes the entry back, where it can and no other came since: for what turned out to change nothing
   * @throws CatchwordError CONFIG_INVALID where the file cannot be written; nothing of the entry counts then
   */
  append(entry: Entry): () => void;
  /** Idempotent. */
  close(): void;
}

const time = z.number();
const beginning = z.object({ sandbox: z.literal(1), seed: z.int(), items: z.int(), users: z.int(), at: time });
const line = z.discriminatedUnion('kind', [
  z.object({
    at: time,
    kind: z.literal('request'),
    ...{ method: z.string(), path: z.string(), query: z.string(), apiKey: z.string() },
    accessToken: z.string().nullable(),
    ...{ body: z.string(), encoding: z.enum(['utf8', 'base64']), privateCallbacks: z.boolean() },
  }),
  z.object({ at: time, kind: z.literal('control'), path: z.string(), body: z.unknown() }),
  z.object({ at: time, kind: z.literal('called'), call: z.object({ vbid: z.string(), startedAt: time }) }),
]);

function lineOf({ at, change }: Entry): string {
  if (change.kind !== 'request') return `${JSON.stringify({ at, ...change })}\n`;
  const encoding = isUtf8(change.body) ? 'utf8' : 'base64';
  return `${JSON.stringify({ at, ...change, body: change.body.toString(encoding), encoding })}\n`;
}

function entryOf(text: string): Entry {
  const { at, ...kept } = line.parse(JSON.parse(text));
  if (kept.kind !== 'request') return { at, change: kept };
  const { encoding, body, ...request } = kept;
  return { at, change: { ...request, body: Buffer.from(body, encoding) } };
}

function unusable(path: string, problem: string, hint: string, cause?: unknown): CatchwordError {
  return new CatchwordError('CONFIG_INVALID', `--db ${path}: ${problem}`, { hint, cause });
}

/** What every first line begins with. */
const MARK = Buffer.from('{"sandbox":1,');

const IN_USE = `Stop the sandbox that uses it, or name another file. ${NO_LOCKS}`;

interface Opened {
  readonly fd: number;
  readonly read: Buffer;
  /** Lets another sandbox have the file. */
  readonly release: () => void;
}

function open(path: string): Opened {
  let fd: number;
  try {
    fd = openSync(path, 'a+', 0o600);
  } catch (cause) {
    throw unusable(path, messageOf(cause), 'Name a file in a folder that exists and can be written.', cause);
  }
  // Of a device, such as /dev/null, the mode that is set below would be everybody's.
  if (!fstatSync(fd).isFile()) {
    closeSync(fd);
    throw unusable(path, 'is no regular file', 'Name another file, which is begun then.');
  }
  let release: (() => void) | null = null;
  try {
    release = holdFile(realpathSync(path));
    if (release === null) throw unusable(path, 'is in use', IN_USE);
    return { fd, read: readFileSync(path), release };
  } catch (cause) {
    closeSync(fd);
    release?.();
    if (cause instanceof CatchwordError) throw cause;
    throw unusable(path, messageOf(cause), 'Name another file.', cause);
  }
}

function* linesOf(held: Buffer): Iterable<string> {
  for (let start = 0, end = 0; start < held.length; start = end + 1) {
    end = held.indexOf(0x0a, start);
    yield held.toString('utf8', start, end);
  }
}

function foreign(path: string, cause?: unknown): CatchwordError {
  return unusable(path, 'is no journal of a sandbox', 'Name another file, which is begun then.', cause);
}

function firstLine(path: string, text: string, given: Omit<Beginning, 'at'>): Beginning {
  let read: Beginning;
  try {
    read = beginning.parse(JSON.parse(text));
  } catch (cause) {
    throw foreign(path, cause);
  }
  for (const name of ['seed', 'items', 'users'] as const) {
    if (read[name] === given[name]) continue;
    const problem = `was begun with ${name} ${read[name]}, not ${given[name]}`;
    throw unusable(path, problem, `Use --${name} ${read[name]} again, or name another file.`);
  }
  return read;
}

/**
 * Holds the file until it is closed.
 * @param given what the sandbox begins with, and when if the file is new
 * @throws CatchwordError CONFIG_INVALID for a file that cannot be used, that another sandbox uses, that is no journal, or
 *   that belongs to a sandbox with another beginning
 */
export function openJournal(path: string, given: Beginning): Journal {
  const { fd, read, release } = open(path);
  let held = read.subarray(0, read.lastIndexOf(0x0a) + 1);
  const [head] = linesOf(held);
  let size = held.length;
  /** Whether there may be half a line after `size`: it would spoil the next one. */
  let torn = false;
  let closed = false;

  function cut(): void {
    ftruncateSync(fd, size);
    torn = false;
  }

  function tryCut(): void {
    try {
      cut();
    } catch {
      // Tried again before the next line is written; and what has no end is cut off at the next start.
    }
  }

  function write(text: string): void {
    if (closed) throw unusable(path, 'is closed', 'The sandbox was stopped.');
    try {
      if (torn) cut();
      torn = true;
      appendFileSync(fd, text);
      torn = false;
    } catch (cause) {
      tryCut();
      throw unusable(path, messageOf(cause), 'Make room, or name another file.', cause);
    }
    size += Buffer.byteLength(text);
  }

  function append(entry: Entry): () => void {
    const before = size;
    write(lineOf(entry));
    const after = size;
    return () => {
      if (closed || size !== after) return;
      size = before;
      torn = true;
      tryCut();
    };
  }

  function* entries(): Iterable<Entry> {
    let number = 0;
    const lines = linesOf(held);
    held = Buffer.alloc(0);
    for (const text of lines) {
      if (++number === 1) continue;
      let entry: Entry;
      try {
        entry = entryOf(text);
      } catch (cause) {
        throw unusable(path, `line ${number} is damaged`, 'Remove it and all after it, or name another file.', cause);
      }
      yield entry;
    }
  }

  try {
    // Another's file is found out before anything of it is changed.
    if (!read.subarray(0, MARK.length).equals(MARK.subarray(0, read.length))) throw foreign(path);
    const begun = head === undefined ? given : firstLine(path, head, given);
    fchmodSync(fd, 0o600);
    ftruncateSync(fd, size);
    if (head === undefined) write(`${JSON.stringify({ sandbox: 1, ...given })}\n`);
    return {
      beginning: begun,
      entries,
      append,
      close: () => {
        if (closed) return;
        closed = true;
        closeSync(fd);
        release();
      },
    };
  } catch (error) {
    closeSync(fd);
    release();
    throw error;
  }
}
