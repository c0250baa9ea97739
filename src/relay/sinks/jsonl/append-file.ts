import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeDirectory, renameDurably, syncDirectory } from '../../../base/durable-names.ts';
import { CatchwordError } from '../../../base/errors.ts';
import { holderOf, holdFile, isFileHeld } from '../../../base/file-lock.ts';
import { type Mark, SinkError } from '../../sink.ts';
import { readState } from './generation-state.ts';
import { checkRest, type LastEvent, lastLine, parseEvent } from './read-tail.ts';
import { secureEnd } from './recover-tail.ts';

/*
 * The file that a sink appends to. A relay may be frozen in the middle of a write (SIGSTOP, a suspended machine) and lose
 * its lease meanwhile; when it wakes, it writes on. So a relay holds a lock of the system on the file, from before its first
 * byte until its last call has ended: the next relay waits for it. Before each write, it checks that it still has the lock
 * and that the file ends with its own last event, because not every program asks for the lock.
 */

const LINE_BREAK = 10;
/** Enough of a line to have the id of its event. */
const START_BYTES = 128;

/** The last line of the file, as this process read or wrote it. */
interface LastLine {
  /** Where it starts; bytes. */
  readonly at: number;
  /** Its first bytes, which have the id of its event. */
  readonly start: Buffer;
}

export type AppendFile = Awaited<ReturnType<typeof openAppendFile>>;

/** @throws SinkError unavailable while another process, or another sink, writes the file */
async function lock(path: string): Promise<{ readonly name: string; readonly release: () => void }> {
  // Not the file itself, which is renamed; its name, however its directory is spelt.
  const name = join(await realpath(dirname(path)), basename(path));
  const release = holdOrExplain(name);
  if (release !== null) return { name, release };
  const holder = holderOf(name);
  if (holder === process.pid) {
    throw new SinkError('unavailable', `this process already writes ${path}: another sink does, or a call that hangs`);
  }
  const who = holder === null ? `another process (fuser ${name}.lock shows it)` : `process ${holder}`;
  throw new SinkError('unavailable', `${who} holds the lock on ${path}; if it is frozen, resume it or end it`);
}

function holdOrExplain(name: string): (() => void) | null {
  try {
    return holdFile(name);
  } catch (error) {
    if (!(error instanceof CatchwordError)) throw error;
    throw new SinkError('misconfigured', `${error.message}. ${error.hint ?? ''}`, { cause: error });
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
  let file: FileHandle | undefined;
  let size = 0;
  let last: LastLine | null = null;
  let isOurs = false;

  function noteLast(line: Uint8Array, end: number): void {
    last = { at: end - line.length - 1, start: Buffer.from(line.subarray(0, START_BYTES)) };
  }

  async function openFile(): Promise<LastEvent | null> {
    file = await open(path, 'a+', 0o600);
    const { size: complete, line, rest } = await lastLine(file);
    const event = line === null ? null : parseEvent(path, line);
    checkRest(path, rest, line !== null || isOurs);
    if (rest !== '') {
      await file.truncate(complete);
      await file.datasync();
    }
    size = complete;
    last = null;
    if (line !== null) noteLast(Buffer.from(line), size);
    if (size === 0) syncDirectory(dirname(path));
    return event;
  }

  async function closeFile(): Promise<void> {
    const closing = file;
    file = undefined;
    await closing?.close();
  }

  /** @throws SinkError unavailable if another process may have written to the file, or replaced it */
  async function check(): Promise<FileHandle> {
    if (file === undefined) throw new SinkError('unavailable', `${path} is not open`);
    if (!isFileHeld(name)) throw new SinkError('unavailable', `the lock file of ${path} was removed`);
    const [ours, there] = await Promise.all([file.stat(), stat(path)]);
    if (ours.ino !== there.ino || ours.dev !== there.dev) {
      throw new SinkError('unavailable', `another process has replaced ${path}`);
    }
    const start = Buffer.alloc(last?.start.length ?? 0);
    if (last !== null) await file.read(start, 0, start.length, last.at);
    if (ours.size !== size || (last !== null && !start.equals(last.start))) {
      throw new SinkError('unavailable', `another process has written to ${path}`);
    }
    return file;
  }

  async function close(): Promise<void> {
    try {
      await closeFile();
    } finally {
      release();
    }
  }

  async function openFirst(): Promise<LastEvent | null> {
    // Each file of ours has a state before its first line.
    isOurs = (await readState(`${path}.state`)) !== null;
    if (isOurs) await secureEnd(path, confirmed);
    return await openFile();
  }

  const end = await openFirst().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    /** The last event when the file was opened; null if it was empty. */
    end,
    /** Bytes. */
    size: () => size,
    check,
    /** Appends complete lines, and flushes them. */
    append: async (lines: Uint8Array): Promise<void> => {
      const checked = await check();
      for (let at = 0; at < lines.length; ) at += (await checked.write(lines, at)).bytesWritten;
      await checked.datasync();
      size += lines.length;
      noteLast(lines.subarray(lines.lastIndexOf(LINE_BREAK, lines.length - 2) + 1, lines.length - 1), size);
    },
    /** Renames the file, and continues in a new one. */
    moveTo: async (target: string): Promise<void> => {
      await check();
      await closeFile();
      await renameDurably(path, target);
      await openFile();
    },
    /** Closes the file and releases the lock. Call it when no other call is running. */
    close,
  };
}
