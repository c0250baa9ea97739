import { constants, createReadStream, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { addAbortSignal, type Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { isatty, ReadStream } from 'node:tty';
import { CatchwordError, messageOf, systemCodeOf, usageError } from './errors.ts';

export interface Input {
  /** Opens stdin. `fd` is undefined unless a file descriptor is behind it. */
  readonly stdin: () => Readable & { readonly fd?: number; readonly bytesRead?: number };
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP: the command must stop cleanly and return. */
  readonly signal: AbortSignal;
}

/** A signal to the process group may end the writer of a pipe this long before it reaches this process. */
const SIGNAL_MS = 20;

function unreadable(name: string, cause: unknown): CatchwordError {
  const reason = systemCodeOf(cause) ?? messageOf(cause);
  return usageError(`cannot read ${name} (${reason})`, 'Name a file that you can read, or - for stdin.', cause);
}

async function* readUntil(signal: AbortSignal, name: string, stream: Readable): AsyncGenerator<Uint8Array> {
  // A pipe or a terminal may stay silent for ever.
  addAbortSignal(signal, stream);
  try {
    yield* stream as AsyncIterable<Uint8Array>;
    await sleep(SIGNAL_MS);
    signal.throwIfAborted();
  } catch (cause) {
    throw signal.aborted
      ? new CatchwordError('INTERRUPTED', `interrupted while reading ${name}`)
      : unreadable(name, cause);
  }
}

/** Opens a file, pipe or terminal. A file stream would block a thread on the last two, and no signal interrupts that. */
function openStream(path: string): ReturnType<Input['stdin']> {
  try {
    // O_NONBLOCK: opening a pipe would wait for its writer otherwise.
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (isatty(fd)) return Object.assign(new ReadStream(fd), { fd });
    const isPipe = fstatSync(fd).isFIFO();
    const stream = isPipe ? new Socket({ fd, readable: true, writable: false }) : createReadStream('', { fd });
    return Object.assign(stream, { fd });
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

/** A file, pipe or terminal that is read once. */
export type Source = ReturnType<typeof sourceUntil>;

/**
 * Opens stdin (`-`), a file or a pipe.
 * @throws CatchwordError USAGE, as reading does, too; and reading INTERRUPTED as soon as the signal aborts
 */
export function sourceUntil({ signal, stdin }: Input, path: string) {
  const isStdin = path === '-';
  const stream = isStdin ? stdin() : openStream(path);
  const found = stream.fd === undefined ? null : fstatSync(stream.fd, { bigint: true });
  return {
    /** Null unless it is a regular file. */
    file: found?.isFile() ? found : null,
    bytesRead: () => stream.bytesRead ?? 0,
    /** Stops reading; an open stdin or pipe would keep the process alive. */
    close: () => void stream.destroy(),
    [Symbol.asyncIterator]: () => readUntil(signal, isStdin ? 'stdin' : path, stream),
  };
}

/**
 * Reads all of stdin (`-`), a file or a pipe as UTF-8, without a byte order mark. A lenient decoder would send replacement
 * characters to the service. @throws CatchwordError USAGE, INTERRUPTED
 */
export async function readText(input: Input, path: string, name: string): Promise<string> {
  const bytes = await buffer(sourceUntil(input, path));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`${name}: it is not UTF-8`, 'Save it as UTF-8.');
  }
}
