import { constants, createReadStream, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { isatty, ReadStream } from 'node:tty';
import { CatchwordError } from '../../errors.ts';
import type { CommandContext } from './context.ts';

/** Bytes to be read once; where they come from a file, its number says which. */
export type Source = AsyncIterable<Uint8Array> & { readonly fd?: number };

/** The parts of a command's context that reading needs. */
export type Input = Pick<CommandContext, 'signal' | 'stdin'>;

/** The end of a pipe whose writer a signal ended may be seen this much before the same signal to this process. */
const SIGNAL_MS = 20;

async function* readUntil(signal: AbortSignal, name: string, stream: Readable): AsyncGenerator<Uint8Array> {
  const interrupted = new CatchwordError('INTERRUPTED', `interrupted while ${name} was read`);
  // A pipe, or somebody who types, may never say another word.
  const stop = (): void => void stream.destroy(interrupted);
  if (signal.aborted) {
    stream.destroy();
    throw interrupted;
  }
  signal.addEventListener('abort', stop, { once: true });
  try {
    yield* stream as AsyncIterable<Uint8Array>;
    await sleep(SIGNAL_MS);
    if (signal.aborted) throw interrupted;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Reading a pipe or a terminal as a file would keep a thread until there is something to read, and no signal ends that. */
function streamOf(fd: number): Readable {
  if (isatty(fd)) return new ReadStream(fd);
  return fstatSync(fd).isFIFO() ? new Socket({ fd, readable: true, writable: false }) : createReadStream('', { fd });
}

/**
 * Opens stdin (`-`) or a file, which may be a pipe. Reading it throws CatchwordError INTERRUPTED as soon as the signal is
 * aborted.
 * @throws what the system says where the file cannot be opened
 */
export function sourceUntil({ signal, stdin }: Input, path: string): Source {
  if (path === '-') {
    const stream = stdin();
    return {
      ...(stream.fd !== undefined && { fd: stream.fd }),
      [Symbol.asyncIterator]: () => readUntil(signal, 'stdin', stream),
    };
  }
  // Else opening a pipe would wait for its writer.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { fd, [Symbol.asyncIterator]: () => readUntil(signal, path, streamOf(fd)) };
}

/**
 * All of stdin (`-`) or of a file, which may be a pipe.
 * @throws CatchwordError INTERRUPTED as soon as the signal is aborted, and what the system says where it cannot be read
 */
export async function readAll(input: Input, path: string): Promise<Buffer> {
  return await buffer(sourceUntil(input, path));
}
