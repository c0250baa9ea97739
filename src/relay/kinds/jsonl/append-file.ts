import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeDirectory, renameDurably, syncDirectory } from '@catchword/base/durable-names';
import { CatchwordError } from '@catchword/base/errors';
import { holderOf, holdFile, isFileHeld } from '@catchword/base/file-lock';
import { type Mark, SinkError } from '@catchword/sink-kit/sink';
import { type LastEvent, readEnd, readState, secureEnd } from './read-tail.ts';

/*
 * The file that a sink appends to. A relay may be frozen in the middle of a write (SIGSTOP, a suspended machine) and lose
 * its lease meanwhile; when it wakes, it writes on. So a relay holds a lock of the system on the file, from before its first
 * byte until its last call has ended: the next relay waits for it. Before each write, it checks that it still has the lock
 * and that the file ends with its own last event, because not every program asks for the lock.
 */

const LINE_BREAK = 10;
/** Enough of a line to have the id of its event. */
const START_BYTES = 128;

/** The end of the file, as this process read or wrote it. */
export interface FileEnd {
  readonly file: FileHandle;
  /** Bytes. */
  readonly size: number;
  /** Where the last line starts, and its first bytes, which have the id of its event; null if the file is empty. */
  readonly last: { readonly at: number; readonly start: Buffer } | null;
}

/** @throws SinkError unavailable while another process, or another sink, writes the file */
async function lock(path: string): Promise<{ readonly name: string; readonly release: () => void }> {
  // Not the file itself, which is renamed; its name, however its directory is spelt.
  const name = join(await realpath(dirname(path)), basename(path));
  try {
    const release = holdFile(name);
    if (release !== null) return { name, release };
  } catch (error) {
    if (!(error instanceof CatchwordError)) throw error;
    throw new SinkError('misconfigured', `${error.message}. ${error.hint ?? ''}`, { cause: error });
  }
  const holder = holderOf(name);
  if (holder === process.pid) {
    throw new SinkError('unavailable', `this process already writes ${path}: another sink does, or a call that hangs`);
  }
  const who = holder === null ? `another process (fuser ${name}.lock shows it)` : `process ${holder}`;
  throw new SinkError('unavailable', `${who} holds the lock on ${path}; if it is frozen, resume it or end it`);
}

function lastOf(line: Uint8Array, end: number): FileEnd['last'] {
  return { at: end - line.length - 1, start: Buffer.from(line.subarray(0, START_BYTES)) };
}

/** Opens the file, and cuts off an incomplete last line. @returns its end, and its last event; null if it is empty */
async function openEnd(path: string): Promise<FileEnd & { readonly event: LastEvent | null }> {
  const file = await open(path, 'a+', 0o600);
  try {
    const { size, line, rest, event } = await readEnd(path, file);
    if (rest !== '') {
      await file.truncate(size);
      await file.datasync();
    }
    if (size === 0) syncDirectory(dirname(path));
    return { file, size, last: line === null ? null : lastOf(Buffer.from(line), size), event };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** @throws SinkError unavailable if another process may have written to the file, or replaced it */
async function checkEnd(path: string, { file, size, last }: FileEnd): Promise<void> {
  const [ours, there] = await Promise.all([file.stat(), stat(path).catch(() => null)]);
  if (ours.ino !== there?.ino || ours.dev !== there.dev) {
    throw new SinkError('unavailable', `another process has replaced ${path}`);
  }
  const start = Buffer.alloc(last?.start.length ?? 0);
  if (last !== null) await file.read(start, 0, start.length, last.at);
  if (ours.size !== size || (last !== null && !start.equals(last.start))) {
    throw new SinkError('unavailable', `another process has written to ${path}`);
  }
}

/**
 * Locks and opens a file, creates it if it is missing, and cuts off an incomplete last line.
 * @param confirmed the position that the mirror knows
 * @throws SinkError unavailable while another process holds the file; misconfigured if it does not end with an event
 */
export async function openAppendFile(path: string, confirmed: Mark) {
  makeDirectory(dirname(path));
  const { name, release } = await lock(path);
  const opened = await (async () => {
    if ((await readState(path)) !== null) await secureEnd(path, confirmed);
    return await openEnd(path);
  })().catch((error: unknown) => {
    release();
    throw error;
  });
  /** Null once the file is closed. */
  let end: FileEnd | null = opened;

  async function closeFile(): Promise<void> {
    const closing = end?.file;
    end = null;
    await closing?.close();
  }

  /** Checks that the file is as this process left it. @throws SinkError unavailable */
  async function checked(): Promise<FileEnd> {
    if (end === null) throw new SinkError('unavailable', `${path} is not open`);
    if (!isFileHeld(name)) throw new SinkError('unavailable', `the lock file of ${path} was removed`);
    await checkEnd(path, end);
    return end;
  }

  return {
    /** The last event when the file was opened; null if it was empty. */
    event: opened.event,
    /** Bytes. */
    size: () => end?.size ?? 0,
    checked,
    /** Appends complete lines, and flushes them. */
    append: async (lines: Uint8Array): Promise<void> => {
      const { file, size } = await checked();
      for (let at = 0; at < lines.length; ) at += (await file.write(lines, at)).bytesWritten;
      await file.datasync();
      const last = lines.subarray(lines.lastIndexOf(LINE_BREAK, lines.length - 2) + 1, lines.length - 1);
      end = { file, size: size + lines.length, last: lastOf(last, size + lines.length) };
    },
    /** Renames the file, and continues in a new one. */
    moveTo: async (target: string): Promise<void> => {
      await checked();
      await closeFile();
      await renameDurably(path, target);
      end = await openEnd(path);
    },
    /** Closes the file and releases the lock. Call it when no other call is running. */
    close: () => closeFile().finally(release),
  };
}
