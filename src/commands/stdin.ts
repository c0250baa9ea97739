import { buffer } from 'node:stream/consumers';
import { CatchwordError } from '../errors.ts';

/** Where stdin is a file, its number says which. */
export type Stdin = AsyncIterable<Uint8Array> & { readonly fd?: number };

async function* readUntil(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const interrupted = new CatchwordError('INTERRUPTED', 'interrupted while stdin was read');
  if (signal.aborted) throw interrupted;
  // A pipe, or somebody who types, may never say another word.
  const stop = (): void => void process.stdin.destroy(interrupted);
  signal.addEventListener('abort', stop, { once: true });
  try {
    yield* process.stdin as AsyncIterable<Uint8Array>;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Stdin, to be read once. Reading it throws CatchwordError INTERRUPTED as soon as the signal is aborted. */
export function stdinUntil(signal: AbortSignal): Stdin {
  return { fd: process.stdin.fd, [Symbol.asyncIterator]: () => readUntil(signal) };
}

/**
 * All of stdin.
 * @throws CatchwordError INTERRUPTED as soon as the signal is aborted
 */
export async function readStdin(signal: AbortSignal): Promise<Buffer> {
  return await buffer(stdinUntil(signal));
}
